// Tensor: a value of the graph being built. Its methods are the functions of <sluice/ops.h> under the same names.
#pragma once

#include "sluice/dtype.h"
#include "sluice/shape.h"
#include "sluice/unary.h"

#include <cstdint>
#include <limits>
#include <memory>
#include <source_location>

namespace sluice {

namespace detail {
class GraphImpl;
struct Access;
} // namespace detail

/// A handle, cheap to copy; it keeps its graph alive. Named dimensions show in `shape()`.
class Tensor {
public:
  using Where = std::source_location;
  static constexpr std::int64_t toEnd = std::numeric_limits<std::int64_t>::max();

  /// No tensor: what an absent bias is.
  Tensor() = default;
  explicit operator bool() const { return value != nullptr; }

  DType dtype() const;
  Shape shape() const;
  /// The number of dimensions.
  std::int64_t dim() const;
  /// One dimension; negative counts from the end.
  Dim size(std::int64_t dim, Where where = Where::current()) const;

#define SLUICE_METHOD(name, op) Tensor name(Where where = Where::current()) const;
  SLUICE_UNARY_FUNCTIONS(SLUICE_METHOD)
#undef SLUICE_METHOD

  Tensor to(DType dtype, Where where = Where::current()) const;
  Tensor clip(double min, double max, Where where = Where::current()) const;
  /// The same value, through which no gradient flows.
  Tensor detach(Where where = Where::current()) const;

  Tensor sum(Axes dim = {}, bool keepdim = false, Where where = Where::current()) const;
  Tensor mean(Axes dim = {}, bool keepdim = false, Where where = Where::current()) const;
  Tensor max(Axes dim = {}, bool keepdim = false, Where where = Where::current()) const;
  Tensor min(Axes dim = {}, bool keepdim = false, Where where = Where::current()) const;
  Tensor argmax(std::int64_t dim, bool keepdim = false, Where where = Where::current()) const;
  Tensor softmax(std::int64_t dim, Where where = Where::current()) const;
  Tensor log_softmax(std::int64_t dim, Where where = Where::current()) const;

  Tensor reshape(Shape shape, Where where = Where::current()) const;
  Tensor flatten(std::int64_t start_dim = 0, std::int64_t end_dim = -1, Where where = Where::current()) const;
  Tensor permute(Axes dims, Where where = Where::current()) const;
  Tensor transpose(std::int64_t dim0, std::int64_t dim1, Where where = Where::current()) const;
  /// Swaps the two dimensions of a matrix.
  Tensor t(Where where = Where::current()) const;
  Tensor squeeze(Axes dim = {}, Where where = Where::current()) const;
  Tensor unsqueeze(std::int64_t dim, Where where = Where::current()) const;
  Tensor expand(Shape shape, Where where = Where::current()) const;
  Tensor slice(std::int64_t dim, std::int64_t start, std::int64_t end = toEnd, std::int64_t step = 1,
               Where where = Where::current()) const;
  Tensor select(std::int64_t dim, std::int64_t index, Where where = Where::current()) const;
  Tensor matmul(const Tensor &other, Where where = Where::current()) const;

private:
  std::shared_ptr<detail::GraphImpl> graph;
  const void *value = nullptr;
  friend struct detail::Access;
};

/// An operand together with the line that passes it: operators cannot take a defaulted argument, but a conversion can.
struct Arg {
  Tensor tensor;
  std::source_location where;

  Arg(const Tensor &tensor, std::source_location where = std::source_location::current())
      : tensor(tensor), where(where) {}
};

} // namespace sluice
