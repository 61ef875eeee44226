// User functions that build ops within an op: a step of a scan, a branch.
#pragma once

#include "frontend/graph/Call.h"

namespace sluice::detail {

llvm::SmallVector<mlir::Value> valuesOf(llvm::ArrayRef<Tensor> tensors);
std::vector<Tensor> tensorsOf(GraphImpl &graph, mlir::ValueRange values);

/// Fails unless the block contains only computation on values; `what` names the block.
void requireValueOps(const Call &call, mlir::Block &block, const char *what);

/// A block for an op that does not exist yet. Ops are built into the block until it is closed. If no op takes the
/// block, the graph keeps it, without operands, because users may hold its values.
class NestedBlock {
public:
  explicit NestedBlock(GraphImpl &graph);
  NestedBlock(const NestedBlock &) = delete;
  ~NestedBlock();
  mlir::Block &operator*() const { return *block; }
  mlir::Block *operator->() const { return block.get(); }
  void close();
  mlir::Block *release() { return block.release(); }

private:
  GraphImpl &graph;
  std::unique_ptr<mlir::Block> block = std::make_unique<mlir::Block>();
  mlir::OpBuilder::InsertPoint before;
  bool isOpen = true;
};

} // namespace sluice::detail
