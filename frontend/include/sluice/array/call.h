// Internal: calls of functions on arrays. The first call with new argument types traces the function with tensors and
// compiles the graph. Later calls look up the program by a key.
#pragma once

#include "sluice/array/core.h"
#include "sluice/formulas.h"

#include <cstring>
#include <functional>
#include <span>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

namespace sluice::detail {

/// An operand of a traced function: a tensor, and the line of the call.
struct TracedOperand {
  Tensor tensor;
  std::source_location where;

  operator Arg() const { return Arg(tensor, where); }
  operator Tensor() const { return tensor; }
};

/// Traces a call: maps the tensors of its arrays to the tensors of its results.
using Trace = std::function<std::vector<Tensor>(std::span<const Tensor> operands, std::source_location where)>;

/// The key of a call in the cache: the function, the types of its arrays, and the values of its other arguments.
class CallKey {
public:
  explicit CallKey(const void *function) { addBytes(&function, sizeof function); }

  /// Adds the type of an array, and the array to the operands.
  void add(const Array &array);
  void add(const ArrayArg &arg) { add(arg.array); }
  void add(const std::vector<Array> &arrays) { addList(arrays); }
  template <class T>
    requires(std::is_arithmetic_v<T> || std::is_enum_v<T>)
  void add(T value) {
    addBytes(&value, sizeof value);
  }
  void add(const std::string &text) {
    add(text.size());
    addBytes(text.data(), text.size());
  }
  template <class T> void add(const std::optional<T> &value) {
    add(value.has_value());
    if (value)
      add(*value);
  }
  template <class T> void add(const std::vector<T> &values) { addList(values); }
  template <class T, class U> void add(const std::pair<T, U> &pair) { addAll(pair.first, pair.second); }
  void add(const Axes &axes) { add(axes.values()); }
  void add(const Size2 &size) { addAll(size.h, size.w); }
  void add(const Dim &dim) { addAll(dim.name, dim.size, dim.times); }
  void add(const Shape &shape) { addList(shape); }
  // Structured bindings: a struct with a new member does not compile until the member is added here.
  void add(const ConvOptions &options) {
    const auto &[stride, padding, dilation, groups, end] = options;
    addAll(stride, padding, dilation, groups, end);
  }
  void add(const ConvOptions1d &options) {
    const auto &[stride, padding, dilation, groups, end] = options;
    addAll(stride, padding, dilation, groups, end);
  }
  void add(const ConvTransposeOptions &options) {
    const auto &[stride, padding, outputPadding, groups, dilation, end] = options;
    addAll(stride, padding, outputPadding, groups, dilation, end);
  }
  void add(const MaxPoolOptions &options) {
    const auto &[stride, padding, dilation, ceil, end] = options;
    addAll(stride, padding, dilation, ceil, end);
  }
  void add(const AvgPoolOptions &options) {
    const auto &[stride, padding, ceil, include, end] = options;
    addAll(stride, padding, ceil, include, end);
  }
  void add(const CumsumOptions &options) {
    const auto &[exclusive, reverse] = options;
    addAll(exclusive, reverse);
  }
  void add(const InterpolateOptions &options) {
    const auto &[mode, align] = options;
    addAll(mode, align);
  }

  template <class... T> void addAll(const T &...values) { (add(values), ...); }

  std::string_view text() const { return {overflow.empty() ? buffer : overflow.data(), size}; }
  /// The operands in order, without empty handles.
  std::span<ArrayImpl *const> arrays() const {
    return {moreArrays.empty() ? fewArrays : moreArrays.data(), arrayCount};
  }

private:
  void addBytes(const void *bytes, std::size_t count) {
    if (size + count > sizeof buffer && overflow.empty())
      overflow.assign(buffer, size);
    if (overflow.empty())
      std::memcpy(buffer + size, bytes, count);
    else
      overflow.append(static_cast<const char *>(bytes), count);
    size += count;
  }
  template <class List> void addList(const List &list) {
    add(list.size());
    for (const auto &element : list)
      add(element);
  }

