// U-Net for 256 x 256 images with two classes per pixel, trained by SGD with momentum. Parameter names are those of the
// common PyTorch implementation.
#include "Classification.h"

using namespace sluice;

/// Two 3x3 convolutions, each with batch norm and ReLU.
struct DoubleConv : nn::Module {
  nn::Sequential both{this, "double_conv"};

  DoubleConv(nn::Module *parent, std::string name, std::int64_t in, std::int64_t out)
      : Module(parent, std::move(name)) {
    for (std::int64_t from : {in, out})
      both.add<nn::Conv2d>(from, out, 3, nn::Conv2dOptions{.padding = 1, .bias = false})
          .add<nn::BatchNorm2d>(out)
          .add<nn::ReLU>();
  }

  Tensor forward(Tensor x) override { return both(x); }
};

/// Halves the size, doubles the channels.
struct Down : nn::Module {
  nn::Sequential conv{this, "maxpool_conv"};

  Down(nn::Module *parent, std::string name, std::int64_t in) : Module(parent, std::move(name)) {
    conv.add<nn::MaxPool2d>(2).add<DoubleConv>(in, 2 * in);
  }

  Tensor forward(Tensor x) override { return conv(x); }
};

/// Doubles the size and halves the channels, concatenates `skipped`, the features of this size before they were halved,
/// and convolves both.
struct Up : nn::Module {
  nn::ConvTranspose2d up;
  DoubleConv conv;

  Up(nn::Module *parent, std::string name, std::int64_t in)
      : Module(parent, std::move(name)), up{this, "up", in, in / 2, 2, {.stride = 2}}, conv{this, "conv", in, in / 2} {}

  Tensor forward(Tensor x, Tensor skipped) override { return conv(cat({skipped, up(x)}, 1)); }
};

struct Head : nn::Module {
  using Module::Module;
  nn::Conv2d conv{this, "conv", 64, 2, 1};

  Tensor forward(Tensor x) override { return conv(x); }
};

struct UNet : nn::Module {
  using Module::Module;
  DoubleConv inc{this, "inc", 3, 64};
  Down down1{this, "down1", 64}, down2{this, "down2", 128}, down3{this, "down3", 256}, down4{this, "down4", 512};
  Up up1{this, "up1", 1024}, up2{this, "up2", 512}, up3{this, "up3", 256}, up4{this, "up4", 128};
  Head outc{this, "outc"};

  Tensor forward(Tensor image) override {
    Tensor x1 = inc(models::scaled(image)), x2 = down1(x1), x3 = down2(x2), x4 = down3(x3);
    Tensor x = up1(down4(x4), x4);
    return outc(up4(up3(up2(x, x3), x2), x1));
  }
};

static Graph build(const models::Options &options) {
  std::int64_t size = options.size;
  models::Classification task{"unet", options, {3, size, size}, {size, size}};
  UNet net{task.graph};
  models::pin(net, options);
  if (options.init == "he")
    models::initializeConvolutions(net);
  return task.minimize(net, optim::SGD{.lr = options.lr, .momentum = 0.9});
}

int main(int argc, char **argv) {
  return models::run(argc, argv, "unet", {.batch = 4, .size = 256, .init = "he", .inits = {"he", "torch"}, .lr = 0.01},
                     build);
}
