// Array, the devices of arrays, and new arrays. array.h contains the whole API.
#pragma once

#include "sluice/compile_options.h"
#include "sluice/device.h"
#include "sluice/error.h"
#include "sluice/tensor.h"

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <iosfwd>
#include <memory>
#include <optional>
#include <source_location>
#include <span>
#include <string>
#include <vector>

namespace sluice {

struct ArrayArg;
class ArraySlice;
namespace detail {
struct ArrayImpl;
struct ArrayAccess;
} // namespace detail

/// How arrays are printed (torch.set_printoptions).
struct PrintOptions {
  int precision = 4;             ///< digits after the decimal point
  std::int64_t threshold = 1000; ///< arrays with more elements are summarized
  std::int64_t edge_items = 3;   ///< in a summary: elements printed at each end of a dimension
  std::int64_t line_width = 80;  ///< columns; longer rows wrap
};

/// One index of `a[{...}]`, as in NumPy. An integer removes its dimension, and counts from the end if negative. A slice
/// keeps its dimension. `ellipsis` selects all dimensions that are not listed. `newaxis` inserts a dimension of size
/// 1. An integer out of range, too many indices and a second ellipsis throw Error.
struct Index {
  enum class Kind { number, slice, ellipsis, newaxis };
  Kind kind = Kind::number;
  std::int64_t start = 0, end = 0, step = 1;
  std::source_location where; ///< of the index, for errors

  template <std::integral T>
  Index(T number, std::source_location where = std::source_location::current())
      : start(std::int64_t(number)), where(where) {}
  Index(Kind kind, std::int64_t start, std::int64_t end, std::int64_t step, std::source_location where)
      : kind(kind), start(start), end(end), step(step), where(where) {}
};
inline const Index ellipsis{Index::Kind::ellipsis, 0, 0, 1, {}}, newaxis{Index::Kind::newaxis, 0, 0, 1, {}};
/// Every `step`-th element from `start` up to, not including, `end`. Negative bounds count from the end; bounds out of
/// range are clamped. The step must be positive.
inline Index slice(std::int64_t start = 0, std::int64_t end = Tensor::toEnd, std::int64_t step = 1,
                   std::source_location where = std::source_location::current()) {
  return {Index::Kind::slice, start, end, step, where};
}

/// A handle to elements in the memory of a device. Copies of a handle refer to the same array. Methods without a
/// comment are the functions of the same name. All methods except `operator bool`, `is` and `grad` throw Error (code 2)
/// for an empty handle.
class Array {
public:
  /// The line of a call, for error messages; a default argument everywhere.
  using Where = std::source_location;
  /// The end of a slice that goes to the end of the dimension.
  static constexpr std::int64_t toEnd = Tensor::toEnd;

  /// An empty handle, such as an absent bias.
  Array() = default;
  /// Whether there is an array; it does not test elements. Deleted for temporaries, as for Tensor.
  explicit operator bool() const & { return impl != nullptr; }
  explicit operator bool() const && = delete;

  DType dtype(Where where = Where::current()) const;
  /// The sizes of the dimensions, outermost first. A size may be 0, but functions reject operands
  /// without elements.
  const std::vector<std::int64_t> &shape(Where where = Where::current()) const;
  /// The number of dimensions.
  std::int64_t dim(Where where = Where::current()) const;
  /// The size of a dimension. A negative `dim` counts from the end. Throws Error if `dim` is out of range.
  std::int64_t size(std::int64_t dim, Where where = Where::current()) const;
  /// The number of elements.
  std::int64_t numel(Where where = Where::current()) const;
  /// The device of the elements.
  Device device(Where where = Where::current()) const;
  /// Whether both handles refer to the same array (Python's `is`).
  bool is(const Array &other) const { return impl == other.impl; }

  // --- elements on the host

