// Array, the devices of arrays and new arrays; array.h has the whole API.
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

/// How arrays are printed: torch.set_printoptions.
struct PrintOptions {
  int precision = 4;             ///< digits after the point
  std::int64_t threshold = 1000; ///< with more elements, only the edges of each dimension are printed
  std::int64_t edge_items = 3;   ///< of each edge
  std::int64_t line_width = 80;  ///< longer rows continue on the next line
};

/// One index of `a[{...}]`, as in NumPy: a number removes the dimension (negative: from the end), a slice keeps it,
/// `ellipsis` selects all dimensions that are not listed, `newaxis` adds one of size 1.
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
/// The elements from `start` to before `end`, every `step`-th. Negative bounds count from the end. The step is positive.
inline Index slice(std::int64_t start = 0, std::int64_t end = Tensor::toEnd, std::int64_t step = 1,
                   std::source_location where = std::source_location::current()) {
  return {Index::Kind::slice, start, end, step, where};
}

/// A handle to elements in the memory of a device. Copies of a handle are the same array. Methods without a comment are
/// the functions of the same name. Every method but `operator bool` throws Error (code 2) for an empty handle.
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
  /// The sizes of the dimensions, outermost first. A size may be 0.
  const std::vector<std::int64_t> &shape(Where where = Where::current()) const;
  /// The number of dimensions; the size of one, where a negative index counts from the end; the number of elements.
  std::int64_t dim(Where where = Where::current()) const;
  std::int64_t size(std::int64_t dim, Where where = Where::current()) const;
  std::int64_t numel(Where where = Where::current()) const;
  /// Where the elements are.
  Device device(Where where = Where::current()) const;
  /// Whether two handles are of one array: `is` of Python.
  bool is(const Array &other) const { return impl == other.impl; }

  // --- elements on the host

  /// All elements, row-major. T is the type of the dtype (DTypeOf). Waits.
  template <class T> std::vector<T> to_vector(Where where = Where::current()) const {
    auto elements = std::make_unique<T[]>(std::size_t(numel(where))); // contiguous, unlike std::vector<bool>
    read(elements.get(), DTypeOf<T>::value, where);
    return std::vector<T>(elements.get(), elements.get() + numel(where));
  }
  /// The only element, converted to T. Waits. Throws Error if there are several.
  template <class T = double> T item(Where where = Where::current()) const { return T(number(where)); }
  /// The elements as text: "(2, 3) gpu(0) float32", and below, the elements as PyTorch prints them. Waits.
  std::string str(const PrintOptions &options, Where where = Where::current()) const;
  std::string str(Where where = Where::current()) const;
  /// Waits until the elements are there. Throws the error of the work that computes them.
  void wait(Where where = Where::current()) const;

  // --- devices

  /// This array if it is on the device; otherwise a copy there.
  Array to(const Device &device, Where where = Where::current()) const;
  /// A copy on the device in its own memory, also on the same device.
  Array copy_to(const Device &device, Where where = Where::current()) const;
  Array cpu(Where where = Where::current()) const;
  /// To the GPU of the innermost DeviceScope, or gpu(0); or to gpu(index).
  Array cuda(Where where = Where::current()) const;
  Array cuda(int index, Where where = Where::current()) const;
  /// Writes this array into the memory of an existing one on any device, without an allocation. Shapes and dtypes must
  /// be equal.
  void copy_to(Array &existing, Where where = Where::current()) const;

  // --- elements that change in place; handles of this array see the new elements, results of earlier calls do not

  /// Takes the elements of `source`, from any device and of any dtype, which are converted; it broadcasts. Returns *this.
  Array &copy_(const Array &source, Where where = Where::current());
  Array &fill_(double value, Where where = Where::current());
  Array &zero_(Where where = Where::current()) { return fill_(0, where); }
  /// Draws elements from a key (array/random.h) on its device, normal or uniform in [low, high). The dtype is a float.
  Array &normal_(const Array &key, double mean = 0, double std = 1, Where where = Where::current());
  Array &uniform_(const Array &key, double low = 0, double high = 1, Where where = Where::current());
  /// Elements at indices: `a[{1, slice(2, 5), ellipsis}]`, and `a[{0}] = b` writes them.
  ArraySlice operator[](std::initializer_list<Index> indices);
  Array operator[](std::initializer_list<Index> indices) const;
  /// The elements where a mask is true (array/dynamic.h).
  Array operator[](const ArrayArg &mask) const;

  // --- arrays like this one: with its dtype and device

  Array new_zeros(const Shape &shape, Where where = Where::current()) const;
  Array new_ones(const Shape &shape, Where where = Where::current()) const;
  Array new_full(const Shape &shape, double value, Where where = Where::current()) const;
  Array new_empty(const Shape &shape, Where where = Where::current()) const;

  // --- gradients (array/tape.h)

  /// Makes `backward` compute the gradient of this array, a float, which begins with zeros on its device. Returns *this.
  Array &attach_grad(Where where = Where::current());
  /// The gradient that the last `backward` computed; an empty handle without attach_grad.
  Array grad() const;
  /// Computes the gradients of this array, a result of recorded calls, with respect to all arrays with attach_grad on
  /// which it depends. An array of several elements has the gradient of its sum. Gradients are replaced, or added to the
  /// earlier ones with `accumulate`.
  void backward(bool accumulate = false, Where where = Where::current()) const;

  /// Each function of SLUICE_UNARY_FUNCTIONS (unary.h).
