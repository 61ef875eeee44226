#include "tests/e2e/devices/SmallResNet.h"

#include <optional>
#include <sluice/sluice.h>

namespace sluice::test {

namespace {

struct Block : nn::Module {
  nn::Conv2d conv1, conv2;
  nn::BatchNorm2d bn1, bn2;
  std::optional<nn::Conv2d> projection;

  Block(nn::Module *parent, std::string name, int64_t in, int64_t out, int64_t stride)
      : Module(parent, std::move(name)),
        conv1{this, "conv1", in, out, 3, {.stride = stride, .padding = 1, .bias = false}},
        conv2{this, "conv2", out, out, 3, {.padding = 1, .bias = false}}, bn1{this, "bn1", out}, bn2{this, "bn2", out} {
    if (stride > 1)
      projection.emplace(this, "projection", in, out, 1, nn::Conv2dOptions{.stride = stride});
  }

  Tensor forward(Tensor x) override {
    Tensor beside = projection ? (*projection)(x) : x;
    return relu(bn2(conv2(relu(bn1(conv1(x))))) + beside);
  }
};

struct Stem : nn::Module {
  nn::Conv2d conv{this, "conv", kSmallResNetChannels, 8, 3, {.padding = 1, .bias = false}};
  nn::BatchNorm2d bn{this, "bn", 8};
  using Module::Module;
  Tensor forward(Tensor x) override { return relu(bn(conv(x))); }
};

struct Net : nn::Module {
  Stem stem{this, "stem"};
  Block identity{this, "identity", 8, 8, 1}, strided{this, "strided", 8, 12, 2};
  nn::Linear fc{this, "fc", 12, kSmallResNetClasses};
  explicit Net(Graph &graph) : Module(graph) {}
  Tensor forward(Tensor x) override { return fc(strided(identity(stem(x))).mean({2, 3})); }
};

} // namespace

std::string smallResNet(const std::string &devices, int64_t batch) {
  Graph graph("small_resnet");
  graph.set_capacity(batch);
  graph.set_devices(devices);
  graph.set_copies("insert");
  Tensor image = graph.input("image", f32, {Dim{"batch"}, kSmallResNetChannels, kSmallResNetSide, kSmallResNetSide});
  Tensor label = graph.input("label", i32, {Dim{"batch"}});
  Net net{graph};
  nn::Module *parts[] = {&net.stem, &net.identity, &net.strided, &net.fc};
  int accelerators = int(gpu_count(graph));
  for (int i = 0; accelerators > 0 && i < 4; ++i)
    parts[i]->pin(gpu(i % accelerators));
  Tensor logits = net(image);
  graph.output("logits", logits);
  graph.minimize(cross_entropy(logits, label), optim::SGD{.lr = 0.05, .momentum = 0.9, .weight_decay = 1e-4});
  return graph.str();
}

} // namespace sluice::test
