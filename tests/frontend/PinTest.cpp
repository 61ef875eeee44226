// Placement of work: pins of ops and modules, and their effect on training.
#include "frontend/graph/GraphImpl.h"
#include "passes/Passes.h"
#include "tests/frontend/Observe.h"
#include <sluice/sluice.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace sluice;
using sluice::test::messageOf;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {

struct Features : nn::Module {
  using Module::Module;
  nn::Conv2d conv{this, "conv", 3, 8, 3, {.padding = 1}};
  nn::BatchNorm2d bn{this, "bn", 8};
  Tensor forward(Tensor x) override { return max_pool2d(relu(bn(conv(x))), 2); }
};

struct GroupedNet : nn::Module {
  using Module::Module;
  Features features{this, nn::Group{"features"}};
  nn::Linear fc{this, "fc", 128, 10};
  Tensor forward(Tensor x) override { return fc(features(x).flatten(1)); }
};

struct Pins : testing::Test {
  Pins() { g.set_devices("cpu,sim:0,sim:1"); }

  Graph g{"test"};
  Tensor x = g.input("x", f32, {Dim{"batch"}, 4});
  Tensor image = g.input("image", f32, {Dim{"batch"}, 3, 8, 8});

  /// The ops pinned to a device, in order.
  static std::vector<std::string> pinned(mlir::Operation *within, const std::string &device) {
    std::vector<std::string> names;
    within->walk([&](mlir::Operation *op) {
      if (mlir::StringAttr pin = ir::getPin(op); pin && pin == device)
        names.push_back(op->getName().stripDialect().str());
    });
    return names;
  }
  std::vector<std::string> pinned(const std::string &device) { return pinned(detail::Access::graph(g)->graph, device); }
};

} // namespace

// --- ops

TEST_F(Pins, TheOpThatMadeAValue) {
  Tensor y = relu(x);
  pin(exp(y), gpu(1));
  EXPECT_THAT(pinned("acc1"), ElementsAre("exp"));
  EXPECT_EQ(y.device(), std::nullopt);
}

TEST_F(Pins, AllOpsOfTheCall) {
  nn::Module root{g};
  Tensor weight = root.parameter("weight", {2, 4}, init::ones()), bias = root.parameter("bias", {2}, init::ones());
  pin(linear(relu(x), weight, bias), gpu(0));
  EXPECT_THAT(pinned("acc0"), ElementsAre("einsum", "expand", "add"));
}

TEST_F(Pins, ButNotItsConstants) {
  pin(x * 2 + 1, gpu(0));
  EXPECT_THAT(pinned("acc0"), ElementsAre("add"));
}

TEST_F(Pins, LeaveTypesOpen) {
  Tensor fixed = g.ones({4}).to(gpu(1));
  Tensor y = pin(relu(x), gpu(0));
  EXPECT_EQ((y + fixed).device(), gpu(1)); // `set_copies` decides about the copies
}

TEST_F(Pins, TheLastOneHolds) {
  Tensor y = relu(x);
  pin(pin(y, gpu(0)), "gpu:1");
  EXPECT_THAT(pinned("acc0"), ElementsAre());
  EXPECT_THAT(pinned("acc1"), ElementsAre("relu"));
}

TEST_F(Pins, AreForWorkAlone) {
  nn::Module root{g};
  Tensor weight = root.parameter("weight", {4}, init::ones()), moved = x.to(gpu(1));
  EXPECT_EQ(messageOf([&] { pin(x, gpu(0)); }), "pin: 'x' is an input: nothing computes it ([batch, 4])");
  EXPECT_EQ(messageOf([&] { pin(weight, gpu(0)); }), "pin: 'weight' is a state: pin or move its module ([4])");
  EXPECT_EQ(messageOf([&] { pin(g.ones({2}), gpu(0)); }),
            "pin: the value is a constant: it is made where it is used ([2])");
  EXPECT_EQ(messageOf([&] { pin(moved, gpu(0)); }),
            "pin: the value is a copy, and lives where `to` or `copy_to` puts it ([batch, 4])");
  EXPECT_EQ(messageOf([&] { pin(relu(moved), gpu(0)); }),
            "pin: the value is fixed on gpu(1), where its operands live ([batch, 4])");
  EXPECT_EQ(messageOf([&] { pin(relu(moved), gpu(1)); }), "no error");
  EXPECT_EQ(messageOf([&] { pin(Tensor(), gpu(0)); }), "pin: an operand is an empty tensor");
}

// --- modules

