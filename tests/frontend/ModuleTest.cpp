// Modules: names, initial values, layers.
#include "tests/frontend/Observe.h"
#include <sluice/sluice.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace sluice;
using sluice::test::messageOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

namespace {

struct Block : nn::Module {
  nn::Conv2d conv;
  nn::BatchNorm2d bn;
  Block(nn::Module *parent, std::string name, int in, int out)
      : Module(parent, std::move(name)), conv{this, "conv", in, out, 3, {.padding = 1, .bias = false}},
        bn{this, "bn", out} {}
  Tensor forward(Tensor x) override { return relu(bn(conv(x))); }
};

struct Net : nn::Module {
  using Module::Module;
  Block block{this, "block", 3, 8};
  nn::MaxPool2d pool{this, "pool", 2};
  nn::Flatten flat{this, "flat"};
  nn::Linear fc{this, "fc", 128, 10};
  Tensor forward(Tensor x) override { return fc(flat(pool(block(x)))); }
};

struct Classifier : nn::Module {
  nn::Sequential layers{this, "layers"};
  explicit Classifier(Graph &g) : Module(g) {
    layers.add<nn::Linear>(4, 8).add<nn::GELU>(Gelu::tanh).add<nn::Linear>(8, 2, nn::LinearOptions{.bias = false});
  }
  Tensor forward(Tensor x) override { return layers(x); }
};

/// A forward function of three tensors, with members that must not hide functions.
struct Gate : nn::Module {
  using Module::Module;
  nn::Linear query{this, "query", 4, 4};
  Tensor forward(Tensor x, Tensor memory, Tensor open) override { return pin(where(open, query(x), memory), gpu(0)); }
};

std::vector<std::string> names(const nn::Module::Named &list) {
  std::vector<std::string> result;
  for (const auto &[name, tensor] : list)
    result.push_back(name);
  return result;
}

struct Modules : testing::Test {
  Graph g{"test"};
  Tensor image = g.input("image", f32, {Dim{"batch"}, 3, 8, 8});
  Tensor vector = g.input("vector", f32, {Dim{"batch"}, 4});
};

} // namespace

TEST_F(Modules, NamesFollowTheStateDict) {
  Net net{g};
  EXPECT_THAT(names(net.named_parameters()),
              ElementsAre("block.conv.weight", "block.bn.weight", "block.bn.bias", "fc.weight", "fc.bias"));
  EXPECT_THAT(names(net.named_buffers()), ElementsAre("block.bn.running_mean", "block.bn.running_var"));
}

TEST_F(Modules, ForwardInfersShapes) {
  Net net{g};
  EXPECT_EQ(net(image).shape().str(), "[batch, 10]");
}

TEST_F(Modules, SequentialNumbersItsLayers) {
  Classifier net{g};
  EXPECT_EQ(net(vector).shape().str(), "[batch, 2]");
  EXPECT_THAT(names(net.named_parameters()), ElementsAre("layers.0.weight", "layers.0.bias", "layers.2.weight"));
}

TEST_F(Modules, LayersBeginAsInPyTorch) {
  Net net{g};
  g.output("y", net(image));
  std::string text = g.str();
  EXPECT_THAT(text,
              HasSubstr("@block.conv.weight : tensor<8x3x3x3xf32> = <\"uniform\", -0.19245008972987")); // 1 / sqrt(27)
  EXPECT_THAT(text, HasSubstr("@fc.bias : tensor<10xf32> = <\"uniform\", -0.08838834764831"));          // 1 / sqrt(128)
  EXPECT_THAT(text, HasSubstr("@block.bn.running_var : tensor<8xf32> = <\"constant\", 1.0"));
}

TEST_F(Modules, InitializeReplacesWhatMatches) {
  Net net{g};
  net.initialize("*.bias", init::zeros());
  net.fc.initialize("weight", init::normal(0.0, 0.25));
  g.output("y", net(image));
  std::string text = g.str();
  EXPECT_THAT(text, HasSubstr("@fc.bias : tensor<10xf32> = <\"constant\", 0.0"));
  EXPECT_THAT(text, HasSubstr("@fc.weight : tensor<10x128xf32> = <\"normal\", 0.0"));
  EXPECT_THAT(text, HasSubstr("@block.conv.weight : tensor<8x3x3x3xf32> = <\"uniform\""));
}

TEST_F(Modules, ThePaddingOfAnEmbeddingBeginsAsZeros) {
  nn::Module root{g};
  nn::Embedding words{&root, "words", 10, 4}, padded{&root, "padded", 10, 4, {.padding_idx = -1}};
  Tensor ids = g.input("ids", i32, {Dim{"batch"}});
  g.output("y", words(ids) + padded(ids));
  EXPECT_THAT(g.str(), HasSubstr("@words.weight : tensor<10x4xf32> = <\"normal\", 0.000000e+00 : f64, "
                                 "1.000000e+00 : f64>"));
  EXPECT_THAT(g.str(), HasSubstr("@padded.weight : tensor<10x4xf32> = <\"normal\", 0.000000e+00 : f64, "
                                 "1.000000e+00 : f64 zero_row 9 : i64>"));
}

