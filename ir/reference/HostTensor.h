// Values of the reference functions: every element type is stored in doubles, row-major, with the actual number of
// rows.
#pragma once

#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace sluice::ir {

struct HostTensor {
  llvm::SmallVector<int64_t> shape;
  std::vector<double> data; // row-major; i64 is exact up to 2^53

  HostTensor() = default;
  explicit HostTensor(llvm::ArrayRef<int64_t> shape, double fill = 0.0);

  int64_t size() const { return int64_t(data.size()); }
  double &at(llvm::ArrayRef<int64_t> index) { return data[offset(index)]; }
  double at(llvm::ArrayRef<int64_t> index) const { return data[offset(index)]; }
  size_t offset(llvm::ArrayRef<int64_t> index) const;
};

/// The run-time shape of a type: `?` is `rows`.
llvm::SmallVector<int64_t> runtimeShape(mlir::Type type, int64_t rows);

/// Calls `body` with every index of `shape` in row-major order.
void forEachIndex(llvm::ArrayRef<int64_t> shape, const std::function<void(llvm::ArrayRef<int64_t>)> &body);

/// Rounds a double to the precision of `element` (f32 is rounded, two-byte floats from f32, integers wrap to their
/// width, i1 becomes 0 or 1).
double roundTo(mlir::Type element, double value);

/// An element in its memory format (i1 and ui8 take one byte).
double readElement(mlir::Type element, const void *at);
void writeElement(mlir::Type element, void *at, double value);

/// An instance of a differentiable op for tests: `op` in generic form over operands %0, %1, ..., and the range of each.
/// Lists the operands and results that have no gradient by definition (running statistics).
struct Sample {
  std::string op;
  std::vector<std::pair<double, double>> ranges;
  std::vector<size_t> constantOperands = {}, constantResults = {};
};

} // namespace sluice::ir