  /// All elements, row-major, copied to the host. T must be the C++ type of the dtype (DTypeOf); other types throw
  /// Error. Waits.
  template <class T> std::vector<T> to_vector(Where where = Where::current()) const {
    auto elements = std::make_unique<T[]>(std::size_t(numel(where))); // contiguous, unlike std::vector<bool>
    read(elements.get(), DTypeOf<T>::value, where);
    return std::vector<T>(elements.get(), elements.get() + numel(where));
  }
  /// The only element, copied to the host and converted to T. Waits. Throws Error unless there is exactly one.
  template <class T = double> T item(Where where = Where::current()) const { return T(number(where)); }
  /// The text that `<<` prints: a line such as "(2, 3) gpu(0) float32", then the elements as PyTorch prints them.
  /// Copies all elements to the host. Waits.
  std::string str(const PrintOptions &options, Where where = Where::current()) const;
  std::string str(Where where = Where::current()) const;
  /// Waits until the elements are computed. Throws the error of the work that computes them.
  void wait(Where where = Where::current()) const;

  // --- devices

  /// This array if it is on the device; otherwise a copy there. A tape records the copy. This and the next four throw
  /// Error (code 4) for a device that is not in the list.
  Array to(const Device &device, Where where = Where::current()) const;
  /// A copy in separate memory, even on the same device.
  Array copy_to(const Device &device, Where where = Where::current()) const;
  Array cpu(Where where = Where::current()) const;
  /// On the default device if that is a GPU, otherwise on gpu(0).
  Array cuda(Where where = Where::current()) const;
  /// On gpu(index).
  Array cuda(int index, Where where = Where::current()) const;
  /// Writes the elements into `existing`, on any device. Shapes and dtypes must be equal. Allocates only if results of
  /// earlier calls keep the old elements, or if the memory is read-only. Not recorded by a tape.
  void copy_to(Array &existing, Where where = Where::current()) const;

  // --- changes in place: every handle of the array sees them; results of earlier calls do not

  /// Replaces the elements by those of `source`, which may be on any device. Converts the dtype and broadcasts.
  /// Recorded by a tape. Returns *this.
  Array &copy_(const Array &source, Where where = Where::current());
  /// Set all elements. A value that the dtype cannot represent throws Error. Return *this.
  Array &fill_(double value, Where where = Where::current());
  Array &zero_(Where where = Where::current()) { return fill_(0, where); }
  /// Replace the elements by random numbers from a key [2] (array/random.h), which must be on this device. The dtype
  /// must be a float. Return *this.
  Array &normal_(const Array &key, double mean = 0, double std = 1, Where where = Where::current());
  Array &uniform_(const Array &key, double low = 0, double high = 1, Where where = Where::current());
  /// The elements at these indices, as in NumPy: `a[{1, slice(2, 5), ellipsis}]`. Assignment writes them: `a[{0}] = b`.
  ArraySlice operator[](std::initializer_list<Index> indices) &;
  Array operator[](std::initializer_list<Index> indices) const &;
  Array operator[](std::initializer_list<Index> indices) &&;
  /// masked_select(*this, mask) (array/dynamic.h). Waits.
  Array operator[](const ArrayArg &mask) const;

  // --- new arrays with the dtype and device of this one

  Array new_zeros(const Shape &shape, Where where = Where::current()) const;
  Array new_ones(const Shape &shape, Where where = Where::current()) const;
  Array new_full(const Shape &shape, double value, Where where = Where::current()) const;
  /// Uninitialized elements.
  Array new_empty(const Shape &shape, Where where = Where::current()) const;

  // --- gradients (array/tape.h)

  /// Makes the array a leaf for `backward`: allocates a gradient of zeros on its device, and forgets how the array was
  /// computed. Throws Error unless the dtype is a float. Returns *this.
  Array &attach_grad(Where where = Where::current());
  /// The gradient: zeros until the first `backward`. An empty handle without attach_grad.
  Array grad() const;
  /// Computes the gradients of all leaves (attach_grad) on which this array depends. Replaces their `grad` or, with
  /// `accumulate`, adds to it. For an array with several elements, differentiates its sum. Throws Error if the array
  /// was not recorded, or if an operand in shared memory (dlpack.h) was changed after its call.
  void backward(bool accumulate = false, Where where = Where::current()) const;