// Names and initial values match PyTorch's state_dict.
TEST_F(Modules, NormsAndConvolutionsBeginAsInPyTorch) {
  nn::Module root{g};
  nn::LayerNorm layer{&root, "layer", {8, 8}}, plain{&root, "plain", 8, {.elementwise_affine = false}},
      unbiased{&root, "unbiased", 8, {.bias = false}};
  nn::RMSNorm rms{&root, "rms", 8}, bare{&root, "bare", 8, {.elementwise_affine = false}};
  nn::GroupNorm group{&root, "group", 3, 3}, free{&root, "free", 3, 3, {.affine = false}};
  nn::Conv1d line{&root, "line", 8, 4, 5, {.groups = 2}};
  nn::ConvTranspose2d up{&root, "up", 3, 8, 2, {.stride = 2}}, dry{&root, "dry", 3, 3, 1, {.bias = false}};
  Tensor y = dry(group(free(bare(rms(unbiased(plain(layer(image))))))));
  g.output("up", adaptive_avg_pool2d(up(y), 4));
  nn::PReLU slope{&root, "slope"};
  nn::InstanceNorm2d each{&root, "each", 3, {.affine = true}}, none{&root, "none", 3};
  g.output("each", each(none(slope(y))));
  EXPECT_THAT(names(root.named_parameters()),
              ElementsAre("layer.weight", "layer.bias", "unbiased.weight", "rms.weight", "group.weight", "group.bias",
                          "line.weight", "line.bias", "up.weight", "up.bias", "dry.weight", "slope.weight",
                          "each.weight", "each.bias"));
  std::string text = g.str();
  EXPECT_THAT(text, HasSubstr("@layer.weight : tensor<8x8xf32> = <\"constant\", 1.0"));
  EXPECT_THAT(text, HasSubstr("@layer.bias : tensor<8x8xf32> = <\"constant\", 0.0"));
  EXPECT_THAT(text, HasSubstr("@rms.weight : tensor<8xf32> = <\"constant\", 1.0"));
  EXPECT_THAT(text, HasSubstr("@group.bias : tensor<3xf32> = <\"constant\", 0.0"));
  EXPECT_THAT(text, HasSubstr("@slope.weight : tensor<1xf32> = <\"constant\", 2.5"));
  EXPECT_THAT(text, HasSubstr("@each.weight : tensor<3xf32> = <\"constant\", 1.0"));
  EXPECT_THAT(text, HasSubstr("@line.weight : tensor<4x4x5xf32> = <\"uniform\", -0.2236")); // 1 / sqrt(4 * 5)
  EXPECT_THAT(text, HasSubstr("@line.bias : tensor<4xf32> = <\"uniform\", -0.2236"));
  EXPECT_THAT(text, HasSubstr("@up.weight : tensor<3x8x2x2xf32> = <\"uniform\", -0.17677")); // 1 / sqrt(8 * 2 * 2)
  EXPECT_THAT(text, HasSubstr("@up.bias : tensor<8xf32> = <\"uniform\", -0.17677"));
}

TEST_F(Modules, BatchNormSetsItsRunningStatistics) {
  Net net{g};
  g.output("y", net(image));
  std::string text = g.str();
  EXPECT_THAT(text, HasSubstr("sluice.set @block.bn.running_mean, %"));
  EXPECT_THAT(text, HasSubstr("sluice.set @block.bn.running_var, %"));
}

TEST_F(Modules, RowsCarryWhatABufferOfTheBatchIsGiven) {
  nn::Module root{g};
  Tensor x = g.input("x", f32, {Dim{"batch"}, 4}), h = root.buffer("h", {Dim{"batch"}, 4}, init::zeros());
  Tensor y = x + h;
  h.copy_(y);
  g.output("y", y);
  g.set_capacity(6);
  EXPECT_THAT(g.str(), HasSubstr("sluice.state slot @h : tensor<?x4xf32> = <\"constant\", 0.0"));
  EXPECT_THAT(g.str(), HasSubstr("sluice.set @h, %"));
  ASSERT_EQ(g.states().size(), 1u);
  EXPECT_EQ(g.states()[0].kind, "slot");
  EXPECT_EQ(g.states()[0].elements, 24);
}

TEST_F(Modules, TrainingListsWhatTheLossDependsOn) {
  Net used{g};
  nn::Linear unused{&used, "unused", 4, 4};
  g.minimize(used(image).square().mean(), optim::SGD{.lr = 0.1, .momentum = 0.9, .nesterov = true});
  std::string text = g.str();
  EXPECT_THAT(text, HasSubstr("lr @lr [@block.conv.weight, @block.bn.weight, @block.bn.bias, @fc.weight, @fc.bias]"));
}

TEST_F(Modules, ParametersTakeTheGraphsDType) {
  g.set_dtype(f64);
  nn::Module root{g};
  EXPECT_EQ(root.parameter("p", {3}, init::ones()).dtype(), f64);
}

