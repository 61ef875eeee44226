// ViT-S/16 for 224 x 224 images of 1000 classes: 12 attention blocks over 196 patches and the class token. Parameter
// names are those of timm.
#include "Classification.h"
#include "Transformer.h"

using namespace sluice;

static constexpr std::int64_t kPatches = 14 * 14;

struct Attention : nn::Module {
  nn::Linear qkv, proj;

  Attention(nn::Module *parent, std::string name, std::int64_t width)
      : Module(parent, std::move(name)), qkv{this, "qkv", width, 3 * width}, proj{this, "proj", width, width} {}

  Tensor forward(Tensor x) override { return proj(models::attention(qkv(x))); }
};

struct Mlp : nn::Module {
  nn::Linear fc1, fc2;

  Mlp(nn::Module *parent, std::string name, std::int64_t width)
      : Module(parent, std::move(name)), fc1{this, "fc1", width, 4 * width}, fc2{this, "fc2", 4 * width, width} {}

  Tensor forward(Tensor x) override { return fc2(gelu(fc1(x))); }
};

struct Block : nn::Module {
  nn::LayerNorm norm1;
  Attention attn;
  nn::LayerNorm norm2;
  Mlp mlp;

  Block(nn::Module *parent, std::string name, std::int64_t width)
      : Module(parent, std::move(name)), norm1{this, "norm1", width, {.eps = 1e-6}}, attn{this, "attn", width},
        norm2{this, "norm2", width, {.eps = 1e-6}}, mlp{this, "mlp", width} {}

  Tensor forward(Tensor x) override {
    x = x + attn(norm1(x));
    return x + mlp(norm2(x));
  }
};

struct Patches : nn::Module {
  nn::Conv2d proj;

  Patches(nn::Module *parent, std::string name, std::int64_t width)
      : Module(parent, std::move(name)), proj{this, "proj", 3, width, 16, {.stride = 16}} {}

  Tensor forward(Tensor x) override { return proj(models::scaled(x)).flatten(2).transpose(1, 2); }
};

struct Vit : nn::Module {
  Tensor cls_token, pos_embed;
  Patches patch_embed;
  nn::Sequential blocks{this, "blocks"};
  nn::LayerNorm norm;
  nn::Linear head;

  Vit(Graph &graph, const models::Sizes &sizes)
      : Module(graph), cls_token(parameter("cls_token", {1, 1, sizes.width}, init::normal(0.0, 1e-6))),
        pos_embed(parameter("pos_embed", {1, 1 + kPatches, sizes.width}, init::normal(0.0, 0.02))),
        patch_embed{this, "patch_embed", sizes.width}, norm{this, "norm", sizes.width, {.eps = 1e-6}},
        head{this, "head", sizes.width, 1000} {
    for (std::int64_t block = 0; block < sizes.layers; ++block)
      blocks.add<Block>(sizes.width);
  }

  Tensor forward(Tensor x) override {
    x = patch_embed(x);
    Tensor all = cat({cls_token.expand({x.shape()[0], 1, -1}), x}, 1) + pos_embed;
    return head(norm(blocks(all)).select(1, 0));
  }
};

static Graph build(const models::Options &options) {
  models::Classification task{"vit_s", options, {3, 224, 224}};
  Vit net{task.graph, options.sizes};
  models::pin(net, options);
  return task.minimize(net, optim::AdamW{.lr = options.lr, .weight_decay = 0.05});
}

int main(int argc, char **argv) {
  models::Options defaults{.batch = 16, .inits = {"torch"}, .lr = 1e-3, .sizes = {.layers = 12, .width = 384}};
  return models::run(argc, argv, "vit_s", defaults, build);
}
