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

/// A handle to a value of the graph, whose elements are known only at run time. It is cheap to copy and keeps its graph
/// alive. Methods without a comment are the functions of ops.h with the same name. Every method except `operator bool`
/// throws Error (code 2) for an empty tensor.
class Tensor {
public:
  /// The line of a call, for error messages; a default argument everywhere.
  using Where = std::source_location;
  /// The end of a slice that goes to the end of the dimension.
  static constexpr std::int64_t toEnd = std::numeric_limits<std::int64_t>::max();

  /// An empty tensor, such as an absent bias.
  Tensor() = default;
  /// Whether there is a tensor; it does not test elements. Deleted for temporaries: `if (x == y)` would test whether
  /// the comparison exists, not its result.
  explicit operator bool() const & { return value != nullptr; }
  explicit operator bool() const && = delete;

  /// The element type, and the dimensions; the batch has its name.
  DType dtype(Where where = Where::current()) const;
  Shape shape(Where where = Where::current()) const;
  /// The number of dimensions.
  std::int64_t dim(Where where = Where::current()) const;
  /// One dimension; a negative index counts from the end, and one out of range throws Error.
  Dim size(std::int64_t dim, Where where = Where::current()) const;

  /// Each function of SLUICE_UNARY_FUNCTIONS (unary.h).
#define SLUICE_METHOD(name, op) Tensor name(Where where = Where::current()) const;
  SLUICE_UNARY_FUNCTIONS(SLUICE_METHOD)
#undef SLUICE_METHOD

  /// The device of the value, if one is known: fixed by `to`, `copy_to`, a DeviceScope or operands that are fixed, or
  /// pinned. Empty: the compiler places the value.
  std::optional<Device> device(Where where = Where::current()) const;
  /// This value if it is on the device; otherwise a copy there. A device that the target lacks throws Error, here and
  /// in the next four.
  Tensor to(const Device &device, Where where = Where::current()) const;
  /// A copy in a separate buffer, also on the same device.
  Tensor copy_to(const Device &device, Where where = Where::current()) const;
  /// to(cpu()).
  Tensor cpu(Where where = Where::current()) const;
  /// To the GPU of the innermost DeviceScope, or gpu(0); or to gpu(index).
  Tensor cuda(Where where = Where::current()) const;
  Tensor cuda(int index, Where where = Where::current()) const;

  /// Writes this value, from any device, into a buffer or parameter of a module at the end of a training step. In an
  /// entry point of the graph (Graph::entry), writes a cache at the end of a call. `existing` becomes the new value, on
  /// its device. Shapes and dtypes must be equal. Evaluation and prediction write nothing. A state can be written once.
  /// A parameter that `minimize` trains cannot be written; with `requires_grad(false)` it can. A trained parameter has
  /// its value before the update of the step; `updated` returns the value after it. A graph that writes a parameter has
  /// a training step without an optimizer. A graph that writes only buffers has none.
  void copy_to(Tensor &existing, Where where = Where::current()) const;
  /// Writes `source` into this state, with the rules of copy_to, but converts its dtype. Returns this tensor:
  /// `param.copy_(param - lr * gradient)`.
  Tensor &copy_(const Tensor &source, Where where = Where::current());

  /// Sets whether `minimize` trains this parameter; default: true. With false, the parameter has no update, no weight
  /// decay and no optimizer states, and `grad` rejects it. Weights and checkpoints contain only its value. Throws Error
  /// for other tensors, and after `minimize`. Returns the parameter, as requires_grad_ in PyTorch.
  Tensor requires_grad(bool required, Where where = Where::current()) const;
  /// The value of a parameter after the update of the training step, of the same shape and dtype. Throws Error unless
  /// `minimize` has been called and trains the parameter. Outside of training, the result is the value of the
  /// parameter. No gradient flows through it. Example: a target network that follows another one.
  ///
  ///     target.weight.copy_(0.99 * target.weight + 0.01 * net.weight.updated());
  Tensor updated(Where where = Where::current()) const;

  /// The function `cast`.
  Tensor to(DType dtype, Where where = Where::current()) const;
  // Functions of ops.h.
  Tensor clip(std::optional<double> min = {}, std::optional<double> max = {}, Where where = Where::current()) const;
  Tensor clamp(std::optional<double> min = {}, std::optional<double> max = {}, Where where = Where::current()) const;
  /// The same value without a gradient: the function `stop_gradient`.
  Tensor detach(Where where = Where::current()) const;

  // Reductions and softmax: ops/reductions.h.
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

  // Shapes, indexing and products: ops/shape.h, ops/indexing.h and ops/products.h.
  Tensor reshape(Shape shape, Where where = Where::current()) const;
  Tensor view(Shape shape, Where where = Where::current()) const;
  Tensor flatten(std::int64_t start_dim = 0, std::int64_t end_dim = -1, Where where = Where::current()) const;
  Tensor permute(Axes dims, Where where = Where::current()) const;
  Tensor transpose(std::int64_t dim0, std::int64_t dim1, Where where = Where::current()) const;
  /// Swaps the two dimensions of a matrix; other ranks throw Error.
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
  bool merged = false; ///< the batch and the dimension after it appear as one, a multiple of the batch
  friend struct detail::Access;
};

/// An operand and the line that passes it. Users pass a Tensor: the conversion records the line, because operators
/// cannot have default arguments.
struct Arg {
  Tensor tensor;
  std::source_location where;

  Arg(const Tensor &tensor, std::source_location where = std::source_location::current())
      : tensor(tensor), where(where) {}
};

/// The left side of `x += y` and its line.
struct AssignedArg {
  Tensor &tensor;
  std::source_location where;

  AssignedArg(Tensor &tensor, std::source_location where = std::source_location::current())
      : tensor(tensor), where(where) {}
};

} // namespace sluice
