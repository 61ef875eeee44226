// ResNet-56 for 32 x 32 images of ten classes, trained by SGD with momentum and weight decay.
#include "Classification.h"

using namespace sluice;

/// Two 3x3 convolutions with a shortcut without parameters. If the number of channels grows, the shortcut takes every
/// second pixel in both dimensions, and zeros for the new channels.
struct BasicBlock : nn::Module {
  std::int64_t added;
  nn::Conv2d conv1;
  nn::BatchNorm2d bn1;
  nn::Conv2d conv2;
  nn::BatchNorm2d bn2;

  BasicBlock(nn::Module *parent, std::string name, std::int64_t in, std::int64_t out)
      : Module(parent, std::move(name)), added(out - in),
        conv1{this, "conv1", in, out, 3, {.stride = added ? 2 : 1, .padding = 1, .bias = false}}, bn1{this, "bn1", out},
        conv2{this, "conv2", out, out, 3, {.padding = 1, .bias = false}}, bn2{this, "bn2", out} {}

  Tensor shortcut(Tensor x) const {
    if (added == 0)
      return x;
    Tensor sampled = x.slice(2, 0, Tensor::toEnd, 2).slice(3, 0, Tensor::toEnd, 2);
    return pad(sampled, {0, 0, 0, 0, added / 2, added - added / 2});
  }

  Tensor forward(Tensor x) override { return relu(bn2(conv2(relu(bn1(conv1(x))))) + shortcut(x)); }
};

struct Stem : nn::Module {
  using Module::Module;
  nn::Conv2d conv1{this, "conv1", 3, 16, 3, {.padding = 1, .bias = false}};
  nn::BatchNorm2d bn1{this, "bn1", 16};

  Tensor forward(Tensor x) override { return relu(bn1(conv1(models::scaled(x)))); }
};

struct ResNet56 : nn::Module {
  Stem stem{this, nn::Group{"stem"}};
  nn::Sequential layer1{this, "layer1"}, layer2{this, "layer2"}, layer3{this, "layer3"};
  nn::Linear fc{this, "fc", 64, 10};

  explicit ResNet56(Graph &graph) : Module(graph) {
    addBlocks(layer1, 16, 16);
    addBlocks(layer2, 16, 32);
    addBlocks(layer3, 32, 64);
  }

  static void addBlocks(nn::Sequential &layer, int in, int out) {
    for (int block = 0; block < 9; ++block)
      layer.add<BasicBlock>(block == 0 ? in : out, out);
  }

  Tensor forward(Tensor x) override { return fc(layer3(layer2(layer1(stem(x)))).mean({2, 3})); }
};

static Graph build(const models::Options &options) {
  models::Classification task{"resnet56", options, {3, 32, 32}};
  ResNet56 net{task.graph};
  models::pin(net, options);
  if (options.init == "he")
    models::initializeConvolutions(net);
  return task.minimize(net, optim::SGD{.lr = options.lr, .momentum = 0.9, .weight_decay = 1e-4});
}

int main(int argc, char **argv) {
  return models::run(argc, argv, "resnet56", {.batch = 128, .init = "he", .inits = {"he", "torch"}, .lr = 0.01}, build);
}
