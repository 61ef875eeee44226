#include "tests/e2e/devices/SmallLeNet.h"

#include <sluice/sluice.h>

namespace sluice::test {

namespace {

struct LeNet : nn::Module {
  nn::Conv2d conv1{this, "conv1", 1, 6, 3}, conv2{this, "conv2", 6, 8, 3};
  nn::Linear fc1{this, "fc1", 32, 24}, fc2{this, "fc2", 24, kSmallLeNetClasses};

  explicit LeNet(Graph &graph) : Module(graph) {}
  Tensor forward(Tensor x) override {
    x = avg_pool2d(relu(conv2(avg_pool2d(relu(conv1(x)), 2))), 2);
    return fc2(relu(fc1(x.flatten(1))));
  }
};

} // namespace

std::string smallLeNet(const std::string &devices, int64_t batch) {
  Graph graph("small_lenet");
  graph.set_capacity(batch);
  graph.set_devices(devices);
  graph.set_copies("insert");
  Tensor image = graph.input("image", f32, {Dim{"batch"}, 1, kSmallLeNetSide, kSmallLeNetSide});
  Tensor label = graph.input("label", i32, {Dim{"batch"}});
  LeNet net{graph};
  nn::Module *parts[] = {&net.conv1, &net.conv2, &net.fc1, &net.fc2};
  int accelerators = int(gpu_count(graph));
  for (int i = 0; accelerators > 0 && i < 4; ++i)
    parts[i]->pin(gpu(i * accelerators / 4));
  graph.minimize(cross_entropy(net(image), label), optim::SGD{.lr = 0.1});
  return graph.str();
}

} // namespace sluice::test
