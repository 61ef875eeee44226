// Random programs of functions that tensors and arrays have in common.
#pragma once

#include "sluice/array.h"
#include "sluice/sluice.h"

#include <cstdint>
#include <string>
#include <vector>

namespace sluice::test {

/// One call: the function, the numbers of its operands among all values, and its other arguments.
struct Step {
  std::string op;
  std::vector<size_t> operands;
  std::vector<std::int64_t> integers;
  std::vector<double> numbers;
};

/// The first values are inputs; each step adds one. The last value is the result.
struct RandomProgram {
  std::vector<std::vector<std::int64_t>> inputShapes;
  std::vector<std::vector<double>> inputs;
  std::vector<Step> steps;
  std::vector<std::int64_t> ints; ///< the index of index_select
};

/// A seed determines one program of up to `most` functions, whose values move among this many devices.
RandomProgram randomProgram(std::uint32_t seed, size_t most, size_t devices);

/// The device of a step "to".
inline Device deviceAt(std::int64_t number) { return number == 0 ? cpu() : gpu(int(number) - 1); }

/// The value of a step, for V = Tensor and Array. `index` is of i32.
template <class V> V run(const Step &step, const std::vector<V> &values, const V &index) {
  const V &x = values[step.operands[0]];
  auto second = [&]() -> const V & { return values[step.operands[1]]; };
  auto third = [&]() -> const V & { return values[step.operands[2]]; };
  auto integer = [&](size_t i) { return step.integers[i]; };
  auto shape = [&] { return Shape(std::vector<Dim>(step.integers.begin(), step.integers.end())); };
#define SLUICE_CASE(name)                                                                                              \
  if (step.op == #name)                                                                                                \
    return name(x);
  SLUICE_CASE(exp)
  SLUICE_CASE(tanh)
  SLUICE_CASE(sigmoid)
  SLUICE_CASE(sin)
  SLUICE_CASE(cos)
  SLUICE_CASE(relu)
  SLUICE_CASE(abs)
  SLUICE_CASE(neg)
  SLUICE_CASE(square)
  SLUICE_CASE(softplus)
  SLUICE_CASE(silu)
  SLUICE_CASE(erf)
  SLUICE_CASE(gelu)
  SLUICE_CASE(elu)
#undef SLUICE_CASE
  if (step.op == "log1p")
    return log1p(square(x));
  if (step.op == "sqrt")
    return sqrt(square(x) + 1.0);
#define SLUICE_CASE(name)                                                                                              \
  if (step.op == #name)                                                                                                \
    return name(x, second());
  SLUICE_CASE(add)
  SLUICE_CASE(sub)
  SLUICE_CASE(mul)
  SLUICE_CASE(maximum)
  SLUICE_CASE(minimum)
  SLUICE_CASE(matmul)
#undef SLUICE_CASE
  if (step.op == "div")
    return x / (square(second()) + 1.0);
  if (step.op == "add_number")
    return x + step.numbers[0];
  if (step.op == "number_mul")
    return step.numbers[0] * x;
  if (step.op == "where")
    return where(gt(x, 0.0), second(), third());
  if (step.op == "masked_fill")
    return masked_fill(x, lt(second(), 0.0), step.numbers[0]);
  if (step.op == "sum")
    return x.sum({integer(0)}, integer(1) != 0);
  if (step.op == "mean")
    return x.mean({integer(0)}, integer(1) != 0);
  if (step.op == "max")
    return x.max({integer(0)}, integer(1) != 0);
  if (step.op == "var")
    return x.var({integer(0)}, 0, integer(1) != 0);
  if (step.op == "logsumexp")
    return x.logsumexp({integer(0)}, integer(1) != 0);
  if (step.op == "softmax")
    return x.softmax(integer(0));
  if (step.op == "log_softmax")
    return x.log_softmax(integer(0));
  if (step.op == "cumsum")
    return cumsum(x, integer(0));
  if (step.op == "reshape")
    return x.reshape(shape());
  if (step.op == "expand")
    return x.expand(shape());
  if (step.op == "transpose")
    return x.transpose(integer(0), integer(1));
  if (step.op == "slice")
    return x.slice(integer(0), integer(1), integer(2), integer(3));
  if (step.op == "select")
    return x.select(integer(0), integer(1));
  if (step.op == "unsqueeze")
    return x.unsqueeze(integer(0));
  if (step.op == "flip")
    return flip(x, {integer(0)});
  if (step.op == "pad")
    return pad(x, std::vector<std::int64_t>{integer(0), integer(1)}, step.numbers[0]);
  if (step.op == "cat")
    return cat({x, second()}, integer(0));
  if (step.op == "stack")
    return stack({x, second()}, integer(0));
  if (step.op == "tril")
    return x.tril(integer(0));
  if (step.op == "index_select")
    return x.index_select(integer(0), index);
  if (step.op == "layer_norm")
    return layer_norm(x, Shape({integer(0)}), {}, {}, 1e-5);
  if (step.op == "linear")
    return linear(x, second());
  if (step.op == "to")
    return x.to(deviceAt(integer(0)));
  throw std::runtime_error("no function " + step.op);
}

/// Evaluates all values of a program. `indexOn(d)` returns the index on device d.
template <class V, class IndexOn>
std::vector<V> runAll(const RandomProgram &program, std::vector<V> values, const IndexOn &indexOn) {
  for (const Step &step : program.steps)
    values.push_back(run<V>(step, values, step.op == "index_select" ? indexOn(step.integers[1]) : V()));
  return values;
}

} // namespace sluice::test