  /// Each function of SLUICE_UNARY_FUNCTIONS (unary.h).
#define SLUICE_METHOD(name, op) Array name(Where where = Where::current()) const;
  SLUICE_UNARY_FUNCTIONS(SLUICE_METHOD)
#undef SLUICE_METHOD
  Array to(DType dtype, Where where = Where::current()) const;
  Array clip(std::optional<double> min = {}, std::optional<double> max = {}, Where where = Where::current()) const;
  Array clamp(std::optional<double> min = {}, std::optional<double> max = {}, Where where = Where::current()) const;
  /// The same elements, not recorded (torch.Tensor.detach).
  Array detach(Where where = Where::current()) const;
  Array sum(Axes dim = {}, bool keepdim = false, Where where = Where::current()) const;
  Array mean(Axes dim = {}, bool keepdim = false, Where where = Where::current()) const;
  Array max(Axes dim = {}, bool keepdim = false, Where where = Where::current()) const;
  Array min(Axes dim = {}, bool keepdim = false, Where where = Where::current()) const;
  Array prod(Axes dim = {}, bool keepdim = false, Where where = Where::current()) const;
  Array any(Axes dim = {}, bool keepdim = false, Where where = Where::current()) const;
  Array all(Axes dim = {}, bool keepdim = false, Where where = Where::current()) const;
  Array var(Axes dim = {}, std::int64_t correction = 1, bool keepdim = false, Where where = Where::current()) const;
  Array std(Axes dim = {}, std::int64_t correction = 1, bool keepdim = false, Where where = Where::current()) const;
  Array norm(double p = 2, Axes dim = {}, bool keepdim = false, Where where = Where::current()) const;
  Array logsumexp(Axes dim = {}, bool keepdim = false, Where where = Where::current()) const;
  Array argmax(std::int64_t dim, bool keepdim = false, DType dtype = DType::i32, Where where = Where::current()) const;
  Array softmax(std::int64_t dim, Where where = Where::current()) const;
  Array log_softmax(std::int64_t dim, Where where = Where::current()) const;
  Array reshape(Shape shape, Where where = Where::current()) const;
  Array view(Shape shape, Where where = Where::current()) const;
  Array flatten(std::int64_t start_dim = 0, std::int64_t end_dim = -1, Where where = Where::current()) const;
  Array permute(Axes dims, Where where = Where::current()) const;
  Array transpose(std::int64_t dim0, std::int64_t dim1, Where where = Where::current()) const;
  Array t(Where where = Where::current()) const;
  Array squeeze(Axes dim = {}, Where where = Where::current()) const;
  Array unsqueeze(std::int64_t dim, Where where = Where::current()) const;
  Array expand(Shape shape, Where where = Where::current()) const;
  Array slice(std::int64_t dim, std::int64_t start, std::int64_t end = toEnd, std::int64_t step = 1,
              Where where = Where::current()) const;
  Array select(std::int64_t dim, std::int64_t index, Where where = Where::current()) const;
  std::vector<Array> split(std::int64_t split_size, std::int64_t dim = 0, Where where = Where::current()) const;
  std::vector<Array> split(std::vector<std::int64_t> split_sizes, std::int64_t dim = 0,
                           Where where = Where::current()) const;
  std::vector<Array> chunk(std::int64_t chunks, std::int64_t dim = 0, Where where = Where::current()) const;
  Array tril(std::int64_t diagonal = 0, Where where = Where::current()) const;
  Array triu(std::int64_t diagonal = 0, Where where = Where::current()) const;
  Array index_select(std::int64_t dim, const Array &index, Where where = Where::current()) const;
  Array gather(std::int64_t dim, const Array &index, Where where = Where::current()) const;
  Array matmul(const Array &other, Where where = Where::current()) const;

private:
  void read(void *elements, DType dtype, Where where) const;
  long double number(Where where) const; ///< exact for every dtype

  std::shared_ptr<detail::ArrayImpl> impl;
  friend struct detail::ArrayAccess;
};

/// An operand and the line of the call, like Arg for tensors.
struct ArrayArg {
  const Array &array;
  std::source_location where;

  ArrayArg(const Array &array, std::source_location where = std::source_location::current())
      : array(array), where(where) {}
};

/// The left side of `x += y` and its line.
struct AssignedArray {
  Array &array;
  std::source_location where;

  AssignedArray(Array &array, std::source_location where = std::source_location::current())
      : array(array), where(where) {}
};

/// The result of `a[{...}]`. Converts to an array of the selected elements; assigning to it writes them. It refers to
/// `a`: do not store it.
class ArraySlice {
public:
  /// Internal: use Array::operator[].
  ArraySlice(Array &of, std::vector<Index> indices) : of(of), indices(std::move(indices)) {}

