// The text form: parsing it restores the graph.
#include "frontend/graph/GraphImpl.h"
#include <sluice/sluice.h>

#include "mlir/Parser/Parser.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace sluice;
using testing::HasSubstr;

static std::string print(mlir::Operation *op) {
  std::string text;
  llvm::raw_string_ostream os(text);
  op->print(os, mlir::OpPrintingFlags().enableDebugInfo());
  return text + "\n";
}

static std::string reparsed(const std::string &text) {
  mlir::MLIRContext context;
  context.loadDialect<ir::SluiceDialect>();
  auto module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
  return module ? print(*module) : "does not parse";
}

namespace {

struct Every : nn::Module {
  using Module::Module;
  nn::Conv2d conv{this, "conv", 3, 6, 3, {.stride = 2, .padding = 1, .groups = 3}};
  nn::BatchNorm2d bn{this, "bn", 6};
  nn::Linear fc{this, "fc", 24, 5};
  Tensor forward(Tensor x) override {
    x = max_pool2d(bn(conv(x)), 2, {.ceil_mode = true});
    x = leaky_relu(x, 0.2) + clip(x, -1, 1) + elu(x) + gelu(x, Gelu::tanh);
    x = cat({x.slice(1, 0, 3), pad(x.slice(1, 3), {0, 0, 0, 0, 0, 0})}, 1);
    return fc(x.permute({0, 2, 3, 1}).flatten(1));
  }
};

Graph every() {
  Graph g{"every"};
  g.set_capacity(32);
  g.set_data("mnist-10k");
  g.set_shuffle(false);
  Tensor image = g.input("image", u8, {Dim{"batch"}, 3, 8, 8}), label = g.input("label", i32, {Dim{"batch"}});
  Every net{g};
  Tensor y = net(image.to(f32) / 255);
  g.output("probabilities", softmax(y, -1));
  g.metric("accuracy", accuracy(y, label));
  g.minimize(cross_entropy(y, label), optim::SGD{.lr = 0.1, .momentum = 0.9, .weight_decay = 1e-4});
  return g;
}

} // namespace

TEST(Text, OfTrainingRoundTrips) {
  Graph g{"training"};
  nn::Module root{g};
  nn::Linear fc{&root, "fc", 24, 5};
  optim::Options options{.groups = {{.params = {"*.bias"}, .lr_factor = 2, .weight_decay = 0}},
                         .clip_grad_value = 0.5,
                         .clip_grad_norm = 1.0,
                         .schedule =
                             optim::SequentialLR{{optim::LinearLR{}, optim::CosineAnnealingLR{.T_max = 90}}, {10}},
                         .ema = optim::EMA{.decay = 0.99},
                         .loss_scale = optim::LossScale{.growth_interval = 100}};
  g.minimize(fc(g.input("x", f32, {Dim{"batch"}, 24})).square().mean(), optim::AdamW{.lr = 3e-4}, options);
  std::string text = g.str();
  EXPECT_EQ(reparsed(text), text);
  EXPECT_THAT(text, HasSubstr("groups [#sluice.parameter_group<parameters = [@fc.bias], optimizer = "
                              "#sluice.adam<beta1 = 9.000000e-01 : f64"));
  EXPECT_THAT(text,
              HasSubstr("clip [#sluice.clip_grad_value<clip_value = 5.000000e-01 : f64>, #sluice.clip_grad_norm"));
  EXPECT_THAT(text, HasSubstr("milestones = [10]> [@fc.weight] groups"));
  EXPECT_THAT(text, HasSubstr("> loss_scale <init_scale = 6.553600e+04 : f64, growth_factor = "
                              "2.000000e+00 : f64, backoff_factor = 5.000000e-01 : f64, growth_interval = 100>"));
}

TEST(Text, RoundTrips) {
  std::string text = every().str();
  EXPECT_EQ(reparsed(text), text);
}

// Names of other frameworks.
TEST(Text, OfFreeNamesRoundTrips) {
  const std::string names[] = {"387",
                               "serving_default_input_2:0",
                               "/encoder/out",
                               "x y",
                               "a=b",
                               "..",
                               "-",
                               "qu\"ote \\ \\0A %d",
                               "@w",
                               "\u043a\u043b\u044e\u0447",
                               "it's",
                               "a\\",
                               std::string(1024, 'n')};
  Graph g{"names"};
  detail::GraphImpl &graph = *detail::Access::graph(g);
  for (const std::string &name : names) {
    Tensor x = g.input(name, f32, {Dim{"batch"}, 2});
    ir::StateOp state =
        graph.addState(ir::StateKind::Parameter, name, mlir::RankedTensorType::get({2}, graph.elementType(f32)),
                       init::zeros(), /*device=*/{}, SourceLocation());
    g.output(name, x * detail::Access::tensor(graph, graph.read(state, /*device=*/{}, SourceLocation())));
  }
  g.entry("x", [&] { g.output("y", g.input("z", f32, {2})); });
  g.output("x y z", g.input("x y z", f32, {2})); // is no result of the entry point x
  EXPECT_EQ(reparsed(g.str()), g.str());
  EXPECT_THAT(g.str(), HasSubstr("sluice.output \"qu\\22ote \\\\ \\\\0A %d\""));
}

TEST(Text, HeadsTheModule) {
  std::string text = every().str();
  EXPECT_THAT(text, HasSubstr("module @every {\n  sluice.model \"every\" format 2 phase \"model\" capacity 32 data "
                              "\"mnist-10k\" {sluice.shuffle = false} loc"));
  EXPECT_THAT(text, HasSubstr("sluice.graph [\"image\", \"label\"] ("));
}

TEST(Text, KeepsTheUsersLines) {
  Graph g{"test"};
  Tensor x = g.input("x", f32, {4});
  int line = __LINE__ + 1;
  g.output("y", x + x);
  EXPECT_THAT(g.str(), HasSubstr("loc(\"TextTest.cpp\":" + std::to_string(line) + ":"));
}

TEST(Text, ModuleOfGivesTheVerifiedModule) {
  Graph g = every();
  mlir::ModuleOp module = moduleOf(g);
  EXPECT_EQ(module.getName(), "every");
}