  char buffer[256];
  std::string overflow; ///< everything, if it is longer than the buffer
  std::size_t size = 0;
  ArrayImpl *fewArrays[8];
  std::vector<ArrayImpl *> moreArrays; ///< all, if they are more than 8
  std::size_t arrayCount = 0;
};

// Arguments stored with a trace. An array is stored as whether it exists, so that the cache keeps no elements alive.

struct KeptArray {
  bool exists;
};
inline KeptArray keep(const Array &array) { return {bool(array)}; }
inline KeptArray keep(const ArrayArg &arg) { return {bool(arg.array)}; }
inline std::vector<KeptArray> keep(const std::vector<Array> &arrays) {
  std::vector<KeptArray> kept;
  for (const Array &array : arrays)
    kept.push_back(keep(array));
  return kept;
}
template <class T> const T &keep(const T &value) { return value; }

/// Substitutes tensors for stored arrays, in order.
struct Tracer {
  std::span<const Tensor> operands;
  std::source_location where;
  std::size_t next = 0;

  TracedOperand operator()(const KeptArray &array) { return {array.exists ? operands[next++] : Tensor(), where}; }
  std::vector<Tensor> operator()(const std::vector<KeptArray> &arrays) {
    std::vector<Tensor> tensors;
    for (const KeptArray &array : arrays)
      tensors.push_back((*this)(array).tensor);
    return tensors;
  }
  template <class T> const T &operator()(const T &value) { return value; }
};

inline std::vector<Tensor> resultsOf(const Tensor &result) { return {result}; }
inline std::vector<Tensor> resultsOf(const std::vector<Tensor> &results) { return results; }
inline std::vector<Tensor> resultsOf(const TopK &top) { return {top.values, top.indices}; }

/// A call to run.
struct CallRequest {
  const char *function; ///< for errors
  std::source_location where;
  const CallKey *key;
  void *context;                           ///< of `trace`
  Trace (*trace)(void *context);           ///< called if the key is new
  bool isWhole = false;                    ///< a function by jit, which may use all devices
  bool callsModules = false;               ///< whether it may call modules; their arrays are further operands
  const CompileOptions *options = nullptr; ///< of the compilation; null: the defaults
  std::optional<Device> device = {};       ///< of the results of a call without arrays; none: the default device
};
std::vector<Array> run(const CallRequest &request);

/// Runs a function of tensors on arrays. The type of `function` identifies it in the cache, so that it must not have
/// state: two lambdas of one type with different captures would share a program.
template <class Function, class... Arguments>
std::vector<Array> applyOn(const std::optional<Device> &device, const char *name, std::source_location where,
                           const Function &function, const Arguments &...arguments) {
  static const char identity = 0;
  CallKey key(&identity);
  key.addAll(arguments...);
  auto trace = [&]() -> Trace {
    return
        [function, kept = std::tuple(keep(arguments)...)](std::span<const Tensor> operands, std::source_location line) {
          Tracer tracer{operands, line};
          return std::apply(
              [&](const auto &...its) {
                std::tuple traced{tracer(its)...}; // in order
                return resultsOf(std::apply(function, std::move(traced)));
              },
              kept);
        };
  };
  return run({.function = name,
              .where = where,
              .key = &key,
              .context = &trace,
              .trace = [](void *context) { return (*static_cast<decltype(trace) *>(context))(); },
              .device = device});
}
/// The same on the device of the operands; returns all results.
template <class Function, class... Arguments>
std::vector<Array> applyAll(const char *name, std::source_location where, const Function &function,
                            const Arguments &...arguments) {
  return applyOn(std::nullopt, name, where, function, arguments...);
}
/// The same; returns the first result.
template <class Function, class... Arguments>
Array apply(const char *name, std::source_location where, const Function &function, const Arguments &...arguments) {
  return std::move(applyOn(std::nullopt, name, where, function, arguments...).front());
}

} // namespace sluice::detail