// The learning rate stays f32 even if parameters are halves.
TEST_F(Modules, HalvesLearnAtARateOfSinglePrecision) {
  g.set_dtype(bf16);
  nn::Module root{g};
  Tensor p = root.parameter("p", {4}, init::ones()), x = g.input("x", bf16, {Dim{"batch"}, 4});
  EXPECT_EQ(p.dtype(), bf16);
  EXPECT_EQ((x * p * 0.5).dtype(), bf16);
  g.minimize((x * p).mean(), optim::SGD{.lr = 0.1});
  EXPECT_THAT(g.str(), HasSubstr("hyperparameter @lr : tensor<f32>"));
  EXPECT_THAT(g.str(), HasSubstr("parameter @p : tensor<4xbf16>"));
}

TEST_F(Modules, ForwardTakesSeveralTensors) {
  g.set_devices("cpu,sim:0");
  Gate gate{g};
  Tensor x = g.input("rows", f32, {Dim{"batch"}, 4}), memory = g.input("memory", f32, {4});
  Tensor y = gate(x, memory, x > 0);
  EXPECT_EQ(y.shape().str(), "[batch, 4]");
  EXPECT_EQ(y.device(), gpu(0));
}

TEST_F(Modules, NamesTheForwardThatIsMissing) {
  Gate gate{g};
  Tensor x = g.input("rows", f32, {Dim{"batch"}, 4});
  try {
    gate(x, x);
    FAIL() << "no error";
  } catch (const Error &error) {
    EXPECT_THAT(error.what(), HasSubstr("has no forward(Tensor, Tensor)"));
    EXPECT_EQ(error.location().file, "ModuleTest.cpp");
  }
}

//===- tied parameters --------------------------------------------------------------------------------------------===//

namespace {

struct Tied : nn::Module {
  using Module::Module;
  nn::Linear first{this, "first", 4, 4}, second{this, "second", 4, 4}, third{this, "third", 4, 4};
  nn::Linear narrow{this, "narrow", 4, 2};
  Tensor forward(Tensor x) override { return third(second(first(x))); }
};

} // namespace

TEST_F(Modules, AnAssignmentTiesParameters) {
  Tied net{g};
  Tensor before = net.second.weight; // a handle of the parameter before the tie
  net.second.weight = net.first.weight;
  EXPECT_THAT(names(net.named_parameters()), ElementsAre("first.weight", "first.bias", "second.bias", "third.weight",
                                                         "third.bias", "narrow.weight", "narrow.bias"));
  g.output("y", net(vector) * before.sum());
  std::string text = g.str();
  EXPECT_THAT(text, HasSubstr("also [\"second.weight\"]"));
  EXPECT_THAT(text, Not(HasSubstr("@second.weight")));
}

TEST_F(Modules, TiesOfTiesAreOneParameter) {
  Tied net{g};
  net.third.weight = net.second.weight;
  net.second.weight = net.first.weight;
  net.first.weight = net.third.weight; // already tied
  g.output("y", net(vector));
  EXPECT_THAT(g.str(), HasSubstr("also [\"second.weight\", \"third.weight\"]"));
}

TEST_F(Modules, ACopyOfAParameterIsAHandle) {
  Tied net{g};
  auto weight = net.first.weight;
  weight = relu(weight);
  EXPECT_EQ(names(net.named_parameters()).front(), "first.weight");
  EXPECT_EQ(names(net.named_parameters()).size(), 8u);
}

TEST_F(Modules, OnlyParametersThatFitAreTied) {
  Tied net{g};
  EXPECT_EQ(messageOf([&] { net.narrow.weight = net.first.weight; }),
            "'narrow.weight' cannot be 'first.weight': f32[2, 4] and f32[4, 4]");
  EXPECT_EQ(messageOf([&] { net.narrow.weight = relu(net.first.weight); }),
            "'narrow.weight' is tied to a value that is not a parameter");
  EXPECT_EQ(messageOf([&] { net.narrow.weight = Tensor(); }), "'narrow.weight' is tied to no tensor");
  Graph other{"other"};
  Tied there{other};
  EXPECT_EQ(messageOf([&] { net.first.weight = there.first.weight; }),
            "'first.weight' is tied to a parameter of another graph");
  net(vector);
  EXPECT_EQ(
      messageOf([&] { net.second.weight = net.first.weight; }),
      "'second.weight' cannot be 'first.weight': it is used already; tie a parameter before its module is called");
  EXPECT_EQ(names(net.named_parameters()).size(), 8u);
}

TEST_F(Modules, CopiedParametersAreNotTied) {
  Tied net{g};
  get_params({net.second.weight}, cpu());
  EXPECT_EQ(messageOf([&] { net.second.weight = net.first.weight; }),
            "'second.weight' cannot be 'first.weight': 'second.weight.cpu' begins like it; tie a parameter before it "
            "is copied");
  get_params({net.first.bias}, cpu());
  EXPECT_NO_THROW(net.second.bias = net.first.bias);
}