#define SLUICE_METHOD(name, op) Array name(Where where = Where::current()) const;
  SLUICE_UNARY_FUNCTIONS(SLUICE_METHOD)
#undef SLUICE_METHOD
  Array to(DType dtype, Where where = Where::current()) const;
  Array clip(std::optional<double> min = {}, std::optional<double> max = {}, Where where = Where::current()) const;
  Array clamp(std::optional<double> min = {}, std::optional<double> max = {}, Where where = Where::current()) const;
  /// The same elements without a record of how they were computed.
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

/// An operand and the line that passes it, as Arg for tensors.
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

/// The result of `a[{...}]`: an array with these elements, and on the left side of `=` a place for others.
class ArraySlice {
public:
  /// Internal.
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
  /// Writes elements, which broadcast, of the same dtype and device, or a number.
  ArraySlice &operator=(ArrayArg values);
  ArraySlice &operator=(double value);
  ArraySlice &operator=(const ArraySlice &values) { return *this = ArrayArg(Array(values)); }

private:
  Array &of;
  std::vector<Index> indices;
  mutable Array elements; ///< what `operator ArrayArg` refers to
};

/// Writes x.str().
std::ostream &operator<<(std::ostream &os, const Array &x);

// --- the devices of arrays

/// Sets the devices of this process in the syntax of `--devices`: with "cpu,sim:0,sim:1", gpu(0) is the first virtual
/// accelerator. Only the host by default, or the devices in the environment variable SLUICE_DEVICES. `settings` are of
/// the backends: {"sim", "link=12GB/s"}. Arrays keep their devices. Throws Error for a malformed list.
void set_devices(const std::string &list, const BackendSettings &settings = {},
                 std::source_location where = std::source_location::current());
/// The number of accelerators, without an error if a backend is missing, and whether there is one.
int gpu_count();
bool is_available();
/// gpu(index) if there is one; otherwise cpu().
Device try_gpu(int index = 0);
/// All accelerators in order; {cpu()} if there is none.
std::vector<Device> try_all_gpus();
/// The device for new arrays: that of the innermost DefaultDevice, else the one set last, else cpu().
Device default_device();
void set_default_device(const Device &device);

/// During its lifetime, arrays that this thread creates without a device are on this one (torch.device as a context
/// manager). It moves nothing. Scopes nest.
class DefaultDevice {
public:
  explicit DefaultDevice(const Device &device);
  DefaultDevice(const DefaultDevice &) = delete;
  ~DefaultDevice();

private:
  std::optional<Device> before;
};

