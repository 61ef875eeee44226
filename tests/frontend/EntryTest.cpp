// User-defined entry points, the caches that they write, and slices at runtime positions.
#include "tests/frontend/Observe.h"
#include <sluice/sluice.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace sluice;
using sluice::test::messageOf;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

namespace {

struct Entry : testing::Test {
  Graph g{"test"};
  Tensor x = g.input("x", f32, {2, 8}), place = g.input("place", i32, {});
  nn::Module root{g};
  Tensor sum = root.cache("sum", {2, 8});

  std::string refusal(const std::function<void()> &build) {
    return messageOf([&] { g.entry("add", build); });
  }
};

} // namespace

TEST_F(Entry, HasItsOwnOutputsAndWrites) {
  g.output("y", x);
  g.entry("add", [&] {
    Tensor now = sum;
    now.copy_(now + x);
    g.output("y", now);
  });
  std::string text = g.str();
  EXPECT_THAT(text, AllOf(HasSubstr("sluice.state cache @sum : tensor<2x8xf32> = <\"constant\", 0.000000e+00 : f64>"),
                          HasSubstr("sluice.output \"y\", %x :"), HasSubstr("in \"add\" : tensor<2x8xf32>")));
  EXPECT_EQ(g.states()[0].kind, "cache");
}

TEST_F(Entry, MayBeAllThatAGraphHas) {
  g.entry("add", [&] { g.output("y", x); });
  EXPECT_THAT(g.str(), HasSubstr("sluice.output \"y\", %x in \"add\""));
}

TEST_F(Entry, HasANameOfItsOwn) {
  auto build = [&] { g.output("y", x); };
  EXPECT_THAT(messageOf([&] { g.entry("predict", build); }),
              HasSubstr("'predict' cannot name an entry point: the compiler adds an entry point with this name"));
  EXPECT_THAT(messageOf([&] { g.entry("a.b", build); }),
              HasSubstr("'a.b' cannot name an entry point: a name starts with a letter or '_', and continues "
                        "with letters, digits, '_' and '-'"));
  g.entry("add", build);
  EXPECT_THAT(refusal(build), HasSubstr("there is already an entry point 'add'"));
}

TEST_F(Entry, HasNothingOfTraining) {
  Tensor loss = x.mean();
  EXPECT_THAT(refusal([&] { g.metric("m", loss); }), HasSubstr("metric has no place in the entry point 'add'"));
  EXPECT_THAT(refusal([&] { g.entry("other", [] {}); }), HasSubstr("entry has no place in the entry point 'add'"));
  Tensor weight = root.parameter("weight", {2, 8}, init::zeros());
  EXPECT_THAT(refusal([&] { g.minimize((weight * x).mean(), optim::SGD{.lr = 1}); }),
              HasSubstr("minimize has no place in the entry point 'add'"));
  EXPECT_THAT(refusal([&] { weight.copy_(x); }), HasSubstr("the entry point 'add' can only write caches"));
}

TEST_F(Entry, DoesSomething) {
  EXPECT_THAT(refusal([] {}), HasSubstr("the entry point 'add' has no output and writes nothing"));
}

TEST_F(Entry, GivesAnOutputAndWritesACacheOnce) {
  EXPECT_THAT(refusal([&] {
                g.output("y", x);
                g.output("y", x);
              }),
              HasSubstr("there is already in 'add' an output 'y'"));
  EXPECT_THAT(messageOf([&] {
                g.entry("twice", [&] {
                  Tensor one = sum, other = sum;
                  one.copy_(x);
                  other.copy_(x);
                });
              }),
              HasSubstr("'sum' is updated twice a call"));
}

TEST_F(Entry, AloneWritesCaches) {
  EXPECT_THAT(messageOf([&] { sum.copy_(x); }),
              HasSubstr("'sum' is a cache, which only entry points of Graph::entry can write"));
}

TEST_F(Entry, IsOverWhenItsFunctionThrows) {
  EXPECT_EQ(refusal([] { throw Error("no", SourceLocation()); }), "no");
  g.output("y", x);
  EXPECT_THAT(g.str(), Not(HasSubstr("in \"add\"")));
}

TEST_F(Entry, SlicesAtPlacesOfData) {
  Tensor part = narrow(x, -1, place, 3);
  EXPECT_EQ(part.shape().str(), "[2, 3]");
  EXPECT_EQ(slice_scatter(x, part, 1, place).shape().str(), "[2, 8]");
  EXPECT_THAT(messageOf([&] { narrow(x, 1, x, 3); }), HasSubstr("begins at a scalar of i32 or i64, not at f32[2, 8]"));
  EXPECT_THAT(messageOf([&] { narrow(x, 1, place, 9); }), HasSubstr("a slice of 9 elements is in no dimension of 8"));
  EXPECT_THAT(messageOf([&] { slice_scatter(x, g.ones({2, 9}), 1, place); }), HasSubstr("9"));
}

TEST(Sizes, AreEntryPointsOverSharedStates) {
  Graph g{"sized"};
  nn::Module root{g};
  nn::Linear fc{&root, "fc", 3, 2};
  g.sizes("T", {4, 6}, [&](std::int64_t t) { g.output("y", fc(g.input("x", f32, {t, 3}))); });
  g.input("other", f32, {2});
  std::string text = g.str();
  EXPECT_THAT(text, HasSubstr("sluice.graph [\"x\", \"x\", \"other\"]"));
  EXPECT_THAT(text, HasSubstr("in \"predict-T6\" : tensor<6x2xf32>"));
  EXPECT_EQ(g.states().size(), 2u);
}

TEST(Sizes, ThatAreNoneAreRefused) {
  Graph g{"sized"};
  Tensor x = g.input("x", f32, {2});
  auto nothing = [](std::int64_t) {};
  EXPECT_EQ(messageOf([&] { g.sizes("", {1}, nothing); }),
            "sizes: a dimension has a name of letters, digits and '_', not ''");
  EXPECT_EQ(messageOf([&] { g.sizes("T", {}, nothing); }), "sizes: 'T' has no sizes");
  EXPECT_EQ(messageOf([&] { g.sizes("T", {4, 0}, nothing); }), "sizes: a size of 'T' is positive, not 0");
  EXPECT_EQ(messageOf([&] { g.sizes("T", {4, 4}, nothing); }), "sizes: 'T' has the size 4 twice");
  EXPECT_EQ(messageOf([&] { g.sizes("T", {4}, nothing); }), "sizes: 'predict-T4' has no output");
  EXPECT_EQ(messageOf([&] { g.sizes("T", {4}, [&](std::int64_t) { g.input("x", f32, {4}); }); }),
            "there is already an input 'x'");
  g.sizes("T", {4, 6}, [&](std::int64_t t) { g.output("y", g.input("z", f32, {t})); });
  EXPECT_EQ(messageOf([&] { g.input("z", f32, {4}); }), "there is already an input 'z'");
  EXPECT_EQ(messageOf([&] { g.output("plain", x); }),
            "output: 'plain' is of no size, and the graph predicts for several sizes");
  EXPECT_EQ(messageOf([&] { g.entry("other", [&] { g.sizes("S", {1}, nothing); }); }),
            "sizes has no place in the entry point 'other'");
  Graph plain{"plain"};
  plain.output("y", plain.input("x", f32, {2}));
  EXPECT_EQ(messageOf([&] { plain.sizes("T", {4}, nothing); }), "sizes: the graph has outputs of no size already");
}
