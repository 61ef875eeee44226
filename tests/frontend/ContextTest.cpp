// Graphs use the MLIR contexts of destroyed graphs, so that dialects are loaded once.
#include "frontend/graph/GraphImpl.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "sluice/sluice.h"
#include <gtest/gtest.h>

using namespace sluice;

/// Whether an earlier graph has loaded the dialect that marks its context; then marks the context of this graph.
static bool isMarked(const Graph &graph) {
  mlir::MLIRContext &context = detail::Access::graph(graph)->context;
  bool marked = context.getLoadedDialect<mlir::func::FuncDialect>() != nullptr;
  context.loadDialect<mlir::func::FuncDialect>();
  return marked;
}

/// A graph with one op, and a handle to its value.
static std::pair<Graph, Tensor> build() {
  Graph graph{"context"};
  Tensor x = graph.input("x", f32, {2});
  Tensor y = relu(x);
  return {graph, y};
}

TEST(Context, IsUsedByLaterGraphs) {
  isMarked(Graph("first"));
  EXPECT_TRUE(isMarked(Graph("second")));
}

TEST(Context, BelongsToOneGraphAtATime) {
  std::vector<Graph> alive;
  for (int number = 0; number < 6; ++number) // more than are kept
    alive.emplace_back("one");
  std::set<mlir::MLIRContext *> contexts;
  for (const Graph &graph : alive)
    contexts.insert(&detail::Access::graph(graph)->context);
  EXPECT_EQ(contexts.size(), alive.size());
}

TEST(Context, LivesAsLongAsTheHandlesOfAGraph) {
  Tensor kept = build().second;
  mlir::MLIRContext *context = &detail::Access::graph(kept)->context;
  EXPECT_NE(&detail::Access::graph(build().first)->context, context);
  EXPECT_EQ(kept.shape().size(), 1u);
}

// Tests that the types and attributes of many graphs do not gather in one context.
TEST(Context, IsDestroyedAfterManyGraphs) {
  constexpr int kMore = 200;
  int fresh = 0;
  for (int number = 0; number < kMore; ++number)
    fresh += !isMarked(Graph("one"));
  EXPECT_GE(fresh, 2);
  EXPECT_LE(fresh, kMore / 10);
}
