// Functions of tensors as functions of arrays: jax.jit, jax.grad and jax.value_and_grad.
//
//     auto loss = [](const Tensor &w, const Tensor &x, const Tensor &y) { return mse_loss(matmul(x, w), y); };
//     auto step = jit(value_and_grad(loss));
//     auto [value, gradient] = step(w, x, y);      // one program for all arrays of these shapes
//
// Arguments may be arrays or vectors of arrays; the function receives them as tensors. Numbers, enums, strings, shapes
// and options of ops.h are compile-time constants: each new value compiles the function again. The result is a tensor,
// a vector of tensors, or a pair or tuple of these with at most one vector.
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

// The structure of a function's result, with arrays in place of tensors.
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

/// A function of arrays, compiled by jit. Copies share the compiled programs.
template <class Function> class Jitted {
public:
  Jitted(Function function, CompileOptions options, std::source_location where)
      : state(std::make_shared<State>(State{std::move(function), std::move(options), where})) {}

  template <class... Arguments> auto operator()(const Arguments &...arguments) const {
    using Result = std::invoke_result_t<const Function &, const detail::Traced<Arguments> &...>;
    using Structure = detail::Structure<Result>;
    static_assert(Structure::lists <= 1, "a result has at most one vector of tensors");
    static const char types = 0; // its address identifies the types of the arguments
    detail::CallKey key(state.get());
    key.addAll(reinterpret_cast<std::uintptr_t>(&types), arguments...);
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
                     .callsModules = true,
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

/// Compiles a function of tensors as one program (jax.jit, torch.compile). The first call with new argument types
/// traces `function`: it calls it with tensors, one or several times. So do the first recorded call and the first
/// `backward`. `function` must be pure: captured values are constants of the program, and side effects happen only in
/// traces. It may use the whole graph API: `to` between devices, scan, cond. It may also call modules outside of
/// graphs: each call reads their arrays and, in training, updates their buffers. Such a module must outlive all calls.
/// Programs and captures live until the process ends. Errors of calls name the line of `jit`.
template <class Function>
Jitted<Function> jit(Function function, CompileOptions options = {},
                     std::source_location where = std::source_location::current()) {
  return {std::move(function), std::move(options), where};
}

namespace detail {

/// The gradient of a function with respect to its first argument.
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

/// The gradient with respect to the first argument, a tensor or a vector of tensors (jax.grad). `function` returns a
/// float scalar. The result is again a function of tensors; for a function by jit, it is compiled.
template <class Function>
  requires(!std::convertible_to<Function, Arg>) // grad(loss, values) of ops.h takes tensors
auto grad(Function function) {
  return detail::Gradient<Function, false>{std::move(function)};
}
template <class Function> auto grad(const Jitted<Function> &function) {
  return jit(grad(function.function()), function.options(), function.where());
}
/// The same as a pair of the function's result and the gradient (jax.value_and_grad).
template <class Function> auto value_and_grad(Function function) {
  return detail::Gradient<Function, true>{std::move(function)};
}
template <class Function> auto value_and_grad(const Jitted<Function> &function) {
  return jit(value_and_grad(function.function()), function.options(), function.where());
}

} // namespace sluice
