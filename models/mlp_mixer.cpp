// MLP-Mixer-S/16 for 224 x 224 images of 1000 classes: each block mixes the 196 patches of each channel, then the 512
// channels of each patch. Parameter names are those of timm.
#include "Classification.h"

using namespace sluice;

static constexpr std::int64_t kPatches = 14 * 14;

struct Mlp : nn::Module {
  nn::Linear fc1, fc2;

  Mlp(nn::Module *parent, std::string name, std::int64_t features, std::int64_t hidden)
      : Module(parent, std::move(name)), fc1{this, "fc1", features, hidden}, fc2{this, "fc2", hidden, features} {}

  Tensor forward(Tensor x) override { return fc2(gelu(fc1(x))); }
};

struct Mixer : nn::Module {
  nn::LayerNorm norm1;
  Mlp tokens;
  nn::LayerNorm norm2;
  Mlp channels;

  Mixer(nn::Module *parent, std::string name, std::int64_t width)
      : Module(parent, std::move(name)), norm1{this, "norm1", width, {.eps = 1e-6}},
        tokens{this, "mlp_tokens", kPatches, 256}, norm2{this, "norm2", width, {.eps = 1e-6}},
        channels{this, "mlp_channels", width, 4 * width} {}

  Tensor forward(Tensor x) override {
    x = x + tokens(norm1(x).transpose(1, 2)).transpose(1, 2);
    return x + channels(norm2(x));
  }
};

struct Patches : nn::Module {
  nn::Conv2d proj;

  Patches(nn::Module *parent, std::string name, std::int64_t width)
      : Module(parent, std::move(name)), proj{this, "proj", 3, width, 16, {.stride = 16}} {}

  Tensor forward(Tensor x) override { return proj(models::scaled(x)).flatten(2).transpose(1, 2); }
};

struct MlpMixer : nn::Module {
  Patches stem;
  nn::Sequential blocks{this, "blocks"};
  nn::LayerNorm norm;
  nn::Linear head;

  MlpMixer(Graph &graph, const models::Sizes &sizes)
      : Module(graph), stem{this, "stem", sizes.width}, norm{this, "norm", sizes.width, {.eps = 1e-6}},
        head{this, "head", sizes.width, 1000} {
    for (std::int64_t block = 0; block < sizes.layers; ++block)
      blocks.add<Mixer>(sizes.width);
  }

  Tensor forward(Tensor x) override { return head(norm(blocks(stem(x))).mean(1)); }
};

static Graph build(const models::Options &options) {
  models::Classification task{"mlp_mixer", options, {3, 224, 224}};
  MlpMixer net{task.graph, options.sizes};
  models::pin(net, options);
  return task.minimize(net, optim::SGD{.lr = options.lr, .momentum = 0.9});
}

int main(int argc, char **argv) {
  models::Options defaults{.batch = 16, .inits = {"torch"}, .lr = 0.01, .sizes = {.layers = 8, .width = 512}};
  return models::run(argc, argv, "mlp_mixer", defaults, build);
}
