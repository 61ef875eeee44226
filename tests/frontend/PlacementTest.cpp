// Placement of values: copies, ops on values with fixed devices, states. Covers items 16, 21 to 27, 35 to 37 and 43 of
// the checklist at graph level.
#include "frontend/graph/GraphImpl.h"
#include "passes/Passes.h"
#include "tests/frontend/Observe.h"
#include <sluice/sluice.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace sluice;
using sluice::test::messageOf;
using testing::HasSubstr;

namespace {

struct PlacedNet : nn::Module {
  using Module::Module;
  nn::Conv2d conv{this, "conv", 3, 8, 3, {.padding = 1}};
  nn::BatchNorm2d bn{this, "bn", 8};
  nn::Linear fc{this, "fc", 512, 10};
  Tensor forward(Tensor x) override { return fc(relu(bn(conv(x))).flatten(1)); }
};

/// A loss with a buffer, like the weights of PyTorch's CrossEntropyLoss.
struct Criterion : nn::Module {
  Tensor weight;
  explicit Criterion(Module *parent) : Module(parent, "criterion") { weight = buffer("weight", {10}, init::ones()); }
  Tensor forward(Tensor logits) override { return (log_softmax(logits, 1) * weight).mean(); }
};

struct Placement : testing::Test {
  Placement() { g.set_devices("cpu,sim:0,sim:1"); }

  Graph g{"test"};
  Tensor x = g.input("x", f32, {Dim{"batch"}, 4});
  Tensor image = g.input("image", f32, {Dim{"batch"}, 3, 8, 8});

  /// The number of `op` in the graph.
  int count(const std::string &op) {
    int found = 0;
    detail::Access::graph(g)->graph.walk(
        [&](mlir::Operation *each) { found += each->getName().getStringRef() == "sluice." + op; });
    return found;
  }
  static bool isSame(const Tensor &a, const Tensor &b) { return detail::Access::value(a) == detail::Access::value(b); }
};

using checklist_16_ops_preserve_dtype_and_device = Placement;
using checklist_21_to_and_copy_to = Placement;
using checklist_22_cpu_and_cuda = Placement;
using checklist_23_copies_between_all_devices = Placement;
using checklist_24_mixing_is_for_copy_alone = Placement;
using checklist_25_copy_to_existing = Placement;
using checklist_26_mixed_operands_fail = Placement;
using checklist_27_sum_after_moving = Placement;
using checklist_35_modules_move = Placement;
using checklist_36_net_computes_where_it_lives = Placement;
using checklist_37_parameters_and_input_apart = Placement;

} // namespace

// --- 16

TEST_F(checklist_16_ops_preserve_dtype_and_device, OfEveryKind) {
  Tensor a = g.ones({3, 4}, f64).to(gpu(1)), b = g.ones({4, 2}, f64).to(gpu(1));
  for (const Tensor &y : {matmul(a, b), a + 1, relu(a), a.sum(), a.t(), softmax(a, 1), a.reshape({12}), cat({a, a}),
                          a * a.mean(0), pad(a, {1, 1}), a.detach()}) {
    EXPECT_EQ(y.device(), gpu(1));
    EXPECT_EQ(y.dtype(), f64);
  }
  EXPECT_EQ(gt(a, 0).device(), gpu(1));
  EXPECT_EQ(a.to(f32).device(), gpu(1));
}

TEST_F(checklist_16_ops_preserve_dtype_and_device, WhereOneOperandIsFixed) {
  Tensor weight = g.ones({4, 2}).to(gpu(0));
  EXPECT_EQ(matmul(x, weight).device(), gpu(0));
  EXPECT_EQ((x * 2).device(), std::nullopt);
}

// --- 21

TEST_F(checklist_21_to_and_copy_to, ToTheSameDeviceIsTheSameValue) {
  Tensor a = x.to(gpu(0)), b = a.to(gpu(0));
  EXPECT_TRUE(isSame(a, b));
  EXPECT_EQ(count("copy"), 1);
}

