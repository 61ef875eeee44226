#include "tools/compiler/placement/costs/CalibrationModels.h"

#include "sluice/sluice.h"

namespace sluice::compiler {

namespace {

/// Two convolutions with average pools and dense layers, for small grey images.
struct SmallNet : nn::Module {
  using Module::Module;
  nn::Conv2d conv1{this, "conv1", 1, 16, 5, {.padding = 2}};
  nn::Conv2d conv2{this, "conv2", 16, 32, 5};
  nn::Linear fc1{this, "fc1", 800, 120}, fc2{this, "fc2", 120, 10};

  Tensor forward(Tensor x) override {
    x = avg_pool2d(relu(conv1(x)), 2);
    x = avg_pool2d(relu(conv2(x)), 2);
    return fc2(relu(fc1(x.flatten(1))));
  }
};

/// Convolutions with much memory traffic for their work: few channels, few taps.
struct ThinNet : nn::Module {
  using Module::Module;
  nn::Conv2d conv1{this, "conv1", 1, 8, 3}, conv2{this, "conv2", 8, 16, 1}, conv3{this, "conv3", 16, 32, 1};
  nn::Linear fc{this, "fc", 32, 10};

  Tensor forward(Tensor x) override {
    x = max_pool2d(relu(conv3(relu(conv2(relu(conv1(x)))))), 2);
    return fc(x.mean({2, 3}));
  }
};

/// Strided, wide and padded convolutions with overlapping max pools, and dense layers bound by reading their weights.
struct LargeNet : nn::Module {
  using Module::Module;
  nn::Conv2d conv1{this, "conv1", 3, 64, 11, {.stride = 4, .padding = 2}};
  nn::Conv2d conv2{this, "conv2", 64, 192, 5, {.padding = 2}};
  nn::Conv2d conv3{this, "conv3", 192, 256, 3, {.padding = 1}};
  nn::Conv2d conv4{this, "conv4", 256, 256, 3, {.padding = 1}};
  nn::Linear fc1{this, "fc1", 9216, 2048}, fc2{this, "fc2", 2048, 1000};

  Tensor forward(Tensor x) override {
    x = max_pool2d(relu(conv1(x)), 3, {.stride = 2});
    x = max_pool2d(relu(conv2(x)), 3, {.stride = 2});
    x = max_pool2d(relu(conv4(relu(conv3(x)))), 3, {.stride = 2});
    return fc2(relu(fc1(x.flatten(1))));
  }
};

/// Normalized convolutions with a shortcut, at three widths.
struct Residual : nn::Module {
  nn::Conv2d conv1, conv2;
  nn::BatchNorm2d bn1, bn2;

  Residual(nn::Module *parent, std::string name, std::int64_t in, std::int64_t out)
      : Module(parent, std::move(name)),
        conv1{this, "conv1", in, out, 3, {.stride = in == out ? 1 : 2, .padding = 1, .bias = false}},
        conv2{this, "conv2", out, out, 3, {.padding = 1, .bias = false}}, bn1{this, "bn1", out}, bn2{this, "bn2", out} {
  }

  Tensor forward(Tensor x) override {
    Tensor y = bn2(conv2(relu(bn1(conv1(x)))));
    return relu(y.shape()[1] == x.shape()[1] ? y + x : y);
  }
};

struct ResidualNet : nn::Module {
  nn::Conv2d stem{this, "stem", 3, 16, 3, {.padding = 1, .bias = false}};
  nn::BatchNorm2d bn{this, "bn", 16};
  nn::Sequential blocks{this, "blocks"};
  nn::Linear fc{this, "fc", 64, 10};

  explicit ResidualNet(Graph &graph) : Module(graph) {
    for (auto [in, out] : {std::pair(16, 16), {16, 32}, {32, 32}, {32, 64}, {64, 64}})
      blocks.add<Residual>(in, out);
  }
  Tensor forward(Tensor x) override { return fc(blocks(relu(bn(stem(x)))).mean({2, 3})); }
};

struct DenseNet : nn::Module {
  using Module::Module;
  nn::Linear fc1{this, "fc1", 784, 1024}, fc2{this, "fc2", 1024, 512}, fc3{this, "fc3", 512, 128},
      fc4{this, "fc4", 128, 10};

  Tensor forward(Tensor x) override { return fc4(relu(fc3(sigmoid(fc2(tanh(fc1(x.flatten(1)))))))); }
};

} // namespace

template <typename Net>
static Graph trainingOf(const char *name, std::int64_t rows, const Shape &image, DType dtype,
                        const optim::SGD &optimizer) {
  Graph graph(name);
  graph.set_capacity(rows);
  std::vector<Dim> dims{Dim{"batch"}};
  dims.insert(dims.end(), image.begin(), image.end());
  Tensor input = graph.input("image", dtype, Shape(dims)), label = graph.input("label", i32, {Dim{"batch"}});
  Net net{graph};
  Tensor logits = net(dtype == u8 ? input.to(f32) / 255 : input);
  graph.output("logits", logits);
  graph.metric("accuracy", accuracy(logits, label));
  graph.minimize(cross_entropy(logits, label), optimizer);
  return graph;
}

std::vector<Graph> calibrationModels() {
  return {trainingOf<SmallNet>("small", 128, {1, 28, 28}, u8, {.lr = 0.01}),
          trainingOf<ThinNet>("thin", 256, {1, 32, 32}, f32, {.lr = 0.01}),
          trainingOf<LargeNet>("large", 8, {3, 224, 224}, u8, {.lr = 0.01}),
          trainingOf<ResidualNet>("residual", 64, {3, 32, 32}, u8, {.lr = 0.01, .momentum = 0.9, .weight_decay = 1e-4}),
          trainingOf<ResidualNet>("few_rows", 8, {3, 32, 32}, u8, {.lr = 0.01, .momentum = 0.9, .weight_decay = 1e-4}),
          trainingOf<DenseNet>("dense", 128, {1, 28, 28}, f32, {.lr = 0.01, .momentum = 0.9})};
}

} // namespace sluice::compiler
