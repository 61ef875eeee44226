// Tests that errors and ops are located at lines of the user, not in standard-library headers or in regions that ended.
// Also tests the exit of a program that does not catch an error.
#include "frontend/graph/GraphImpl.h"
#include "ir/text/DiagnosticText.h"
#include "tests/frontend/Observe.h"
#include <sluice/sluice.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <numeric>
#include <stdexcept>

using namespace sluice;
using sluice::test::messageOf;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

namespace {

struct Lines : testing::Test {
  Graph g{"test"};
  Tensor x = g.input("x", f32, {Dim{"batch"}, 3}), rows = g.input("rows", f32, {5, 3});
  nn::Module root{g};

  std::string at(unsigned line) { return "LinesTest.cpp:" + std::to_string(line) + ":"; }
};

/// Layers that std::make_unique constructs. Their default argument is a line of the standard header.
struct Stored : nn::Module {
  using Module::Module;
  std::unique_ptr<nn::Linear> fc = std::make_unique<nn::Linear>(this, "fc", 3, 4);
  std::unique_ptr<Stored> inner;
  Tensor forward(Tensor x) override { return (*fc)(x); }
};

/// Sums with the standard library. The line of each `+` is in its header.
struct Sum : nn::Module {
  using Module::Module;
  Tensor forward(Tensor a, Tensor b) override {
    std::vector<Tensor> terms = {a, b};
    return std::accumulate(terms.begin() + 1, terms.end(), terms[0]);
  }
};

std::string textOf(const std::function<void()> &use) {
  try {
    use();
  } catch (const Error &error) {
    return error.what();
  }
  return "no error";
}

} // namespace

// --- nodes of imported models

TEST_F(Lines, AnImportedOpIsAtItsNode) {
  detail::GraphImpl &graph = *detail::Access::graph(g);
  graph.node = "/encoder/Relu:0";
  Tensor y = relu(x);
  EXPECT_THAT(
      textOf([&] { y + rows; }),
      testing::StartsWith("/encoder/Relu:0: error: +: sizes do not broadcast: batch and 5 in dimension -2 "
                          "([batch, 3] x [5, 3])\n/encoder/Relu:0: note: [batch, 3] created here\nLinesTest.cpp:"));
  graph.node.clear();
  g.output("y", y);
  EXPECT_THAT(g.str(), HasSubstr("loc(\"/encoder/Relu:0\")"));
  mlir::Location node = detail::Access::value(y).getLoc();
  EXPECT_EQ(ir::printLocation(node), "/encoder/Relu:0");
  EXPECT_EQ(ir::printLocation(graph.toLocation({"two\nlines\u009b", 0, 0})), "two_lines\u00a0");
  graph.node = "clear\x1b[2J";
  EXPECT_EQ(detail::locationOf(graph.toLocation(SourceLocation())).str(), "clear\\x1b[2J");
  EXPECT_THAT(textOf([&] { y + rows; }), testing::StartsWith("clear\\x1b[2J: error: +: "));
  graph.node.clear();
  EXPECT_EQ(ir::printLocation(graph.toLocation({"model.cpp", 3, 4})), "model.cpp:3:4");
  EXPECT_EQ(ir::printLocation(mlir::FusedLoc::get(&graph.context, {mlir::UnknownLoc::get(&graph.context), node})),
            "/encoder/Relu:0");
  unsigned line = __LINE__ + 1;
  std::string text = textOf([&] { y + rows; });
  EXPECT_THAT(text, AllOf(HasSubstr(at(line)), HasSubstr("/encoder/Relu:0: note: [batch, 3] created here")));
}

// --- lines in the standard library

TEST_F(Lines, AStateMadeByMakeUniqueIsAtItsModule) {
  unsigned line = __LINE__ + 1;
  Stored net{&root, "net"};
  g.output("y", net(x));
  EXPECT_THAT(g.str(), AllOf(HasSubstr("\"LinesTest.cpp\":" + std::to_string(line) + ":"), Not(HasSubstr(".h\":"))));
}

TEST_F(Lines, AnErrorOfMakeUniqueIsAtTheEnclosingModule) {
  unsigned line = __LINE__ + 1;
  Stored net{&root, "net"};
  net.inner = std::make_unique<Stored>(&net, "inner");
  EXPECT_THAT(textOf([&] { std::make_unique<nn::Dropout>(net.inner.get(), "drop", 2.0); }), HasSubstr(at(line)));
  EXPECT_THAT(textOf([&] { std::make_unique<nn::Linear>(&net, "wide", 0, 3); }), HasSubstr(at(line)));
  EXPECT_THAT(textOf([&] { std::make_unique<nn::Conv2d>(&net, "conv", 4, 6, 3, nn::Conv2dOptions{.groups = 4}); }),
              HasSubstr(at(line)));
}

TEST_F(Lines, ALayerOfASequenceIsAtTheSequence) {
  unsigned line = __LINE__ + 1;
  nn::Sequential layers{&root, "layers"};
  EXPECT_THAT(textOf([&] { layers.add<nn::Linear>(0, 3); }), HasSubstr(at(line)));
}