TEST_F(checklist_21_to_and_copy_to, CopyToIsAlwaysOneCopy) {
  Tensor a = x.to(gpu(0)), b = a.copy_to(gpu(0)), c = b.copy_to(gpu(1));
  EXPECT_FALSE(isSame(a, b));
  EXPECT_EQ(b.device(), gpu(0));
  EXPECT_EQ(c.device(), gpu(1));
  EXPECT_EQ(count("copy"), 3);
}

TEST_F(checklist_21_to_and_copy_to, TheSourceStaysWhereItIs) {
  Tensor a = x.to(gpu(0));
  a.to(gpu(1));
  a.copy_to(cpu());
  EXPECT_EQ(a.device(), gpu(0));
  EXPECT_EQ(x.device(), std::nullopt);
}

TEST_F(checklist_21_to_and_copy_to, CopiesSayWhoWantsThem) {
  g.output("y", x.to(gpu(0)).copy_to("cuda:1"));
  EXPECT_THAT(g.str(), HasSubstr("sluice.copy %x to : (tensor<?x4xf32>) -> tensor<?x4xf32, #acc0"));
  EXPECT_THAT(g.str(), testing::ContainsRegex("copy_to : .tensor<.x4xf32, #acc0_?>. -> tensor<.x4xf32, #acc1"));
}

TEST_F(checklist_21_to_and_copy_to, PinnedValuesLiveWhereTheyArePinned) {
  Tensor y = pin(relu(x), gpu(0));
  EXPECT_EQ(y.device(), gpu(0));
  EXPECT_TRUE(isSame(y.to(gpu(0)), y));
}

// --- 22, 23

TEST_F(checklist_22_cpu_and_cuda, CpuCopiesOnlyIfNeeded) {
  Tensor a = x.cuda(), b = a.cpu();
  EXPECT_EQ(b.device(), cpu());
  EXPECT_TRUE(isSame(b.cpu(), b));
  EXPECT_EQ(count("copy"), 2);
}

TEST_F(checklist_22_cpu_and_cuda, CudaTakesTheDefaultGpu) {
  EXPECT_EQ(x.cuda().device(), gpu(0));
  EXPECT_EQ(x.cuda(1).device(), gpu(1));
  DeviceScope on{g, gpu(1)};
  EXPECT_EQ(x.cuda().device(), gpu(1));
}

TEST_F(checklist_23_copies_between_all_devices, AreOneOpEach) {
  Tensor host = x.copy_to(cpu());
  for (const Device &from : {cpu(), gpu(0), gpu(1)})
    for (const Device &to : {cpu(), gpu(0), gpu(1)}) {
      int before = count("copy");
      Tensor copy = host.copy_to(from).copy_to(to);
      EXPECT_EQ(copy.device(), to);
      EXPECT_EQ(copy.shape(), x.shape());
      EXPECT_EQ(count("copy"), before + 2);
    }
}

// --- 24, 25

TEST_F(checklist_24_mixing_is_for_copy_alone, CopyTakesAnotherDeviceAndDType) {
  nn::Module root{g};
  Tensor kept = root.buffer("kept", {4}, init::zeros());
  root.to(gpu(0));
  Tensor source = g.ones({4}, f64).to(gpu(1));
  Tensor &result = kept.copy_(source);
  EXPECT_EQ(&result, &kept);
  EXPECT_EQ(kept.device(), gpu(0));
  EXPECT_EQ(kept.dtype(), f32);
  EXPECT_EQ(source.device(), gpu(1));
}

