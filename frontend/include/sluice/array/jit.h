// Functions of tensors as functions of arrays: jax.jit, jax.grad and jax.value_and_grad.
//
//     auto loss = [](const Tensor &w, const Tensor &x, const Tensor &y) { return mse_loss(matmul(x, w), y); };
//     auto step = jit(value_and_grad(loss));
//     auto [value, gradient] = step(w, x, y);      // one program for all arrays of these shapes
//
// Arguments are arrays or vectors of arrays, which the function receives as tensors, and other values, which are part of
// the program: each new one compiles it again. Results are a tensor, a vector of them, or a pair or tuple of both with
// at most one vector.
#pragma once

#include "sluice/array/call.h"

#include <memory>
#include <source_location>
#include <tuple>
#include <utility>
#include <vector>

namespace sluice {

namespace detail {

inline Tensor tracedType(const Array &);
inline std::vector<Tensor> tracedType(const std::vector<Array> &);
template <class T> T tracedType(const T &);
template <class T> using Traced = decltype(tracedType(std::declval<const T &>()));

// The arrays of a result, which has the structure of the function's result.
template <class Result> struct Structure;
template <> struct Structure<Tensor> {
  using Arrays = Array;
  static void list(const Tensor &result, std::vector<Tensor> &into) { into.push_back(result); }
  static Array take(std::vector<Array> &from, std::size_t &next, std::size_t) { return std::move(from[next++]); }
  static constexpr std::size_t fixed = 1, lists = 0;
};
template <> struct Structure<std::vector<Tensor>> {
  using Arrays = std::vector<Array>;
  static void list(const std::vector<Tensor> &result, std::vector<Tensor> &into) {
    into.insert(into.end(), result.begin(), result.end());
  }
  static std::vector<Array> take(std::vector<Array> &from, std::size_t &next, std::size_t count) {
    auto begin = std::move_iterator(from.begin() + std::ptrdiff_t(next));
    next += count;
    return std::vector<Array>(begin, begin + std::ptrdiff_t(count));
  }
  static constexpr std::size_t fixed = 0, lists = 1;
};
template <class... Parts> struct Structure<std::tuple<Parts...>> {
  using Arrays = std::tuple<typename Structure<Parts>::Arrays...>;
  static void list(const std::tuple<Parts...> &result, std::vector<Tensor> &into) {
    std::apply([&](const Parts &...parts) { (Structure<Parts>::list(parts, into), ...); }, result);
  }
  static Arrays take(std::vector<Array> &from, std::size_t &next, std::size_t count) {
    return Arrays{Structure<Parts>::take(from, next, count)...}; // in order
  }
  static constexpr std::size_t fixed = (Structure<Parts>::fixed + ... + 0), lists = (Structure<Parts>::lists + ... + 0);
};
template <class A, class B> struct Structure<std::pair<A, B>> {
  using Arrays = std::pair<typename Structure<A>::Arrays, typename Structure<B>::Arrays>;
  static void list(const std::pair<A, B> &result, std::vector<Tensor> &into) {
    Structure<A>::list(result.first, into);
    Structure<B>::list(result.second, into);
  }
  static Arrays take(std::vector<Array> &from, std::size_t &next, std::size_t count) {
    auto first = Structure<A>::take(from, next, count);
    return {std::move(first), Structure<B>::take(from, next, count)};
  }
  static constexpr std::size_t fixed = Structure<A>::fixed + Structure<B>::fixed,
                               lists = Structure<A>::lists + Structure<B>::lists;
};

inline Tensor toTensor(const TracedOperand &operand) { return operand.tensor; }
template <class T> const T &toTensor(const T &value) { return value; }

} // namespace detail

/// The result of jit: a function of arrays. Copies share their programs.
template <class Function> class Jitted {
public:
  Jitted(Function function, CompileOptions options, std::source_location where)
      : state(std::make_shared<State>(State{std::move(function), std::move(options), where})) {}

  template <class... Arguments> auto operator()(const Arguments &...arguments) const {
    using Result = std::invoke_result_t<const Function &, const detail::Traced<Arguments> &...>;
    using Structure = detail::Structure<Result>;
    static_assert(Structure::lists <= 1, "a result has at most one vector of tensors");
    detail::CallKey key(state.get());
    key.addAll(arguments...);
    auto trace = [&]() -> detail::Trace {
      return [state = state, kept = std::tuple(detail::keep(arguments)...)](std::span<const Tensor> operands,
                                                                            std::source_location line) {
        detail::Tracer tracer{operands, line};
        std::vector<Tensor> results;
        std::apply(
            [&](const auto &...its) {
              std::tuple traced{tracer(its)...}; // in order
              std::apply(
                  [&](const auto &...values) {
                    Structure::list(state->function(detail::toTensor(values)...), results);
                  },
                  traced);
            },
            kept);
        return results;
      };
    };
    std::vector<Array> results =
        detail::run({.function = "jit",
                     .where = state->where,
                     .key = &key,
                     .context = &trace,
                     .trace = [](void *context) { return (*static_cast<decltype(trace) *>(context))(); },
                     .isWhole = true,
                     .options = &state->options});
    std::size_t next = 0;
    return Structure::take(results, next, results.size() - Structure::fixed);
  }

  const Function &function() const { return state->function; }
  const CompileOptions &options() const { return state->options; }
  std::source_location where() const { return state->where; }

private:
  struct State {
    Function function;
    CompileOptions options;
    std::source_location where;
  };
  std::shared_ptr<State> state; ///< its address identifies the function
};

/// One program for the whole function (jax.jit, torch.compile). The function is called with tensors once for each new
/// combination of types, and may use everything of graphs: `to` between devices, scan, cond.
template <class Function>
Jitted<Function> jit(Function function, CompileOptions options = {},
                     std::source_location where = std::source_location::current()) {
  return {std::move(function), std::move(options), where};
}

namespace detail {

/// The gradient of a function by its first argument.
template <class Function, bool withValue> struct Gradient {
  Function function;

  template <class First, class... Rest> auto operator()(const First &first, const Rest &...rest) const {
    Tensor value = function(first, rest...);
    if constexpr (std::is_same_v<First, Tensor>) {
      Tensor gradient = sluice::grad(value, {first}).front();
      if constexpr (withValue)
        return std::pair(value, gradient);
      else
        return gradient;
    } else {
      std::vector<Tensor> gradients = sluice::grad(value, first);
      if constexpr (withValue)
        return std::pair(value, gradients);
      else
        return gradients;
    }
  }
};

} // namespace detail

/// The gradient of a function of tensors, whose result is a float scalar, by its first argument: a tensor, or a vector of
/// tensors. The result is a function of tensors again. Of the result of jit, it is one of arrays.
template <class Function>
  requires(!std::convertible_to<Function, Arg>)
auto grad(Function function) {
  return detail::Gradient<Function, false>{std::move(function)};
}
template <class Function> auto grad(const Jitted<Function> &function) {
  return jit(grad(function.function()), function.options(), function.where());
}
/// The same with the result of the function: a pair of both.
template <class Function> auto value_and_grad(Function function) {
  return detail::Gradient<Function, true>{std::move(function)};
}
template <class Function> auto value_and_grad(const Jitted<Function> &function) {
  return jit(value_and_grad(function.function()), function.options(), function.where());
}

} // namespace sluice
