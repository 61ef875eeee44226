// Tensor: a value of the graph being built. Its methods are the functions of <sluice/ops.h> under the same names.
#pragma once

#include "sluice/device.h"
#include "sluice/dtype.h"
#include "sluice/shape.h"
#include "sluice/unary.h"

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <source_location>
#include <vector>

namespace sluice {

namespace detail {
class GraphImpl;
struct Access;
} // namespace detail

/// A handle, cheap to copy; it keeps its graph alive. Named dimensions show in `shape()`. Every method but `operator
/// bool` throws when there is no tensor.
class Tensor {
public:
  using Where = std::source_location;
  static constexpr std::int64_t toEnd = std::numeric_limits<std::int64_t>::max();

  /// No tensor: what an absent bias is.
  Tensor() = default;
  /// Whether there is a tensor; its elements are known only when the program runs. Not of a result that has no name:
  /// `!x` and `x == y` are tensors, and an `if` on one would ask something else than it says.
  explicit operator bool() const & { return value != nullptr; }
  explicit operator bool() const && = delete;

  DType dtype(Where where = Where::current()) const;
  Shape shape(Where where = Where::current()) const;
  /// The number of dimensions.
  std::int64_t dim(Where where = Where::current()) const;
  /// One dimension; negative counts from the end.
  Dim size(std::int64_t dim, Where where = Where::current()) const;

#define SLUICE_METHOD(name, op) Tensor name(Where where = Where::current()) const;
  SLUICE_UNARY_FUNCTIONS(SLUICE_METHOD)
#undef SLUICE_METHOD

  /// Where the value lives if it is known: fixed by `to`, `copy_to`, creation under a DeviceScope or operands that are;
  /// or pinned. Nothing: it is placed when the graph is compiled.
  std::optional<Device> device(Where where = Where::current()) const;
  /// The value on a device: itself if it lives there, else a copy.
  Tensor to(const Device &device, Where where = Where::current()) const;
  /// A copy in a buffer of its own, on any device, this value's too.
  Tensor copy_to(const Device &device, Where where = Where::current()) const;
  Tensor cpu(Where where = Where::current()) const;
  /// To the GPU that things are created on (DeviceScope), or to gpu(0).
  Tensor cuda(Where where = Where::current()) const;
  Tensor cuda(int index, Where where = Where::current()) const;

  /// Writes this value into a buffer or parameter of a module at the end of a training step, from any device.
  /// `existing` becomes the new value, on its device. Shapes and dtypes must agree. Evaluation and prediction write
  /// nothing. A parameter that `minimize` trains cannot be written; a parameter with `requires_grad(false)` can. A
  /// trained parameter has its value before the step's update; `updated` returns the value after the update. A graph
  /// that writes a parameter has a training step without an optimizer. A graph that writes only buffers has no training
  /// step.
  void copy_to(Tensor &existing, Where where = Where::current()) const;
  /// The same from the other side, from any dtype too: `param.copy_(param - lr * gradient)` gives `param`.
  Tensor &copy_(const Tensor &source, Where where = Where::current());

  /// Sets whether `minimize` trains this parameter; default: true. With false, the parameter gets no update, no weight
  /// decay and no optimizer slots, and `grad` rejects it. Weights and checkpoints contain only its value. Call it
  /// before `minimize`. Returns the parameter.
  Tensor requires_grad(bool required, Where where = Where::current()) const;
  /// The value of a parameter after the update of the training step, of the same shape and dtype. `minimize` must train
  /// the parameter. Outside of training, the result is the parameter's value. No gradient flows through it. Call it
  /// after `minimize`. Example of a target network that follows another:
  ///
  ///     target.weight.copy_(0.99 * target.weight + 0.01 * net.weight.updated());
  Tensor updated(Where where = Where::current()) const;

  Tensor to(DType dtype, Where where = Where::current()) const;
  Tensor clip(std::optional<double> min = {}, std::optional<double> max = {}, Where where = Where::current()) const;
  Tensor clamp(std::optional<double> min = {}, std::optional<double> max = {}, Where where = Where::current()) const;
  /// The same value, through which no gradient flows.
  Tensor detach(Where where = Where::current()) const;

  Tensor sum(Axes dim = {}, bool keepdim = false, Where where = Where::current()) const;
  Tensor mean(Axes dim = {}, bool keepdim = false, Where where = Where::current()) const;
  Tensor max(Axes dim = {}, bool keepdim = false, Where where = Where::current()) const;
  Tensor min(Axes dim = {}, bool keepdim = false, Where where = Where::current()) const;
  Tensor prod(Axes dim = {}, bool keepdim = false, Where where = Where::current()) const;
  Tensor any(Axes dim = {}, bool keepdim = false, Where where = Where::current()) const;
  Tensor all(Axes dim = {}, bool keepdim = false, Where where = Where::current()) const;
  Tensor var(Axes dim = {}, std::int64_t correction = 1, bool keepdim = false, Where where = Where::current()) const;
  Tensor std(Axes dim = {}, std::int64_t correction = 1, bool keepdim = false, Where where = Where::current()) const;
  Tensor logsumexp(Axes dim = {}, bool keepdim = false, Where where = Where::current()) const;
  Tensor argmax(std::int64_t dim, bool keepdim = false, DType dtype = DType::i32, Where where = Where::current()) const;
  Tensor softmax(std::int64_t dim, Where where = Where::current()) const;
  Tensor log_softmax(std::int64_t dim, Where where = Where::current()) const;

  Tensor reshape(Shape shape, Where where = Where::current()) const;
  Tensor view(Shape shape, Where where = Where::current()) const;
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
  std::vector<Tensor> split(std::int64_t split_size, std::int64_t dim = 0, Where where = Where::current()) const;
  std::vector<Tensor> split(std::vector<std::int64_t> split_sizes, std::int64_t dim = 0,
                            Where where = Where::current()) const;
  std::vector<Tensor> chunk(std::int64_t chunks, std::int64_t dim = 0, Where where = Where::current()) const;
  Tensor tril(std::int64_t diagonal = 0, Where where = Where::current()) const;
  Tensor triu(std::int64_t diagonal = 0, Where where = Where::current()) const;
  Tensor index_select(std::int64_t dim, const Tensor &index, Where where = Where::current()) const;
  Tensor gather(std::int64_t dim, const Tensor &index, Where where = Where::current()) const;
  Tensor matmul(const Tensor &other, Where where = Where::current()) const;

private:
  std::shared_ptr<detail::GraphImpl> graph;
  const void *value = nullptr;
  bool merged = false; ///< the batch and the dimension behind it are seen as one, a multiple of the batch
  friend struct detail::Access;
};

/// An operand together with the line that passes it: operators cannot take a defaulted argument, but a conversion can.
struct Arg {
  Tensor tensor;
  std::source_location where;

  Arg(const Tensor &tensor, std::source_location where = std::source_location::current())
      : tensor(tensor), where(where) {}
};

/// The left side of `x += y`, together with its line.
struct AssignedArg {
  Tensor &tensor;
  std::source_location where;

  AssignedArg(Tensor &tensor, std::source_location where = std::source_location::current())
      : tensor(tensor), where(where) {}
};

} // namespace sluice