TEST_F(checklist_24_mixing_is_for_copy_alone, OthersRefuseTwoDevices) {
  Tensor a = x.to(gpu(0)), b = x.to(gpu(1)), weight = g.ones({4, 4}).to(gpu(1)),
         label = g.input("label", i32, {Dim{"batch"}});
  std::string says = "operands are on two devices: ";
  EXPECT_THAT(messageOf([&] { a *b; }), HasSubstr("*: " + says));
  EXPECT_THAT(messageOf([&] { maximum(a, b); }), HasSubstr("maximum: " + says));
  EXPECT_THAT(messageOf([&] { lt(a, b); }), HasSubstr("lt: " + says));
  EXPECT_THAT(messageOf([&] { where(gt(a, 0), b, 0.0); }), HasSubstr("where: " + says));
  EXPECT_THAT(messageOf([&] { cat({a, b}, 1); }), HasSubstr("cat: " + says));
  EXPECT_THAT(messageOf([&] { matmul(a, weight); }), HasSubstr("matmul: " + says));
  EXPECT_THAT(messageOf([&] { linear(x, a, weight); }), HasSubstr("linear: " + says));
  EXPECT_THAT(messageOf([&] { mse_loss(a, b); }), HasSubstr("mse_loss: " + says));
  EXPECT_THAT(messageOf([&] { cross_entropy(a, label.to(gpu(1))); }), HasSubstr("cross_entropy: " + says));
}

TEST_F(checklist_24_mixing_is_for_copy_alone, OthersRefuseTwoDTypes) {
  nn::Module root{g};
  Tensor kept = root.buffer("kept", {4}, init::zeros()), wide = g.ones({4}, f64);
  EXPECT_THAT(messageOf([&] { kept + wide; }), HasSubstr("dtypes differ"));
  EXPECT_THAT(messageOf([&] { wide.copy_to(kept); }), HasSubstr("dtypes differ"));
}

TEST_F(checklist_25_copy_to_existing, SetsTheBufferWithoutAnother) {
  nn::Module root{g};
  Tensor kept = root.buffer("kept", {4}, init::zeros());
  (kept + 1).copy_to(kept);
  EXPECT_EQ(count("set"), 1);
  EXPECT_EQ(count("copy"), 0);
}

TEST_F(checklist_25_copy_to_existing, CrossesDevicesOnce) {
  nn::Module root{g};
  Tensor kept = root.buffer("kept", {4}, init::zeros());
  root.to(gpu(0));
  g.ones({4}).to(gpu(1)).copy_to(kept);
  EXPECT_EQ(count("copy"), 2);
  EXPECT_EQ(kept.device(), gpu(0));
}

TEST_F(checklist_25_copy_to_existing, GivesTheNewValueToWhatFollows) {
  nn::Module root{g};
  Tensor kept = root.buffer("kept", {4}, init::zeros()), fresh = kept + 1;
  fresh.copy_to(kept);
  EXPECT_TRUE(isSame(kept, fresh));
}

TEST_F(checklist_25_copy_to_existing, IsForStatesAlone) {
  nn::Module root{g};
  Tensor b = root.buffer("b", {4}, init::zeros()), value = g.ones({4});
  Tensor none, computed = value + 1, first = b, second = b;
  std::string only =
      "copy_to: can only write parameters and buffers of a module: pass the tensor that `parameter` or `buffer` "
      "returned ([4])";
  EXPECT_EQ(messageOf([&] { value.copy_to(computed); }), only);
  EXPECT_EQ(messageOf([&] { value.copy_to(none); }), "copy_to: an operand is an empty tensor ([4])");
  EXPECT_EQ(messageOf([&] { g.ones({3}).copy_to(b); }), "copy_to: sizes differ: [3] and [4] ([3])");
  value.copy_to(first);
  EXPECT_THAT(messageOf([&] { value.copy_to(second); }), HasSubstr("'b' is updated twice a step"));
}

// --- 26, 27

TEST_F(checklist_26_mixed_operands_fail, NamingOpDevicesAndOperands) {
  Tensor a = x.to(gpu(0)), b = x.to(cpu());
  EXPECT_EQ(messageOf([&] { a + b; }),
            "+: operands are on two devices: operand 1 on gpu(0) and operand 2 on cpu(); move one "
            "with .to(...) ([batch, 4] x [batch, 4])");
}

TEST_F(checklist_26_mixed_operands_fail, NamingInputsAndStates) {
  nn::Module root{g};
  nn::Linear fc{&root, "fc", 4, 2};
  fc.to(gpu(1));
  DeviceScope on{g, gpu(0)};
  Tensor y = g.input("y", f32, {Dim{"batch"}, 4});
  EXPECT_THAT(messageOf([&] { fc(y); }),
              HasSubstr("linear: operands are on two devices: 'y' on gpu(0) and 'fc.weight' on gpu(1)"));
}