/// The copies between devices in this process so far, by pair: names as of Device::str.
struct ArrayTransfers {
  std::string from, to;
  std::int64_t copies = 0, bytes = 0;
  bool operator==(const ArrayTransfers &) const = default;
};
std::vector<ArrayTransfers> transfers();
/// The number of kernels that calls on arrays have launched in this process so far.
std::int64_t kernel_launches();
/// The memory of arrays on a device: bytes in use, bytes that the driver has given, and its allocations so far.
struct ArrayMemoryCounts {
  std::int64_t in_use = 0, held = 0, allocations = 0;
};
ArrayMemoryCounts memory(const Device &device, std::source_location where = std::source_location::current());
/// Returns unused memory of arrays to the drivers: torch.cuda.empty_cache.
void trim_memory();
/// Waits for all work of this thread on all devices. Throws its first error.
void wait_all(std::source_location where = std::source_location::current());

// --- new arrays, allocated on the device without a copy; without a device, on default_device()

Array full(const Shape &shape, double value, DType dtype = f32, std::optional<Device> device = {},
           std::source_location where = std::source_location::current());
Array zeros(const Shape &shape, DType dtype = f32, std::optional<Device> device = {},
            std::source_location where = std::source_location::current());
Array ones(const Shape &shape, DType dtype = f32, std::optional<Device> device = {},
           std::source_location where = std::source_location::current());
/// Any elements.
Array empty(const Shape &shape, DType dtype = f32, std::optional<Device> device = {},
            std::source_location where = std::source_location::current());
Array arange(double end, DType dtype = i64, std::optional<Device> device = {},
             std::source_location where = std::source_location::current());
Array arange(double start, double end, double step = 1, DType dtype = i64, std::optional<Device> device = {},
             std::source_location where = std::source_location::current());
/// A matrix [n, m] of ones on the diagonal and zeros elsewhere; m is n by default.
Array eye(std::int64_t n, std::optional<std::int64_t> m = {}, DType dtype = f32, std::optional<Device> device = {},
          std::source_location where = std::source_location::current());
/// `steps` floats at equal distances from `start` to `end`, both included.
Array linspace(double start, double end, std::int64_t steps, DType dtype = f32, std::optional<Device> device = {},
               std::source_location where = std::source_location::current());

namespace detail {
/// Makes x refer to the elements of `result`, of the same type.
Array &assign(const AssignedArray &x, const Array &result);
Array newArray(const void *elements, std::size_t count, DType dtype, std::vector<std::int64_t> shape,
               const std::optional<Device> &device, std::source_location where);
template <class T> using StoredAs = std::conditional_t<std::is_same_v<T, bool>, std::uint8_t, T>;
} // namespace detail

/// An array with these elements, row-major, of the dtype of T (torch.tensor). One copy if the device is an accelerator.
template <class T>
Array array(std::span<const T> values, const Shape &shape, std::optional<Device> device = {},
            std::source_location where = std::source_location::current()) {
  std::vector<std::int64_t> sizes;
  for (const Dim &dim : shape)
    sizes.push_back(dim.size);
  return detail::newArray(values.data(), values.size(), DTypeOf<T>::value, std::move(sizes), device, where);
}
template <class T>
Array array(const std::vector<T> &values, const Shape &shape, std::optional<Device> device = {},
            std::source_location where = std::source_location::current()) {
  std::vector<detail::StoredAs<T>> elements(values.begin(), values.end());
  std::vector<std::int64_t> sizes;
  for (const Dim &dim : shape)
    sizes.push_back(dim.size);
  return detail::newArray(elements.data(), elements.size(), DTypeOf<T>::value, std::move(sizes), device, where);
}
/// array({1, 2, 3}) is of i32, array({1.0, 2.0}) of f64, array({1.f, 2.f}) of f32; with rows: array({{1, 2}, {3, 4}}).
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
      throw Error("array: rows have " + std::to_string(rows.begin()->size()) + " and " + std::to_string(row.size()) +
                      " elements",
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
