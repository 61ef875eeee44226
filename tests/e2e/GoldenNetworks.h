// The networks with recorded PyTorch results.
#pragma once

#include "tests/e2e/Golden.h"

namespace sluice::test {

/// A variant of a network's recorded results.
inline Network variant(Network net, const std::string &name) {
  net.figures += "." + name;
  return net;
}

/// A network with smaller sizes in its text.
inline Network smaller(Network net, int64_t classes, std::vector<std::pair<std::string, std::string>> numbers) {
  net.classes = classes;
  net.replaced = std::move(numbers);
  return variant(std::move(net), "small");
}

inline const Network kLeNet{"lenet", "lenet", {1, 28, 28}, 10}, kMlp{"mlp", "mlp", {784}, 10},
    kFcnS{"fcn_s", "fcn_s", {26752}, 26752}, kFcnR{"fcn_r", "fcn_r", {784}, 10},
    kAlexNet{"alexnet_s", "alexnet_s", {3, 224, 224}, 1000}, kAlexNetR{"alexnet_r", "alexnet_r", {3, 32, 32}, 10},
    kResNet56{"resnet56", "resnet56", {3, 32, 32}, 10, ".bn2."},
    kResNet18{"resnet18", "resnet18", {3, 224, 224}, 1000, ".bn2."},
    kResNet50{"resnet50", "resnet50", {3, 224, 224}, 1000, ".bn3."},
    kMobileNetV2{"mobilenetv2", "mobilenetv2", {3, 224, 224}, 1000},
    kUNet{"unet", "unet", {3, 256, 256}, 2, "(none)", /*labelsPixels=*/true},
    kLstm{.name = "lstm", .figures = "lstm", .input = {32}, .classes = 10000, .words = {"tokens", "label"}};
inline const Network kSmallLstm = smaller(kLstm, 50,
                                          {{"10000", "50"},
                                           {"1024", "128"},
                                           {"768", "96"},
                                           {"512", "64"},
                                           {"256", "32"},
                                           {"max_norm = 5.0", "max_norm = 2.0"}});
inline const Network kGpt2{
    .name = "gpt2",
    .figures = "gpt2",
    .input = {128},
    .classes = 50257,
    .arguments = "--length 128",
    .words = {"tokens", "label"},
    .renamed = {{".c_attn.", ".attn.c_attn."},
                {".c_proj.", ".attn.c_proj."},
                {".c_fc.", ".mlp.c_fc."},
                {".c_mlp_proj.", ".mlp.c_proj."}},
    .replaced = {{"{p = 1.000000e-01 : f64", "{p = 0.000000e+00 : f64"}},
};
inline const Network kSmallGpt2 = [] {
  Network net = variant(kGpt2, "small");
  net.replaced.emplace_back("eps = 1.000000e-08", "eps = 1.000000e-04");
  net.arguments = "--layers 2 --width 128 --length 16 --words 50";
  net.input = {16};
  net.classes = 50;
  return net;
}();

} // namespace sluice::test