TEST_F(checklist_26_mixed_operands_fail, AtTheUsersLine) {
  Tensor a = x.to(gpu(0)), b = x.to(gpu(1));
  unsigned line = __LINE__ + 2;
  try {
    a + b;
    FAIL() << "no error";
  } catch (const Error &error) {
    EXPECT_EQ(error.location().line, line);
    ASSERT_EQ(error.notes().size(), 2u);
    EXPECT_EQ(error.notes()[1].location.line, line - 3);
  }
}

TEST_F(checklist_26_mixed_operands_fail, ForDTypesToo) {
  EXPECT_EQ(messageOf([&] { x + x.to(f64); }),
            "+: dtypes differ: f32 and f64; convert one with .to(...) ([batch, 4] x [batch, 4])");
}

TEST_F(checklist_27_sum_after_moving, LivesOnTheCommonDevice) {
  Tensor y = x.to(gpu(0)), z = x.to(gpu(1));
  Tensor sum = y.to(gpu(1)) + z;
  EXPECT_EQ(sum.device(), gpu(1));
  g.output("sum", sum);
  EXPECT_NO_THROW(g.str());
}

// --- 35 to 37

TEST_F(checklist_35_modules_move, ParametersAndBuffersInPlace) {
  PlacedNet net{g};
  Tensor weight = net.conv.weight;
  EXPECT_EQ(&net.to(gpu(1)), &net);
  for (const auto &list : {net.named_parameters(), net.named_buffers()})
    for (const auto &[name, state] : list)
      EXPECT_EQ(state.device(), gpu(1)) << name;
  EXPECT_EQ(net.bn.running_mean.device(), gpu(1));
  EXPECT_EQ(weight.device(), gpu(1));
  EXPECT_EQ(count("copy"), 0);
}

TEST_F(checklist_35_modules_move, ByShorterNames) {
  PlacedNet net{g};
  net.cuda();
  EXPECT_EQ(net.fc.bias.device(), gpu(0));
  net.cuda(1);
  EXPECT_EQ(net.fc.bias.device(), gpu(1));
  net.cpu();
  EXPECT_EQ(net.fc.bias.device(), cpu());
}

TEST_F(checklist_35_modules_move, PartByPart) {
  PlacedNet net{g};
  net.conv.to(gpu(0));
  net.get_submodule("fc").to(gpu(1));
  EXPECT_EQ(net.conv.bias.device(), gpu(0));
  EXPECT_EQ(net.fc.weight.device(), gpu(1));
  EXPECT_EQ(net.bn.weight.device(), std::nullopt);
}

TEST_F(checklist_35_modules_move, ListsAndCriteria) {
  nn::Module root{g};
  nn::Sequential layers{&root, "layers"};
  layers.add<nn::Linear>(4, 8).add<nn::ReLU>().add<nn::Linear>(8, 10);
  Criterion criterion{&root};
  root.cuda();
  EXPECT_EQ(layers.named_parameters()[2].second.device(), gpu(0));
  EXPECT_EQ(criterion.weight.device(), gpu(0));
  EXPECT_EQ(criterion(layers(x)).device(), gpu(0));
}

/// A trained module, with queries.
struct Trained {
  explicit Trained(const Graph &g) : module(moduleOf(g).clone()) {
    succeeded = mlir::succeeded(passes::buildEntryPoints(*module));
  }
  mlir::Type kept(const char *state) { return module->lookupSymbol<ir::StateOp>(state).getStoredType(); }
  /// The value that training assigns to a state.
  mlir::Value set(const char *state) {
    mlir::Value value;
    module->lookupSymbol<ir::EntryOp>("train_step").walk([&](ir::SetOp op) {
      if (op.getState() == state)
        value = op.getValue();
    });
    return value;
  }
  mlir::OwningOpRef<mlir::ModuleOp> module;
  bool succeeded;
};

