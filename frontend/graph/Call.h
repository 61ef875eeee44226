// Call: one call of an API function. Holds the function's name, its operands and the user's line. Builds ops at that
// line and throws errors that contain it.
#pragma once

#include "frontend/graph/GraphImpl.h"
#include "ir/ops/model/Init.h"
#include "sluice/ops.h"

namespace sluice::detail {

/// Numbers the outermost calls of the API; nested calls have the number of the outer call.
class CallNumber {
public:
  explicit CallNumber(GraphImpl &graph) : graph(graph) { graph.callNumber += graph.callDepth++ == 0; }
  CallNumber(const CallNumber &) = delete;
  ~CallNumber() { --graph.callDepth; }

private:
  GraphImpl &graph;
};

/// Whether a function accepts tensors whose batch is merged with the following dimension. Their values have both
/// dimensions, `?` and its neighbor. Users see one dimension, as do functions that count dimensions; `axis` maps a
/// user's dimension to the value's.
enum class Rows { own, merged };

class Call {
public:
  /// Throws unless all operands exist, belong to one graph, are not fixed on different devices, and have rows that the
  /// function accepts. Omit absent optional operands.
  Call(const char *function, llvm::ArrayRef<Tensor> operands, SourceLocation location, Rows rows = Rows::own);
  Call(const char *function, const Arg &x, Rows rows = Rows::own) : Call(function, {x.tensor}, x.where, rows) {}
  Call(const char *function, const Arg &a, const Arg &b, Rows rows = Rows::own)
      : Call(function, {a.tensor, b.tensor}, a.where, rows) {}

  /// "model.cpp:13:18: error: matmul: <message> ([batch, 784] x [512, 10])", with notes at the operands' lines.
  [[noreturn]] void fail(const std::string &message) const;

  // Queries on operands.
  static mlir::RankedTensorType type(const Tensor &x) {
    return llvm::cast<mlir::RankedTensorType>(Access::value(x).getType());
  }
  static llvm::ArrayRef<int64_t> shape(const Tensor &x) { return type(x).getShape(); }
  static int64_t rank(const Tensor &x) { return type(x).getRank(); }
  /// The number of dimensions that the user sees.
  static int64_t seenRank(const Tensor &x) { return rank(x) - Access::isMerged(x); }
  /// The position of the batch that is merged with the following dimension; -1 if it is not merged.
  static int64_t mergedAt(const Tensor &x);
  /// The same value with merged or unmerged rows.
  Tensor seen(const Tensor &x, bool merged) { return Access::tensor(graph, Access::value(x), merged); }
  std::string print(const Tensor &x) const { return graph.printShape(type(x), Access::isMerged(x)); }
  /// A size, or the name of the batch dimension.
  std::string print(int64_t size) const;
  /// Prints up to six significant digits.
  static std::string print(double number);

  // Requirements; each fails with a message.
  void requireGraph(const GraphImpl &owner) const;
  /// Throws unless `other` exists and belongs to the operands' graph.
  void requireGraph(const Tensor &other) const;
  void requireFloat(const Tensor &x) const;
  /// Throws unless x is a float without dimensions.
  void requireScalar(const Tensor &x) const;
  void requireSameDType(const Tensor &a, const Tensor &b) const;
  void requireRank(const char *operand, const Tensor &x, int64_t rank) const;
  /// The value's dimension, counted from the front, for the user's `dim`; fails for merged rows, which are two
  /// dimensions.
  int64_t axis(const Tensor &x, int64_t dim) const;
  /// Maps a dimension that the user sees, counted from the front, to the value's; merged rows, to the first of their
  /// two dimensions.
  static int64_t placeOf(const Tensor &x, int64_t seen);
  /// `dim` counted from the front, among `rank` dimensions; fails if it is out of range.
  int64_t axisOf(int64_t rank, int64_t dim) const;
  /// Sorted and counted from the front, with both dimensions of merged rows; all dimensions if none are given.
  llvm::SmallVector<int64_t> axes(const Tensor &x, const Axes &dims) const;

