// Named dimensions, states, and files.
#include "frontend/graph/GraphImpl.h"
#include "ir/Module.h"
#include "tests/TemporaryFolder.h"
#include "tests/frontend/Observe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

using namespace sluice;
using namespace sluice::test;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {

struct Affine : nn::Module {
  using Module::Module;
  nn::Linear fc{this, "fc", 4, 2};
  Tensor forward(Tensor x) override { return fc(x); }
};

struct Wasteful : nn::Module {
  static constexpr int kLine = __LINE__;
  using Module::Module; // the initializers of members are evaluated on this line by the rules of C++
  nn::Conv2d conv1{this, "conv1", 3, 8, 3}, conv2{this, "conv2", 8, 8, 3};
  nn::Linear fc{this, "fc", 8, 2}, spare{this, "spare", 8, 2};
  nn::MaxPool2d pool{this, "pool", 2};
  Tensor scale = parameter("scale", {8}, init::ones());
  nn::Sequential block{this, "block"};
  Tensor forward(Tensor x) override {
    Tensor y = conv1(x);
    pool(conv2(y));
    block(y);
    return fc(y.mean({2, 3})); // reads conv1's output, as in an AlexNet from a benchmark
  }
};

/// Half of its layers are unused.
Graph wasteful() {
  Graph g{"wasteful"};
  Wasteful net{g};
  net.block.add<nn::BatchNorm2d>(8).add<nn::ReLU>();
  g.output("y", net(g.input("x", f32, {Dim{"batch"}, 3, 8, 8})));
  return g;
}

Graph small() {
  Graph g{"small"};
  Tensor x = g.input("x", f32, {Dim{"batch"}, 4});
  Affine net{g};
  g.output("y", net(x));
  return g;
}

} // namespace

TEST(NamedDims, OneNameIsOneDimension) {
  Graph g{"test"};
  Tensor a = g.input("a", f32, {Dim{"batch"}, Dim{"classes", 10}});
  Tensor b = g.input("b", f32, {Dim{"batch"}, Dim{"classes"}});
  EXPECT_EQ((a + b).shape().str(), "[batch, 10]");
  EXPECT_TRUE(b.size(0).symbolic());
  EXPECT_EQ(b.size(-1).size, 10);
}

TEST(States, AreListedInOrder) {
  Graph g{"test"};
  Tensor x = g.input("x", f32, {Dim{"batch"}, 4});
  Affine net{g};
  g.minimize(net(x).square().mean(), optim::SGD{.lr = 0.5});
  std::vector<Graph::State> states = g.states();
  ASSERT_EQ(states.size(), 3u);
  EXPECT_EQ(states[0].name, "fc.weight");
  EXPECT_EQ(states[0].shape.str(), "[2, 4]");
  EXPECT_EQ(states[1].elements, 2);
  EXPECT_EQ(states[2].name, "lr");
  EXPECT_EQ(states[2].kind, "hyperparameter");
}

TEST(ImportedFrom, IsUntrustedText) {
  Graph g{"imported"};
  g.output("y", g.input("x", f32, {2}) * 2);
  detail::GraphImpl &graph = *detail::Access::graph(g);
  graph.setImportedFrom({{"producer", "two\nlines"},
                         {"opset", "17"},
                         {"domain", ""},
                         {"doc string", std::string(5000, 'd')},
                         {"graph", "\xff" + std::string(4094, 'g') + "\u00e9"}});
  auto facts = ir::getModel(*graph.module)->getAttrOfType<mlir::DictionaryAttr>(ir::kImportedFromAttr);
  auto textOf = [&](const char *fact) { return facts.getAs<mlir::StringAttr>(fact).str(); };
  EXPECT_EQ(facts.size(), 4u);
  EXPECT_EQ(textOf("producer"), "two\nlines");
  EXPECT_EQ(textOf("opset"), "17");
  EXPECT_EQ(textOf("doc string").size(), 4096u);
  EXPECT_EQ(textOf("graph"), "\ufffd" + std::string(4093, 'g')); // no half of the last letter
  EXPECT_NO_THROW(g.str());
  ir::getModel(*graph.module)->setAttr(ir::kImportedFromAttr, graph.builder.getUnitAttr());
  EXPECT_THAT(messageOf([&] { g.str(); }), HasSubstr("must be a dictionary of at most 32 strings"));
}

