// Named dimensions, states, and files.
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
  EXPECT_EQ(states[2].kind, "hyper");
}

TEST(Save, WritesWhatStrGives) {
  Graph g = small();
  TemporaryFolder folder;
  std::string path = folder / "small.mlir";
  g.save(path);
  EXPECT_EQ(contentOf(path), g.str());
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