  // Ops.
  template <class Op>
  Tensor emit(llvm::ArrayRef<Tensor> operands, llvm::ArrayRef<mlir::NamedAttribute> attributes = {}) {
    return emitAll(Op::getOperationName(), operands, attributes).front();
  }
  llvm::SmallVector<Tensor> emitAll(llvm::StringRef op, llvm::ArrayRef<Tensor> operands,
                                    llvm::ArrayRef<mlir::NamedAttribute> attributes = {});
  mlir::NamedAttribute attribute(llvm::StringRef name, mlir::Attribute value);
  mlir::NamedAttribute list(llvm::StringRef name, llvm::ArrayRef<int64_t> values);
  mlir::NamedAttribute integer(llvm::StringRef name, int64_t value);
  mlir::NamedAttribute real(llvm::StringRef name, double value);
  mlir::NamedAttribute unit(llvm::StringRef name);

  /// x in a separate buffer on a device; null: placed later.
  Tensor copy(const Tensor &x, mlir::StringAttr device, ir::CopyReason reason);
  /// Records the value that training stores in a module's buffer; replaces the value of an earlier call. Does nothing
  /// in a replica's call and in an entry point.
  void update(const Tensor &buffer, const Tensor &value);
  /// The value of a statistic after the earlier batch norms of a training step; the statistic itself if there are none.
  Tensor latest(const Tensor &statistic);
  /// Records a value that the user writes into a parameter, buffer or cache.
  void write(const Tensor &existing, const Tensor &value);
  /// The random key of a training step.
  Tensor key();
  /// A number as a tensor of x's dtype and shape.
  Tensor literal(double value, const Tensor &x);
  Tensor full(double value, mlir::RankedTensorType type);
  /// start, start + step, ... along an axis.
  Tensor iota(mlir::Type type, int64_t axis, double start, double step);
  /// A constant vector of floats of type `element`.
  Tensor vector(llvm::ArrayRef<double> elements, mlir::Type element);
  Tensor cast(const Tensor &x, DType dtype);
  /// Fails if rows would mix: the dimensions before the batch must have the same product in both shapes.
  Tensor reshape(const Tensor &x, llvm::ArrayRef<int64_t> shape);
  /// Dimension i of the result is dimension order[i] of x; the identity returns x itself.
  Tensor permute(const Tensor &x, llvm::ArrayRef<int64_t> order);
  /// Broadcasts by NumPy's rules; returns x itself if the shapes are equal.
  Tensor broadcast(const Tensor &x, llvm::ArrayRef<int64_t> shape);
  /// The expansion is placed on the device of the call's operands, its consumer.
  Tensor expand(const Tensor &x, llvm::ArrayRef<int64_t> dims, llvm::ArrayRef<int64_t> shape);
  /// x reshaped to broadcast with a tensor whose rows may be merged.
  Tensor beside(const Tensor &other, const Tensor &x);
  /// y plus a vector along one dimension of y, if the vector exists.
  Tensor plusBias(const Tensor &y, const Tensor &bias, int64_t axis);
  /// The tensors that are not empty handles.
  static llvm::SmallVector<Tensor> present(std::initializer_list<Tensor> tensors);
  /// The common broadcast shape.
  llvm::SmallVector<int64_t> commonShape(llvm::ArrayRef<int64_t> a, llvm::ArrayRef<int64_t> b) const;

  GraphImpl &graph;

private:
  /// Fails if the value was created in a step or branch that has ended.
  void requireVisible(const Tensor &x) const;
  void requireOneDevice() const;
  void set(ir::StateOp state, const Tensor &value);
  void requireOwnRows() const;

  CallNumber number{graph};
  const char *function;
  llvm::SmallVector<Tensor, 3> operands;
  SourceLocation location;
};

/// The smallest and the largest value of a dtype, infinities for floats; for i64, the nearest doubles.
std::pair<double, double> rangeOf(DType dtype);
/// The product of the static sizes; saturates on overflow.
int64_t product(llvm::ArrayRef<int64_t> sizes);

} // namespace sluice::detail
