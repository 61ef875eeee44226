// Recurrent layers: first the products of all inputs, then a scan along the steps.
#include "frontend/graph/Call.h"
#include "sluice/error.h"
#include "sluice/layers.h"

#include <cmath>

namespace sluice::nn {

Recurrent::Recurrent(Module *parent, std::string name, std::int64_t input_size, std::int64_t hidden_size,
                     std::int64_t gates, std::int64_t states, RecurrentOptions options, Where where)
    : Module(parent, std::move(name), where), hidden(hidden_size), states(states), options(options) {
  if (input_size < 1 || hidden_size < 1 || options.num_layers < 1)
    throw Error("input_size, hidden_size and num_layers are at least 1, not " + std::to_string(input_size) + ", " +
                    std::to_string(hidden_size) + " and " + std::to_string(options.num_layers),
                declared());
  if (options.stateful && options.bidirectional)
    throw Error("a stateful layer cannot be bidirectional: the reverse direction needs the next batch", declared());
  std::int64_t directions = options.bidirectional ? 2 : 1;
  for (std::int64_t number = 0; number < options.num_layers; ++number)
    for (std::int64_t direction = 0; direction < directions; ++direction)
      layers.push_back(makeLayer("_l" + std::to_string(number) + (direction ? "_reverse" : ""), gates,
                                 number ? directions * hidden_size : input_size, where));
}

Recurrent::Layer Recurrent::makeLayer(const std::string &suffix, std::int64_t gates, std::int64_t inputs, Where where) {
  double bound = 1.0 / std::sqrt(double(hidden));
  auto add = [&](const char *what, Shape shape) {
    return parameter(what + suffix, shape, init::uniform(-bound, bound), where);
  };
  Layer layer;
  layer.weight_ih = add("weight_ih", {gates * hidden, inputs});
  layer.weight_hh = add("weight_hh", {gates * hidden, hidden});
  if (options.bias)
    layer.bias_ih = add("bias_ih", {gates * hidden});
  if (options.bias && !options.single_bias)
    layer.bias_hh = add("bias_hh", {gates * hidden});
  return layer;
}

/// [N, hidden_size], for x [N, T, ...].
static Tensor zeroState(const Arg &x, std::int64_t hidden) {
  detail::Call call("zeros", x);
  mlir::RankedTensorType type = detail::Call::type(x.tensor);
  return call.full(0.0, mlir::RankedTensorType::get({type.getDimSize(0), hidden}, type.getElementType()));
}

Tensor Recurrent::forward(Tensor x) {
  if (x.shape().size() != 3)
    throw Error("a recurrent layer takes three dimensions, steps, batch and features, not " + x.shape().str(),
                at(x).where);
  Tensor y = options.batch_first ? x : transpose(at(x), 0, 1);
  std::size_t directions = options.bidirectional ? 2 : 1;
  std::vector<std::vector<Tensor>> lastOf(static_cast<std::size_t>(states));
  for (std::size_t number = 0; number < layers.size(); number += directions) {
    std::vector<Tensor> outputs;
    for (std::size_t direction = 0; direction < directions; ++direction) {
      ScanStep all = go(y, number + direction);
      outputs.push_back(all.stacked[0]);
      for (std::size_t state = 0; state < lastOf.size(); ++state)
        lastOf[state].push_back(unsqueeze(at(all.carried[state]), 0));
    }
    y = cat(outputs, 2, at(y).where);
  }
  last.clear();
  for (const std::vector<Tensor> &of : lastOf)
    last.push_back(of.size() == 1 ? of[0] : cat(of, 0, at(y).where));
  h_n = last[0];
  return options.batch_first ? y : transpose(at(y), 0, 1);
}

ScanStep Recurrent::go(const Tensor &x, std::size_t number) {
  const Layer &layer = layers[number];
  std::vector<Tensor> before = first(x, number);
  auto one = [&](const std::vector<Tensor> &carried, const std::vector<Tensor> &slices) {
    std::vector<Tensor> next = step(slices[0], carried, layer);
    return ScanStep{next, {next[0]}};
  };
  ScanStep all =
      scan(before, {project(x, layer)}, 1, one, {.reverse = options.bidirectional && number % 2 == 1}, at(x).where);
  for (std::size_t state = 0; options.stateful && state < before.size(); ++state)
    before[state].copy_(all.carried[state], at(x).where);
  return all;
}

std::vector<Tensor> Recurrent::first(const Tensor &y, std::size_t number) {
  if (!options.stateful)
    return std::vector<Tensor>(static_cast<std::size_t>(states), zeroState(at(y), hidden));
  bool isBatch = y.shape()[0].symbolic();
  if (!isBatch && detail::Call("stateful", at(y)).graph.entry.empty())
    throw Error("a stateful layer takes the batch dimension, which " + y.shape().str() + " has not", at(y).where);
  static constexpr const char *names[] = {"h_l", "c_l"};
  std::vector<Tensor> carried;
  for (std::int64_t state = 0; state < states; ++state) {
    std::string name = names[state] + std::to_string(number);
    Shape shape({y.shape()[0], Dim(hidden)});
    carried.push_back(isBatch ? buffer(name, shape, init::zeros(), at(y).where)
                              : cache("cached_" + name, shape, at(y).where));
  }
  return carried;
}

Tensor Recurrent::project(const Tensor &x, const Layer &layer) const {
  return linear(at(x), layer.weight_ih, layer.bias_hh ? at(layer.bias_ih) + at(layer.bias_hh) : layer.bias_ih);
}

Tensor Recurrent::gate(const Tensor &gates, std::int64_t number) const {
  return slice(at(gates), 1, number * hidden, (number + 1) * hidden);
}

//===- rnn --------------------------------------------------------------------------------------------------------===//

RNN::RNN(Module *parent, std::string name, std::int64_t input_size, std::int64_t hidden_size, RNNOptions options,
         Where where)
    : Recurrent(parent, std::move(name), input_size, hidden_size, /*gates=*/1, /*states=*/1,
                {options.num_layers, options.bias, options.batch_first, options.single_bias, options.stateful,
                 options.bidirectional},
                where),
      nonlinearity(options.nonlinearity) {}

std::vector<Tensor> RNN::step(const Tensor &projected, const std::vector<Tensor> &states, const Layer &layer) const {
  Tensor sum = at(projected) + at(linear(at(states[0]), layer.weight_hh));
  return {nonlinearity == Nonlinearity::tanh ? tanh(at(sum)) : relu(at(sum))};
}

//===- lstm -------------------------------------------------------------------------------------------------------===//

LSTM::LSTM(Module *parent, std::string name, std::int64_t input_size, std::int64_t hidden_size,
           RecurrentOptions options, Where where)
    : Recurrent(parent, std::move(name), input_size, hidden_size, /*gates=*/4, /*states=*/2, options, where) {}

Tensor LSTM::forward(Tensor x) {
  Tensor y = Recurrent::forward(x);
  c_n = last[1];
  return y;
}

std::vector<Tensor> LSTM::step(const Tensor &projected, const std::vector<Tensor> &states, const Layer &layer) const {
  Tensor gates = at(projected) + at(linear(at(states[0]), layer.weight_hh));
  Tensor input = sigmoid(at(gate(gates, 0))), forget = sigmoid(at(gate(gates, 1))), cell = tanh(at(gate(gates, 2))),
         output = sigmoid(at(gate(gates, 3)));
  Tensor c = at(at(forget) * at(states[1])) + at(at(input) * at(cell));
  return {at(output) * at(tanh(at(c))), c};
}

//===- gru --------------------------------------------------------------------------------------------------------===//

GRU::GRU(Module *parent, std::string name, std::int64_t input_size, std::int64_t hidden_size, RecurrentOptions options,
         Where where)
    : Recurrent(parent, std::move(name), input_size, hidden_size, /*gates=*/3, /*states=*/1, options, where) {}

// bias_hh is not added here: the new gate multiplies the product of the state, including bias_hh, by r.
Tensor GRU::project(const Tensor &x, const Layer &layer) const { return linear(at(x), layer.weight_ih, layer.bias_ih); }

std::vector<Tensor> GRU::step(const Tensor &projected, const std::vector<Tensor> &states, const Layer &layer) const {
  const Tensor &h = states[0];
  Tensor product = linear(at(h), layer.weight_hh, layer.bias_hh);
  Tensor reset = sigmoid(at(gate(projected, 0)) + at(gate(product, 0)));
  Tensor update = sigmoid(at(gate(projected, 1)) + at(gate(product, 1)));
  Tensor fresh = tanh(at(gate(projected, 2)) + at(at(reset) * at(gate(product, 2))));
  return {at(fresh) + at(at(update) * at(at(h) - at(fresh)))};
}

} // namespace sluice::nn
