// Call: one function of the API at work. It knows the function's name, its operands and the user's line; it builds ops
// there and throws errors that show them.
#pragma once

#include "frontend/graph/GraphImpl.h"
#include "ir/ops/model/Init.h"
#include "sluice/ops.h"

namespace sluice::detail {

/// Numbers the calls of the API; those within another are part of it.
class CallNumber {
public:
  explicit CallNumber(GraphImpl &graph) : graph(graph) { graph.callNumber += graph.callDepth++ == 0; }
  CallNumber(const CallNumber &) = delete;
  ~CallNumber() { --graph.callDepth; }

private:
  GraphImpl &graph;
};

/// Whether a function takes tensors whose batch is merged with the dimension behind it. Their values have both: `?` and the
/// other, next to each other. What sees one dimension there is the user, and so are the functions that count dimensions:
/// `axis` gives a dimension of the value for one that the user sees.
enum class Rows { own, merged };

class Call {
public:
  /// Throws unless all operands exist, belong to one graph and, where they are fixed on devices, on one, and have rows that
  /// the function takes. Absent optional operands are simply not listed.
  Call(const char *function, llvm::ArrayRef<Tensor> operands, SourceLocation location, Rows rows = Rows::own);
  Call(const char *function, const Arg &x, Rows rows = Rows::own) : Call(function, {x.tensor}, x.where, rows) {}
  Call(const char *function, const Arg &a, const Arg &b, Rows rows = Rows::own)
      : Call(function, {a.tensor, b.tensor}, a.where, rows) {}

  /// "model.cpp:13:18: error: matmul: <message> ([batch, 784] x [512, 10])", with notes at the operands' lines.
  [[noreturn]] void fail(const std::string &message) const;

  // Questions about operands.
  static mlir::RankedTensorType type(const Tensor &x) {
    return llvm::cast<mlir::RankedTensorType>(Access::value(x).getType());
  }
  static llvm::ArrayRef<int64_t> shape(const Tensor &x) { return type(x).getShape(); }
  static int64_t rank(const Tensor &x) { return type(x).getRank(); }
  /// The dimensions that the user sees.
  static int64_t seenRank(const Tensor &x) { return rank(x) - Access::isMerged(x); }
  /// Where the batch is that is merged with the dimension behind it; -1: it is not.
  static int64_t mergedAt(const Tensor &x);
  /// The same value with its rows merged or not.
  Tensor seen(const Tensor &x, bool merged) { return Access::tensor(graph, Access::value(x), merged); }
  std::string print(const Tensor &x) const { return graph.printShape(type(x), Access::isMerged(x)); }
  /// A size, or the name of the batch dimension.
  std::string print(int64_t size) const;
  /// With as many digits as it takes, up to six.
  static std::string print(double number);

  // Requirements; each fails with a message.
  void requireGraph(const GraphImpl &owner) const;
  /// `other` exists and is of the operands' graph.
  void requireGraph(const Tensor &other) const;
  void requireFloat(const Tensor &x) const;
  /// A float without dimensions.
  void requireScalar(const Tensor &x) const;
  void requireSameDType(const Tensor &a, const Tensor &b) const;
  void requireRank(const char *operand, const Tensor &x, int64_t rank) const;
  /// The dimension of the value, counted from the front; fails for merged rows, which are two.
  int64_t axis(const Tensor &x, int64_t dim) const;
  /// The same for a dimension that the user sees, counted from the front: its first one, of merged rows.
  static int64_t placeOf(const Tensor &x, int64_t seen);
  int64_t axisOf(int64_t rank, int64_t dim) const;
  /// Sorted and counted from the front, both of merged rows; all if none are given.
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

  /// x in a buffer of its own on a device; null: placed later.
  Tensor copy(const Tensor &x, mlir::StringAttr device, ir::CopyReason reason);
  /// `update` records the value that training stores in a module's buffer. It replaces the value that an earlier call
  /// stored. `write` records a value that the user writes into a parameter or buffer.
  void update(const Tensor &buffer, const Tensor &value);
  /// The value of a statistic after the earlier batch norms of a training step; the statistic itself if there are none.
  Tensor latest(const Tensor &statistic);
  void write(const Tensor &existing, const Tensor &value);
  /// What a training step draws random numbers by.
  Tensor key();
  /// A number as a tensor of x's dtype and shape.
  Tensor literal(double value, const Tensor &x);
  Tensor full(double value, mlir::RankedTensorType type);
  /// start, start + step, ... along an axis.
  Tensor iota(mlir::Type type, int64_t axis, double start, double step);
  /// A vector of a type of floats.
  Tensor vector(llvm::ArrayRef<double> elements, mlir::Type element);
  Tensor cast(const Tensor &x, DType dtype);
  /// Fails where rows would mix: as many elements lie before the batch dimension in both shapes.
  Tensor reshape(const Tensor &x, llvm::ArrayRef<int64_t> shape);
  /// Dimension i of the result is dimension order[i] of x; nothing to do gives x itself.
  Tensor permute(const Tensor &x, llvm::ArrayRef<int64_t> order);
  /// Broadcasts by NumPy's rules; nothing to do gives x itself.
  Tensor broadcast(const Tensor &x, llvm::ArrayRef<int64_t> shape);
  /// On the device of the call's operands, where the result is needed.
  Tensor expand(const Tensor &x, llvm::ArrayRef<int64_t> dims, llvm::ArrayRef<int64_t> shape);
  /// x in the shape in which it broadcasts beside a tensor, whose rows may be merged.
  Tensor beside(const Tensor &other, const Tensor &x);
  /// y plus a vector along one dimension of it, if there is one.
  Tensor plusBias(const Tensor &y, const Tensor &bias, int64_t axis);
  /// The operands that exist.
  static llvm::SmallVector<Tensor> present(std::initializer_list<Tensor> tensors);
  /// The shape that both broadcast to.
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

/// The least and the greatest value of a dtype, floats' infinities among them; of i64, the doubles next to them.
std::pair<double, double> rangeOf(DType dtype);
/// The product of the static sizes; too large a one is the largest number.
int64_t product(llvm::ArrayRef<int64_t> sizes);

} // namespace sluice::detail