TEST_F(checklist_35_modules_move, OptimizerStateAndGradientsFollow) {
  PlacedNet net{g};
  net.to(gpu(0));
  g.minimize(net(image).square().mean(), optim::SGD{.lr = 0.1, .momentum = 0.9});
  Trained trained(g);
  ASSERT_TRUE(trained.succeeded);
  EXPECT_EQ(ir::getDevice(trained.kept("conv.weight.momentum_buffer")).getValue(), "acc0");
  EXPECT_EQ(ir::getDevice(trained.set("conv.weight.momentum_buffer").getType()).getValue(), "acc0");
  EXPECT_EQ(ir::getDevice(trained.set("conv.weight").getType()).getValue(), "acc0");
  EXPECT_EQ(ir::getDevice(trained.set("bn.running_mean").getType()).getValue(), "acc0");
  EXPECT_FALSE(ir::getDevice(trained.kept("lr")));
}

TEST_F(checklist_35_modules_move, NotOnceTheyAreUsed) {
  PlacedNet net{g};
  net(image);
  EXPECT_EQ(messageOf([&] { net.to(gpu(0)); }),
            "to: 'conv.weight' is used already; place a module before it is called");
  EXPECT_EQ(messageOf([&] { net.pin(gpu(0)); }),
            "pin: 'conv.weight' is used already; place a module before it is called");
  EXPECT_EQ(net.conv.weight.device(), std::nullopt);
}

TEST_F(checklist_36_net_computes_where_it_lives, AndEveryParameterReportsIt) {
  PlacedNet net{g};
  net.to(gpu(1));
  EXPECT_EQ(net(image.to(gpu(1))).device(), gpu(1));
  EXPECT_EQ(net.fc.weight.device(), gpu(1));
}

TEST_F(checklist_36_net_computes_where_it_lives, CreatedThere) {
  DeviceScope on{g, gpu(0)};
  PlacedNet net{g};
  EXPECT_EQ(net.conv.weight.device(), gpu(0));
  EXPECT_EQ(net.bn.running_var.device(), gpu(0));
}

TEST_F(checklist_37_parameters_and_input_apart, FailLikeAllMixedOperands) {
  PlacedNet net{g};
  net.to(gpu(1));
  EXPECT_THAT(messageOf([&] { net(image.to(cpu())); }),
              HasSubstr("conv2d: operands are on two devices: operand 1 on cpu() and 'conv.weight' on gpu(1)"));
}

// The zeros that a layer carries first have no device of the user's.
TEST(Placement, CarriedValuesBeginWhereAStepLeavesThem) {
  Graph g{"test"};
  g.set_devices("cpu,sim:0");
  nn::Module root{g};
  nn::LSTM lstm{&root, "lstm", 4, 6, {.batch_first = true}};
  lstm.to(gpu(0));
  Tensor y = lstm(g.input("x", f32, {2, 5, 4}, gpu(0)));
  EXPECT_EQ(y.device(), gpu(0));
  g.output("y", y);
  EXPECT_THAT(g.str(), HasSubstr("to : (tensor<2x6xf32>) -> tensor<2x6xf32, #acc0"));
}

// --- 43

/// d2l's program: everything on try_gpu().
static Graph onTryGpu(const std::string &devices) {
  Graph g{"test"};
  g.set_devices(devices);
  PlacedNet net{g};
  net.to(try_gpu(g));
  Tensor x = g.input("image", f32, {Dim{"batch"}, 3, 8, 8}).to(try_gpu(g));
  Tensor y = net(x);
  g.output("y", y);
  g.minimize(y.square().mean(), optim::SGD{.lr = 0.1});
  return g;
}

TEST(checklist_43_try_gpu_runs_anywhere, TheSameCodeWithAndWithoutGpu) {
  EXPECT_THAT(onTryGpu("cpu,sim:0").str(), HasSubstr("tensor<?x10xf32, #acc0"));
  EXPECT_THAT(onTryGpu("cpu").str(), testing::Not(HasSubstr("#acc")));
}