  /// A new array with the elements.
  operator Array() const;
  operator ArrayArg() const;
  template <class T = double> T item(std::source_location where = std::source_location::current()) const {
    return Array(*this).item<T>(where);
  }
  template <class T> std::vector<T> to_vector(std::source_location where = std::source_location::current()) const {
    return Array(*this).to_vector<T>(where);
  }
  /// Writes `values`, of the same dtype and device, which broadcast to the selection; or a number.
  ArraySlice &operator=(ArrayArg values);
  ArraySlice &operator=(double value);
  ArraySlice &operator=(const ArraySlice &values) { return *this = ArrayArg(Array(values)); }
  /// Writes the result for the selection and `values`, under the rules of `=`.
#define SLUICE_ASSIGNMENT(symbol)                                                                                      \
  ArraySlice &operator symbol##=(ArrayArg values);                                                                     \
  ArraySlice &operator symbol##=(double value);
  SLUICE_ASSIGNMENT(+)
  SLUICE_ASSIGNMENT(-)
  SLUICE_ASSIGNMENT(*)
  SLUICE_ASSIGNMENT(/)
#undef SLUICE_ASSIGNMENT

private:
  Array &of;
  std::vector<Index> indices;
  mutable Array elements; ///< what `operator ArrayArg` refers to
};

/// Writes x.str().
std::ostream &operator<<(std::ostream &os, const Array &x);

// --- the devices of arrays

/// Sets the devices of this process, in the syntax of `--devices`: with "cpu,sim:0,sim:1", gpu(0) is the first virtual
/// accelerator. The default is the environment variable SLUICE_DEVICES, or the host alone. `settings` contains settings
/// by backend, for example {"sim", "link=12GB/s"}. Existing arrays stay on their devices. Devices are opened at their
/// first use. Throws Error (code 2) for a malformed list.
void set_devices(const std::string &list, const BackendSettings &settings = {},
                 std::source_location where = std::source_location::current());
/// The number of accelerators in the list. Opens no device.
int gpu_count();
/// Whether the list has an accelerator (torch.cuda.is_available). Opens no device.
bool is_available();
/// gpu(index) if the list has it; otherwise cpu().
Device try_gpu(int index = 0);
/// All accelerators of the list, in order; {cpu()} if it has none.
std::vector<Device> try_all_gpus();
/// The device of new arrays: that of this thread's innermost DefaultDevice, or that of set_default_device, or cpu().
Device default_device();
/// Sets the default for all threads.
void set_default_device(const Device &device);

/// During its lifetime, arrays that this thread creates without a device are on this one (torch.device as a context
/// manager). Existing arrays do not move. Scopes nest.
class DefaultDevice {
public:
  explicit DefaultDevice(const Device &device);
  DefaultDevice(const DefaultDevice &) = delete;
  ~DefaultDevice();

private:
  std::optional<Device> before;
};

/// Copies from one device to another in this process so far. Names are those of Device::str. `bytes` is the sum.
struct ArrayTransfers {
  std::string from, to;
  std::int64_t copies = 0, bytes = 0;
  bool operator==(const ArrayTransfers &) const = default;
};
/// Only pairs with copies. Copies within a device are not counted.
std::vector<ArrayTransfers> transfers();
/// The number of kernels that calls on arrays have launched in this process so far.
std::int64_t kernel_launches();
/// Bytes of array memory on a device.
struct ArrayMemoryCounts {
  std::int64_t in_use = 0;      ///< in arrays, rounded up to block sizes
  std::int64_t held = 0;        ///< allocated from the driver, also for later arrays
  std::int64_t allocations = 0; ///< number of driver allocations so far
};
/// Opens the device. Throws Error (code 4) if it is missing.
ArrayMemoryCounts memory(const Device &device, std::source_location where = std::source_location::current());
/// Returns unused blocks larger than 64 KiB to the drivers (torch.cuda.empty_cache). Waits for work that still uses
/// them.
void trim_memory();
/// Waits for all work of this thread on all devices, then throws the first error.
void wait_all(std::source_location where = std::source_location::current());

// --- new arrays, initialized on their device; without `device`, on default_device()

/// Every element is `value`; a value that the dtype cannot represent throws Error. Sizes may be 0.
Array full(const Shape &shape, double value, DType dtype = f32, std::optional<Device> device = {},
           std::source_location where = std::source_location::current());
Array zeros(const Shape &shape, DType dtype = f32, std::optional<Device> device = {},
            std::source_location where = std::source_location::current());
Array ones(const Shape &shape, DType dtype = f32, std::optional<Device> device = {},
           std::source_location where = std::source_location::current());
/// Uninitialized elements.
Array empty(const Shape &shape, DType dtype = f32, std::optional<Device> device = {},
            std::source_location where = std::source_location::current());
/// start, start + step, ... below `end` (above `end` if the step is negative), in i32, i64 or a float. One argument
/// counts from 0. Throws Error for an empty range, and for numbers that the dtype cannot represent. PyTorch infers the
/// dtype.
Array arange(double end, DType dtype = i64, std::optional<Device> device = {},
             std::source_location where = std::source_location::current());
Array arange(double start, double end, double step = 1, DType dtype = i64, std::optional<Device> device = {},
             std::source_location where = std::source_location::current());
/// A matrix [n, m] with ones on the diagonal and zeros elsewhere. m is n by default. Sizes below 1 throw Error.
Array eye(std::int64_t n, std::optional<std::int64_t> m = {}, DType dtype = f32, std::optional<Device> device = {},
          std::source_location where = std::source_location::current());
/// `steps` floats, equally spaced from `start` to `end`, both included. One step gives `start`. `steps` below 1 throws
/// Error.
Array linspace(double start, double end, std::int64_t steps, DType dtype = f32, std::optional<Device> device = {},
               std::source_location where = std::source_location::current());

namespace detail {
/// Replaces the elements of x, for all handles, by those of `result`, which must have the dtype, shape and device of x.
/// Returns x.
Array &assign(const AssignedArray &x, const Array &result);
Array newArray(const void *elements, std::size_t count, DType dtype, const Shape &shape,
               const std::optional<Device> &device, std::source_location where);
template <class T> using StoredAs = std::conditional_t<std::is_same_v<T, bool>, std::uint8_t, T>;
} // namespace detail

/// An array with these elements, row-major, of the dtype of T (torch.tensor). One copy if the device is an accelerator.
/// The shape must be static. Throws Error if it has another number of elements.
template <class T>
Array array(std::span<const T> values, const Shape &shape, std::optional<Device> device = {},
            std::source_location where = std::source_location::current()) {
  return detail::newArray(values.data(), values.size(), DTypeOf<T>::value, shape, device, where);
}
template <class T>
Array array(const std::vector<T> &values, const Shape &shape, std::optional<Device> device = {},
            std::source_location where = std::source_location::current()) {
  std::vector<detail::StoredAs<T>> elements(values.begin(), values.end());
  return detail::newArray(elements.data(), elements.size(), DTypeOf<T>::value, shape, device, where);
}
/// array({1, 2, 3}) is i32, array({1.0, 2.0}) f64, and array({1.f, 2.f}) f32. With rows: array({{1, 2}, {3, 4}}); rows
/// of different sizes throw Error.
template <class T>
Array array(std::initializer_list<T> values, std::optional<Device> device = {},
            std::source_location where = std::source_location::current()) {
  return array(std::vector<T>(values), Shape(std::int64_t(values.size())), device, where);
}
template <class T>
Array array(std::initializer_list<std::initializer_list<T>> rows, std::optional<Device> device = {},
            std::source_location where = std::source_location::current()) {
  std::vector<T> values;
  for (const std::initializer_list<T> &row : rows) {
    if (row.size() != rows.begin()->size())
      throw Error("array: rows must have equal sizes: row 0 has " + std::to_string(rows.begin()->size()) +
                      " elements, and row " + std::to_string(&row - rows.begin()) + " has " +
                      std::to_string(row.size()),
                  where);
    values.insert(values.end(), row.begin(), row.end());
  }
  return array(values, {std::int64_t(rows.size()), rows.size() ? std::int64_t(rows.begin()->size()) : 0}, device,
               where);
}
/// A scalar.
template <class T>
  requires std::is_arithmetic_v<T>
Array array(T value, std::optional<Device> device = {}, std::source_location where = std::source_location::current()) {
  return array(std::vector<T>{value}, Shape(), device, where);
}

} // namespace sluice
