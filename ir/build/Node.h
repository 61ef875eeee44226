// Tensor values with operators, for gradients: `dY * (1.0 - y * y)` builds sluice ops.
#pragma once

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Value.h"

namespace sluice::ir {

class Node {
public:
  Node(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value value) : builder(&builder), loc(loc), value(value) {}
  operator mlir::Value() const { return value; }
  mlir::RankedTensorType type() const { return llvm::cast<mlir::RankedTensorType>(value.getType()); }

  /// A constant of this node's type.
  Node like(double constant) const;
  /// The least value of the element type, in every element.
  Node least() const;

  mlir::OpBuilder *builder;
  mlir::Location loc;
  mlir::Value value;
};

/// A constant of a type without its encoding.
Node full(mlir::OpBuilder &builder, mlir::Location loc, double constant, mlir::RankedTensorType type);
/// 0, 1, ... along the first dimension.
Node iota(mlir::OpBuilder &builder, mlir::Location loc, mlir::RankedTensorType type);
/// The rows of the call, as a scalar.
Node rowCount(mlir::OpBuilder &builder, mlir::Location loc, mlir::Type element);
Node operator-(Node a);
Node operator+(Node a, Node b);
Node operator-(Node a, Node b);
Node operator*(Node a, Node b);
Node operator/(Node a, Node b);
Node operator>(Node a, Node b);
Node operator<(Node a, Node b);
Node operator>=(Node a, Node b);
Node operator<=(Node a, Node b);
Node operator==(Node a, Node b);
Node operator!(Node a);
Node where(Node condition, Node a, Node b);
/// The larger, NaN if either is.
Node maximum(Node a, Node b);
/// A copy in a separate buffer.
Node copied(Node a);
Node pow(Node a, Node b);
Node max(Node a, Node b);
Node abs(Node a);
Node sign(Node a);
Node round(Node a);
Node exp(Node a);
Node log(Node a);
Node sin(Node a);
Node cos(Node a);
Node sinh(Node a);
Node cosh(Node a);
Node tanh(Node a);
Node sigmoid(Node a);
Node sqrt(Node a);
Node rsqrt(Node a);

/// Whether every element is known to be 0.
bool isZero(mlir::Value value);

/// `a` in another element type.
Node castTo(Node a, mlir::Type element);
/// `a` in the accumulator type of its elements: two-byte floats become f32.
Node widened(Node a);
/// Sum over `axes`; with `keepdims` they stay with size 1.
Node sum(Node a, llvm::ArrayRef<int64_t> axes, bool keepdims = false);
Node reshape(Node a, llvm::ArrayRef<int64_t> shape);
/// A vector with zeros appended, up to `size` elements.
Node padded(Node a, int64_t size);
/// The first `size` elements of a vector.
Node leading(Node a, int64_t size);
/// `size` elements of the last dimension, from `begin` on.
Node columns(Node a, int64_t begin, int64_t size);
/// Concatenates along `axis`.
Node joined(llvm::ArrayRef<Node> nodes, int64_t axis);
/// The slice of `a` at one position along its first dimension, or at several.
Node at(Node a, Node place);
/// Zeros, `size` along the first dimension, plus the slices of `a` at `places`.
Node addedAt(Node a, Node places, int64_t size);
/// Broadcasts `a` to `type`'s shape: dimension i of a is dimension dims[i].
Node expand(Node a, llvm::ArrayRef<int64_t> dims, mlir::RankedTensorType type);
/// Inverse of a reduction over `axes` without keepdims: repeats `a` along them to `type`'s shape.
Node expandOver(Node a, llvm::ArrayRef<int64_t> axes, mlir::RankedTensorType type);
/// The slice of `x` along `axis` at an index that is data. It lacks that dimension.
Node sliceAt(Node x, mlir::Value index, int64_t axis);
/// `x` with `part`, of the same rank, stored along `axis` from an index that is data.
Node updatedAt(Node x, Node part, mlir::Value index, int64_t axis);
/// The same for a slice, which lacks the dimension `axis`.
Node withSliceAt(Node x, Node slice, mlir::Value index, int64_t axis);
/// The run-time number of elements of `x` along `axes`, in x's element type, expanded to `like`'s shape.
Node count(Node x, llvm::ArrayRef<int64_t> axes, Node like);
/// d gelu(a) / da * dY. `tanhForm`: of the tanh approximation.
Node geluGradient(Node a, Node dY, bool tanhForm);

#define SLUICE_MIXED(op)                                                                                               \
  inline Node operator op(Node a, double b) { return a op a.like(b); }                                                 \
  inline Node operator op(double a, Node b) { return b.like(a) op b; }
SLUICE_MIXED(+)
SLUICE_MIXED(-)
SLUICE_MIXED(*)
SLUICE_MIXED(/)
SLUICE_MIXED(>)
SLUICE_MIXED(>=)
SLUICE_MIXED(<)
SLUICE_MIXED(<=)
SLUICE_MIXED(==)
#undef SLUICE_MIXED
inline Node where(Node condition, Node a, double b) { return where(condition, a, a.like(b)); }
inline Node where(Node condition, double a, Node b) { return where(condition, b.like(a), b); }

} // namespace sluice::ir
