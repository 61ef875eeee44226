// MLP-Mixer-S/16 for 224 x 224 images of 1000 classes: blocks that mix what 196 patches have of a channel, and what a
// patch has of 512 channels. Parameters are named as timm names them.
#include "Classification.h"

using namespace sluice;

static constexpr int kPatches = 14 * 14, kChannels = 512, kBlocks = 8;

struct Mlp : nn::Module {
  nn::Linear fc1, fc2;

  Mlp(nn::Module *parent, std::string name, int features, int hidden)
      : Module(parent, std::move(name)), fc1{this, "fc1", features, hidden}, fc2{this, "fc2", hidden, features} {}

  Tensor forward(Tensor x) override { return fc2(gelu(fc1(x))); }
};

struct Mixer : nn::Module {
  using Module::Module;
  nn::LayerNorm norm1{this, "norm1", kChannels, {.eps = 1e-6}};
  Mlp tokens{this, "mlp_tokens", kPatches, 256};
  nn::LayerNorm norm2{this, "norm2", kChannels, {.eps = 1e-6}};
  Mlp channels{this, "mlp_channels", kChannels, 2048};

  Tensor forward(Tensor x) override {
    x = x + tokens(norm1(x).transpose(1, 2)).transpose(1, 2);
    return x + channels(norm2(x));
  }
};

struct Patches : nn::Module {
  using Module::Module;
  nn::Conv2d proj{this, "proj", 3, kChannels, 16, {.stride = 16}};

  Tensor forward(Tensor x) override { return proj(models::scaled(x)).flatten(2).transpose(1, 2); }
};

struct MlpMixer : nn::Module {
  Patches stem{this, "stem"};
  nn::Sequential blocks{this, "blocks"};
  nn::LayerNorm norm{this, "norm", kChannels, {.eps = 1e-6}};
  nn::Linear head{this, "head", kChannels, 1000};

  explicit MlpMixer(Graph &graph) : Module(graph) {
    for (int block = 0; block < kBlocks; ++block)
      blocks.add<Mixer>();
  }

  Tensor forward(Tensor x) override { return head(norm(blocks(stem(x))).mean(1)); }
};

static Graph build(const models::Options &options) {
  models::Classification task{"mlp_mixer", options, {3, 224, 224}};
  MlpMixer net{task.graph};
  models::pin(net, options);
  return task.minimize(net, optim::SGD{.lr = options.lr, .momentum = 0.9});
}

int main(int argc, char **argv) {
  return models::run(argc, argv, "mlp_mixer", {.batch = 16, .inits = {"torch"}, .lr = 0.01}, build);
}