TEST_F(Lines, AnOpInAnAlgorithmIsAtTheModulesCall) {
  Sum sum{&root, "sum"};
  unsigned line = __LINE__ + 1;
  std::string text = textOf([&] { sum(x, rows.slice(0, 0, 2).slice(1, 0, 2)); });
  EXPECT_EQ(text.find(at(line)), 0u) << text;
  EXPECT_THAT(text, Not(HasSubstr("stl_numeric.h")));
}

TEST_F(Lines, AnOpInAnAlgorithmOutsideOfModulesIsAtItsOperand) {
  std::vector<Tensor> terms = {x, x};
  unsigned line = __LINE__ + 1;
  Tensor first = x * 2.0;
  g.output("y", std::accumulate(terms.begin(), terms.end(), first));
  EXPECT_THAT(g.str(), AllOf(HasSubstr("\"LinesTest.cpp\":" + std::to_string(line) + ":"), Not(HasSubstr(".h\":"))));
}

// --- values that leave a branch or a step

TEST_F(Lines, AValueOfABranchStaysInIt) {
  Tensor kept;
  unsigned made = __LINE__ + 1;
  auto branch = [&] { return kept = x * 2.0; };
  Tensor y = cond(rows.sum() > 0.0, branch, [&] { return x; });
  unsigned line = __LINE__ + 1;
  std::string text = textOf([&] { kept + y; });
  EXPECT_EQ(text.find(at(line)), 0u) << text;
  EXPECT_THAT(text, AllOf(HasSubstr("+: [batch, 3], made at " + at(made)),
                          HasSubstr("is a value within a branch of cond or a step of scan; outside of it, use what "
                                    "cond or scan returns")));
}

TEST_F(Lines, AValueOfABranchIsNotOfTheOther) {
  Tensor kept;
  EXPECT_THAT(messageOf([&] { cond(rows.sum() > 0.0, [&] { return kept = x * 2.0; }, [&] { return kept * 2.0; }); }),
              HasSubstr("is a value within a branch of cond"));
  EXPECT_THAT(messageOf([&] { cond(rows.sum() > 0.0, [&] { return kept = x * 2.0; }, [&] { return kept; }); }),
              HasSubstr("is a value within a branch of cond"));
}

TEST_F(Lines, AValueOfAStepStaysInIt) {
  Tensor slice, product, w = root.parameter("w", {3}, init::ones());
  auto step = [&](const auto &carried, const auto &slices) {
    slice = slices[0];
    product = carried[0] * slices[0];
    Tensor within = cond(product.sum() > 0.0, [&] { return product * w; }, [&] { return slice; }); // allowed
    return ScanStep{{within}, {}};
  };
  Tensor last = scan({w}, {rows}, 0, step).carried[0];
  for (const Tensor &value : {slice, product})
    for (const std::function<void()> &use : std::vector<std::function<void()>>{
             [&] { value.sum(); },
             [&] { g.output("y", value); },
             [&] { g.metric("m", value.sum()); },
             [&] { cat({last, value}, 0); },
             [&] { grad(last.sum(), {value}); },
             [&] { w.copy_(value); },
             [&] { scan({value}, {rows}, 0, step); },
             [&] { g.minimize(value, optim::SGD{}); },
         })
      EXPECT_THAT(messageOf(use), HasSubstr("is a value within a branch of cond or a step of scan"));
  g.output("y", last);
  EXPECT_THAT(messageOf([&] { g.str(); }), "no error");
}

TEST_F(Lines, AValueOfAStepThatFailedIsStillRefused) {
  Tensor kept;
  auto step = [&](const auto &carried, const auto &slices) -> ScanStep {
    kept = carried[0] + slices[0];
    throw std::runtime_error("of the user");
  };
  EXPECT_THROW(scan({rows.select(0, 0)}, {rows}, 0, step), std::runtime_error);
  EXPECT_THROW(cond(
                   rows.sum() > 0.0, [&] { return x; }, [&]() -> Tensor { throw std::runtime_error("of the user"); }),
               std::runtime_error);
  EXPECT_THAT(messageOf([&] { kept * 2.0; }), HasSubstr("is a value within a branch of cond or a step of scan"));
  g.output("y", rows * 2.0);
  EXPECT_THAT(messageOf([&] { g.str(); }), "no error");
}

// --- uncaught errors

static void fail() { throw Error("x: cannot be read", SourceLocation("model.cpp", 3, 7), {}, /*code=*/3); }

static void failOtherwise() { throw std::runtime_error("not of Sluice"); }

static void uncaught(void (*body)()) noexcept { body(); }

TEST(Uncaught, AnErrorEndsTheProgramWithItsTextAndCode) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(uncaught(fail), testing::ExitedWithCode(3), "^model.cpp:3:7: error: x: cannot be read\n$");
}

TEST(Uncaught, AnotherExceptionAborts) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(uncaught(failOtherwise), testing::KilledBySignal(SIGABRT), "not of Sluice");
}

TEST_F(Lines, AnErrorHasACode) {
  auto codeOf = [](const std::function<void()> &use) {
    try {
      use();
    } catch (const Error &error) {
      return error.code();
    }
    return 0;
  };
  g.output("y", x);
  EXPECT_EQ(codeOf([&] { x + rows; }), 2);
  EXPECT_EQ(codeOf([&] { g.save("no such folder/x.mlir"); }), 3);
  EXPECT_EQ(codeOf([&] { root.parameter("w", {3}, init::from_npy("no such.npy")); }), 3);
}
