// ResNet-50 (v1.5: the 3x3 convolutions have the strides) for 224 x 224 images of 1000 classes, trained by SGD with
// Nesterov momentum and weight decay.
#include "Classification.h"

#include <memory>

using namespace sluice;

/// 1x1, 3x3 and 1x1 convolutions beside a shortcut, which is projected in the first block of a stage.
struct Bottleneck : nn::Module {
  nn::Conv2d conv1;
  nn::BatchNorm2d bn1;
  nn::Conv2d conv2;
  nn::BatchNorm2d bn2;
  nn::Conv2d conv3;
  nn::BatchNorm2d bn3;
  std::unique_ptr<nn::Sequential> downsample;

  Bottleneck(nn::Module *parent, std::string name, std::int64_t in, std::int64_t width, std::int64_t stride,
             bool project)
      : Module(parent, std::move(name)), conv1{this, "conv1", in, width, 1, {.bias = false}}, bn1{this, "bn1", width},
        conv2{this, "conv2", width, width, 3, {.stride = stride, .padding = 1, .bias = false}}, bn2{this, "bn2", width},
        conv3{this, "conv3", width, 4 * width, 1, {.bias = false}}, bn3{this, "bn3", 4 * width} {
    if (!project)
      return;
    downsample = std::make_unique<nn::Sequential>(this, "downsample");
    downsample->add<nn::Conv2d>(in, 4 * width, 1, nn::Conv2dOptions{.stride = stride, .bias = false})
        .add<nn::BatchNorm2d>(4 * width);
  }

  Tensor forward(Tensor x) override {
    Tensor y = relu(bn1(conv1(x)));
    y = relu(bn2(conv2(y)));
    y = bn3(conv3(y));
    return relu(y + (downsample ? (*downsample)(x) : x));
  }
};

struct Stem : nn::Module {
  using Module::Module;
  nn::Conv2d conv1{this, "conv1", 3, 64, 7, {.stride = 2, .padding = 3, .bias = false}};
  nn::BatchNorm2d bn1{this, "bn1", 64};

  Tensor forward(Tensor x) override {
    return max_pool2d(relu(bn1(conv1(models::scaled(x)))), 3, {.stride = 2, .padding = 1});
  }
};

struct ResNet50 : nn::Module {
  Stem stem{this, nn::Stage{"stem"}};
  nn::Sequential layer1{this, "layer1"}, layer2{this, "layer2"}, layer3{this, "layer3"}, layer4{this, "layer4"};
  nn::Linear fc{this, "fc", 2048, 1000};

  explicit ResNet50(Graph &graph) : Module(graph) {
    addStage(layer1, 3, 64, 64, 1);
    addStage(layer2, 4, 256, 128, 2);
    addStage(layer3, 6, 512, 256, 2);
    addStage(layer4, 3, 1024, 512, 2);
  }

  static void addStage(nn::Sequential &stage, int blocks, int in, int width, int stride) {
    stage.add<Bottleneck>(in, width, stride, true);
    for (int block = 1; block < blocks; ++block)
      stage.add<Bottleneck>(4 * width, width, 1, false);
  }

  Tensor forward(Tensor x) override { return fc(layer4(layer3(layer2(layer1(stem(x))))).mean({2, 3})); }
};

static Graph build(const models::Options &options) {
  models::Classification task{"resnet50", options, {3, 224, 224}};
  ResNet50 net{task.graph};
  models::pin(net, options);
  if (options.init == "he") {
    net.initialize("*conv*.weight", init::kaiming_normal(0.0, init::Fan::out));
    net.initialize("*downsample.0.weight", init::kaiming_normal(0.0, init::Fan::out));
  }
  return task.minimize(net, optim::SGD{.lr = options.lr, .momentum = 0.9, .weight_decay = 1e-4, .nesterov = true});
}

int main(int argc, char **argv) {
  return models::run(argc, argv, "resnet50", {.batch = 16, .init = "he", .inits = {"he", "torch"}, .lr = 0.1}, build);
}