TEST(Save, WritesWhatStrGives) {
  Graph g = small();
  TemporaryFolder folder;
  std::string path = folder / "small.mlir";
  g.save(path);
  EXPECT_EQ(contentOf(path), g.str());
}

TEST(checklist_57_dead_layers, AreReportedAtBuild) {
  Graph g = wasteful();
  TemporaryFolder folder;
  testing::internal::CaptureStderr();
  g.save(folder / "test.mlir");
  std::string text = testing::internal::GetCapturedStderr();
  auto warning = [](int line, const std::string &what) {
    return "GraphTest.cpp:" + std::to_string(Wasteful::kLine + line) +
           ":[0-9]+: warning: no output, metric or loss depends on " + what + "\n";
  };
  EXPECT_THAT(text, testing::MatchesRegex(warning(1, "parameter 'scale'") + warning(9, "layer 'conv2'") +
                                          warning(1, "layer 'spare'") + warning(9, "layer 'pool'") +
                                          warning(10, "layer 'block'")));
}

TEST(Save, WarnsAlsoIfTheGraphHasData) {
  Graph g = wasteful();
  g.output("data", g.constant(std::vector<float>(2000), {2000}));
  TemporaryFolder folder;
  testing::internal::CaptureStderr();
  g.save(folder / "test.mlir");
  EXPECT_EQ(access((folder / "test.mlir.safetensors").c_str(), R_OK), 0) << "the graph has no data file";
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              HasSubstr("warning: no output, metric or loss depends on layer 'conv2'"));
}

TEST(Save, TakesStepsOfScansAndWeightsOfTheirOwnForUses) {
  Graph g{"test"};
  Tensor x = g.input("x", f32, {Dim{"batch"}, 3, 4});
  nn::Module root{g};
  nn::Linear step{&root, "step", 4, 4}, tied{&root, "tied", 4, 4};
  ScanStep all = scan({x.select(1, 0)}, {x}, 1, [&](const auto &carried, const auto &slices) {
    return ScanStep{{step(carried[0]) + slices[0]}, {}};
  });
  g.metric("size", tied.weight.square().mean());
  g.output("y", all.carried[0]);
  ASSERT_EQ(g.unused().size(), 1u);
  EXPECT_EQ(g.unused()[0].what, "parameter 'tied.bias'");
}

TEST(Save, TakesCopiesOnDevicesAndWhatAGraphSetsForUses) {
  Graph g{"test"};
  g.set_devices("cpu,sim:0");
  Tensor x = g.input("x", f32, {3, 4});
  nn::Module root{g};
  nn::Linear own{&root, "own", 4, 4, {.bias = false}}, rate{&root, "rate", 4, 4, {.bias = false}},
      spare{&root, "spare", 4, 4, {.bias = false}};
  Tensor weight = get_params({own.weight}, gpu(0))[0];
  weight.copy_(weight - rate.weight.to(gpu(0)));
  g.output("y", x.sum());
  ASSERT_EQ(g.unused().size(), 1u);
  EXPECT_EQ(g.unused()[0].what, "layer 'spare'");
}

TEST(Save, LeavesNothingBehindWhenItFails) {
  Graph g = small();
  TemporaryFolder folder;
  std::string taken = folder / "taken";
  ASSERT_EQ(mkdir(taken.c_str(), 0700), 0);
  EXPECT_THAT(messageOf([&] { g.save(taken); }), HasSubstr(taken + ": cannot write: Is a directory"));
  EXPECT_THAT(folder.names(), ElementsAre("taken"));
}

TEST(Save, NamesAMissingFolder) {
  Graph g = small();
  EXPECT_EQ(messageOf([&] { g.save("/no/such/folder/x.mlir"); }),
            "/no/such/folder/x.mlir: cannot create: No such file or directory");
}

TEST(Save, ReportsAFullDisk) {
  Graph g = small();
  EXPECT_EQ(messageOf([&] { g.save("/dev/full"); }), "/dev/full: cannot write: No space left on device");
}

TEST(Save, RefusesAGraphWithoutResults) {
  Graph g{"test"};
  g.input("x", f32, {4});
  EXPECT_EQ(messageOf([&] { g.str(); }), "the graph 'test' has neither an output nor a loss");
}