TEST_F(Pins, WhatAModuleBuildsAndKeeps) {
  GroupedNet net{g};
  net.features.pin(gpu(0));
  net(image);
  EXPECT_THAT(pinned("acc0"), ElementsAre("conv2d", "expand", "add", "batch_norm", "relu", "max_pool2d"));
  EXPECT_EQ(net.features.conv.weight.device(), gpu(0));
  EXPECT_EQ(net.features.bn.running_mean.device(), gpu(0));
  EXPECT_EQ(net.fc.weight.device(), std::nullopt);
}

TEST_F(Pins, TheInnermostWins) {
  GroupedNet net{g};
  net.features.conv.pin(gpu(1));
  net.pin(gpu(0));
  net(image);
  EXPECT_THAT(pinned("acc1"), ElementsAre("conv2d", "expand", "add"));
  EXPECT_EQ(net.features.conv.weight.device(), gpu(1));
  EXPECT_EQ(net.features.bn.weight.device(), gpu(0));
  EXPECT_EQ(net.fc.weight.device(), gpu(0));
}

TEST_F(Pins, PartsCalledByThemselves) {
  GroupedNet net{g};
  net.pin(gpu(0));
  net.features.conv(image);
  EXPECT_THAT(pinned("acc0"), ElementsAre("conv2d", "expand", "add"));
}

TEST_F(Pins, EndWithTheCall) {
  GroupedNet net{g};
  net.pin(gpu(0));
  EXPECT_THROW(net(x), Error); // and with an exception
  relu(x);
  EXPECT_THAT(pinned("acc0"), ElementsAre());
}

TEST_F(Pins, ReachPartsCreatedLater) {
  nn::Module root{g};
  root.pin(gpu(1));
  nn::Linear fc{&root, "fc", 4, 2};
  EXPECT_EQ(fc.weight.device(), gpu(1));
  DeviceScope on{g, gpu(0)}; // a module's pin takes precedence over a device scope
  EXPECT_EQ(root.parameter("p", {2}, init::ones()).device(), gpu(1));
}

TEST_F(Pins, AgreeWithWhereStatesAreFixed) {
  GroupedNet net{g};
  net.fc.to(gpu(0));
  EXPECT_EQ(messageOf([&] { net.pin(gpu(1)); }),
            "pin: 'fc.weight' is fixed on gpu(0), where it was created or moved to");
  net.features.pin(gpu(1));
  EXPECT_EQ(messageOf([&] { net.to(gpu(0)); }), "to: 'conv.weight' is pinned to gpu(1) with its module");
}

TEST_F(Pins, FindPartsByName) {
  GroupedNet net{g};
  EXPECT_EQ(&net.get_submodule("features"), &net.features);
  EXPECT_EQ(&net.get_submodule("bn"), &net.features.bn);
  EXPECT_EQ(messageOf([&] { net.get_submodule("head"); }), "'test' has no part 'head'; it has features, conv, bn, fc");
  EXPECT_EQ(messageOf([&] { net.fc.get_submodule("x"); }), "'fc' has no part 'x'; it has none");
}

TEST_F(Pins, GroupsNameNoParameters) {
  GroupedNet net{g};
  EXPECT_EQ(net.named_parameters()[0].first, "conv.weight");
}

// --- training

TEST_F(Pins, GradientsAndUpdatesWorkWhereTheForwardOpDoes) {
  GroupedNet net{g};
  net.features.pin(gpu(0));
  g.minimize(net(image).square().mean(), optim::SGD{.lr = 0.1, .momentum = 0.9});
  mlir::OwningOpRef<mlir::ModuleOp> module = moduleOf(g).clone();
  ASSERT_TRUE(mlir::succeeded(passes::buildEntryPoints(*module)));
  std::vector<std::string> ops = pinned(module->lookupSymbol("train_step"), "acc0");
  EXPECT_THAT(ops, testing::IsSupersetOf({"conv2d", "conv2d_weight_grad", "max_pool2d_grad"}));
  EXPECT_THAT(ops, testing::Not(testing::Contains("einsum")));
  auto slot = module->lookupSymbol<ir::StateOp>("conv.weight.momentum_buffer");
  EXPECT_EQ(ir::getDevice(slot.getStoredType()).getValue(), "acc0");
  EXPECT_FALSE(module->lookupSymbol<ir::StateOp>("fc.weight.momentum_buffer").getPhysical());
}

TEST_F(Pins, RoundTripAsText) {
  GroupedNet net{g};
  net.features.pin(gpu(0));
  g.output("y", net(image));
  EXPECT_THAT(g.str(), HasSubstr("sluice.pin = \"acc0\""));
  EXPECT_THAT(g.str(), HasSubstr("@conv.weight : tensor<8x3x3x3xf32> = <\"uniform\""));
  EXPECT_THAT(g.str(), HasSubstr("physical tensor<8x3x3x3xf32, #acc0"));
}
