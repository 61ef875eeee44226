// Recurrent operators: RNN, GRU and LSTM. The products of all inputs come first, then a scan along the steps.
#include "frontend/onnx/import/Operators.h"
#include "frontend/onnx/operators/Activation.h"
#include "frontend/onnx/operators/Quantize.h"
#include "sluice/ops.h"

#include <functional>

namespace sluice::onnx {

namespace {

/// W and R of a node that holds them in another form; the inputs of the products are then quantized.
struct QuantizedWeights {
  Known input, state;
};

/// The inputs and attributes that the three operators have in common.
class Recurrence {
public:
  /// `gates`: blocks of rows of W and R; `states`: results of a step that the next one takes; h is the first.
  Recurrence(Node &node, std::int64_t gates, std::int64_t states, std::span<const char *const> activations,
             std::optional<QuantizedWeights> quantizedWeights = {});

  /// One step of a direction: the states before it and the product of its input make the states after it.
  using Step = std::function<std::vector<Tensor>(const std::vector<Tensor> &states, const Tensor &product)>;
  /// Sets all results. `stepOf` makes the step of a direction.
  void run(const std::function<Step(std::int64_t direction)> &stepOf);

  /// Rows of an input [directions, rows, ...] of one direction: a parameter if the input is known.
  Tensor rows(std::size_t input, std::int64_t direction, std::int64_t first, std::int64_t count);
  /// An input or a state, as a factor of a product.
  Tensor factor(const Tensor &x) const;
  /// The blocks `first` to `last` of R.
  Tensor stateWeight(std::int64_t direction, std::int64_t first, std::int64_t last) {
    return rows(kStateWeight, direction, first * hidden, (last - first) * hidden);
  }
  /// The last block of the biases of the state; empty if there are none.
  Tensor lastStateBias(std::int64_t direction);
  /// A block of columns of [batch, blocks * hidden].
  Tensor gate(const Tensor &x, std::int64_t number) const { return x.slice(1, number * hidden, (number + 1) * hidden); }
  const Activation &activation(std::int64_t direction, std::int64_t number) const {
    return functions[std::size_t(direction) * perDirection + std::size_t(number)];
  }
  /// The activation of a gate, whose argument is clipped.
  Tensor activated(std::int64_t direction, std::int64_t number, const Tensor &x) const {
    return activation(direction, number)(limit ? sluice::clip(x, -*limit, *limit) : x);
  }

  const std::int64_t directions;
  std::int64_t hidden = 0;
  /// The blocks of the biases of the state that are added to the product of the input.
  std::int64_t addedGates;

private:
  static constexpr std::size_t kInputWeight = 1, kStateWeight = 2, kBias = 3, kLengths = 4, kFirstState = 5;

  void checkShapes();
  /// An input, or W or R in their usual form; null if it is not known.
  const Known *knownInput(std::size_t input) const;
  Dims weightDims(std::size_t input) const { return quantizedWeights ? knownInput(input)->dims() : node.dims(input); }
  Tensor bias(std::int64_t direction);
  Tensor firstState(std::int64_t number, std::int64_t direction, const Tensor &product);
  /// Which sequences still run at each step: bool, [steps, batch, 1], or [batch, steps, 1]. Empty: all.
  Tensor running();
  ScanStep go(const Step &step, bool reverse, const Tensor &product, std::vector<Tensor> first);
  /// Tensors of each direction, as one.
  static Tensor joined(const std::vector<Tensor> &directions, std::int64_t dim) {
    return directions.size() == 1 ? directions[0].unsqueeze(dim) : stack(directions, dim);
  }

  Node &node;
  std::optional<QuantizedWeights> quantizedWeights;
  std::int64_t gates, states, steps = 0;
  bool isReverse;           ///< the first direction
  std::int64_t time, batch; ///< the dimensions of X
  std::size_t perDirection;
  std::vector<Activation> functions;
  std::optional<double> limit; ///< of the arguments of gates
  Tensor x, mask;
};

} // namespace

static std::int64_t directionsOf(const std::string &direction) {
  if (direction != "forward" && direction != "reverse" && direction != "bidirectional")
    Node::fail("direction '" + direction + "' is not supported");
  return direction == "bidirectional" ? 2 : 1;
}

Recurrence::Recurrence(Node &node, std::int64_t gates, std::int64_t states, std::span<const char *const> activations,
                       std::optional<QuantizedWeights> weights)
    : directions(directionsOf(node.text("direction", "forward"))), addedGates(gates), node(node),
      quantizedWeights(std::move(weights)), gates(gates), states(states),
      isReverse(node.text("direction", "") == "reverse"), time(node.integer("layout", 0) == 0 ? 0 : 1), batch(1 - time),
      perDirection(activations.size()), functions(activationsOf(node, directions, activations)) {
  checkShapes();
  if (node.hasAttribute("clip"))
    limit = node.real("clip", 0);
  if (limit && !(*limit > 0))
    Node::fail("clip " + std::to_string(*limit) + " is not above 0");
  x = node.tensor(0);
  mask = running();
}

void Recurrence::checkShapes() {
  Dims stateWeight = weightDims(kStateWeight), inputWeight = weightDims(kInputWeight);
  if (node.rank(0) != 3 || stateWeight.size() != 3 || inputWeight.size() != 3)
    Node::fail("X, W and R must have three dimensions");
  hidden = stateWeight[2];
  steps = node.shape(0)[std::size_t(time)].constant;
  if (!node.shape(0)[std::size_t(time)].isKnown())
    Node::fail("the steps are the batch dimension");
  if (stateWeight != Dims{directions, gates * hidden, hidden} || inputWeight[0] != directions ||
      inputWeight[1] != gates * hidden || node.integer("hidden_size", hidden) != hidden)
    Node::fail("the shapes of W and R do not fit the direction or hidden_size");
  if (node.shape(0)[2] != Size{inputWeight[2], 0})
    Node::fail("the shapes of X and W differ in the number of inputs");
  if (node.has(kBias) && node.dims(kBias) != Dims{directions, 2 * gates * hidden})
    Node::fail("the shape of B does not fit W");
}

//===- weights ----------------------------------------------------------------------------------------------------===//

const Known *Recurrence::knownInput(std::size_t input) const {
  if (quantizedWeights && (input == kInputWeight || input == kStateWeight))
    return input == kInputWeight ? &quantizedWeights->input : &quantizedWeights->state;
  return node.known(input);
}

Tensor Recurrence::rows(std::size_t input, std::int64_t direction, std::int64_t first, std::int64_t count) {
  const Known *known = knownInput(input);
  if (!known)
    return node.tensor(input).select(0, direction).slice(0, first, first + count);
  Known one = known->rows(direction, 1);
  return node.weight(input, one.reshaped({known->dims().begin() + 1, known->dims().end()}).rows(first, count));
}

Tensor Recurrence::bias(std::int64_t direction) {
  if (!node.has(kBias))
    return {};
  std::int64_t size = gates * hidden, added = addedGates * hidden;
  const Known *known = node.known(kBias);
  if (!known) {
    Tensor state = rows(kBias, direction, size, size);
    if (added < size)
      state = pad(state.slice(0, 0, added), {0, size - added});
    return rows(kBias, direction, 0, size) + state;
  }
  std::vector<double> sums(static_cast<std::size_t>(size));
  for (std::int64_t i = 0, at = direction * 2 * size; i < size; ++i)
    sums[std::size_t(i)] = known->real(at + i) + (i < added ? known->real(at + size + i) : 0.0);
  return node.weight(kBias, Known::ofReals(known->type(), {size}, sums));
}

Tensor Recurrence::factor(const Tensor &x) const {
  if (!quantizedWeights)
    return x;
  DynamicScale dynamic = dynamicScaleOf(x, x.dim() == 2 ? Axes(1) : Axes()); // a state: of each row
  Tensor integers = clip(sluice::round(x / dynamic.scale) + dynamic.zeroPoint, 0.0, 255.0);
  return (integers - dynamic.zeroPoint) * dynamic.scale;
}

Tensor Recurrence::lastStateBias(std::int64_t direction) {
  return node.has(kBias) ? rows(kBias, direction, (2 * gates - 1) * hidden, hidden) : Tensor();
}

//===- steps ------------------------------------------------------------------------------------------------------===//

Tensor Recurrence::firstState(std::int64_t number, std::int64_t direction, const Tensor &product) {
  std::size_t input = kFirstState + std::size_t(number);
  Dim rows = x.size(batch);
  if (!node.has(input))
    return node.graph().zeros({rows, hidden}, product.dtype());
  if (node.rank(input) != 3 || node.shape(input)[std::size_t(time)] != Size{directions, 0})
    Node::fail("the shape of an initial state does not fit X");
  Tensor first = node.tensor(input).select(time, direction);
  if (first.shape() != Shape{rows, hidden})
    Node::fail("the shape of an initial state does not fit X: it is " + first.shape().str());
  return first;
}

Tensor Recurrence::running() {
  if (!node.has(kLengths))
    return {};
  if (node.rank(kLengths) != 1 || node.shape(kLengths)[0] != node.shape(0)[std::size_t(batch)])
    Node::fail("the shape of sequence_lens does not fit X");
  if (const Known *lengths = node.known(kLengths)) {
    bool isWhole = true;
    for (std::int64_t length : lengths->integers())
      isWhole &= length >= steps;
    if (isWhole)
      return {};
  }
  Tensor lengths = node.tensor(kLengths).to(i32).unsqueeze(time).unsqueeze(2);
  return node.graph().arange(double(steps), i32).unsqueeze(batch).unsqueeze(2) < lengths;
}

/// The states of sequences that have ended stay, and their outputs are 0.
static std::vector<Tensor> masked(const Tensor &mask, const std::vector<Tensor> &before, std::vector<Tensor> after) {
  for (std::size_t i = 0; i < after.size(); ++i)
    after[i] = where(mask, after[i], before[i]);
  return after;
}

ScanStep Recurrence::go(const Step &step, bool reverse, const Tensor &product, std::vector<Tensor> first) {
  std::vector<Tensor> xs{product};
  if (mask)
    xs.push_back(mask);
  auto body = [&](const std::vector<Tensor> &before, const std::vector<Tensor> &slices) {
    std::vector<Tensor> after = step(before, slices[0]);
    Tensor y = after[0];
    if (mask) {
      y = where(slices[1], y, 0.0);
      after = masked(slices[1], before, after);
    }
    return ScanStep{after, node.wants(0) ? std::vector{y} : std::vector<Tensor>{}};
  };
  if (steps > 1)
    return scan(std::move(first), xs, time, body, {.reverse = reverse});
  for (Tensor &slice : xs)
    slice = slice.select(time, 0);
  ScanStep only = body(first, xs);
  for (Tensor &y : only.stacked)
    y = y.unsqueeze(time);
  return only;
}

void Recurrence::run(const std::function<Step(std::int64_t direction)> &stepOf) {
  std::vector<Tensor> outputs;
  std::vector<std::vector<Tensor>> last(static_cast<std::size_t>(states));
  for (std::int64_t direction = 0; direction < directions; ++direction) {
    Tensor product = linear(factor(x), rows(kInputWeight, direction, 0, gates * hidden), bias(direction));
    std::vector<Tensor> first;
    for (std::int64_t state = 0; state < states; ++state)
      first.push_back(firstState(state, direction, product));
    ScanStep all = go(stepOf(direction), isReverse || direction == 1, product, std::move(first));
    outputs.insert(outputs.end(), all.stacked.begin(), all.stacked.end());
    for (std::size_t state = 0; state < last.size(); ++state)
      last[state].push_back(all.carried[state]);
  }
  if (node.wants(0))
    node.set(0, joined(outputs, 1 + time));
  for (std::size_t state = 0; state < last.size(); ++state)
    if (node.wants(1 + state))
      node.set(1 + state, joined(last[state], time));
}

//===- operators --------------------------------------------------------------------------------------------------===//

void rnnOf(Node &node) {
  static constexpr const char *defaults[] = {"Tanh"};
  Recurrence all(node, /*gates=*/1, /*states=*/1, defaults);
  all.run([&](std::int64_t direction) -> Recurrence::Step {
    Tensor weight = all.stateWeight(direction, 0, 1);
    return [&all, direction, weight](const std::vector<Tensor> &states, const Tensor &product) {
      return std::vector{all.activated(direction, 0, product + linear(states[0], weight))};
    };
  });
}

/// The blocks are z (update), r (reset) and the new state, which r changes after the product.
static Recurrence::Step gruLinearFirst(Recurrence &all, std::int64_t direction) {
  Tensor weight = all.stateWeight(direction, 0, 3), bias = all.lastStateBias(direction);
  return [&all, direction, weight, bias](const std::vector<Tensor> &states, const Tensor &product) {
    const Tensor &h = states[0];
    Tensor ofState = linear(h, weight), linearPart = all.gate(ofState, 2);
    Tensor z = all.activated(direction, 0, all.gate(product, 0) + all.gate(ofState, 0));
    Tensor r = all.activated(direction, 0, all.gate(product, 1) + all.gate(ofState, 1));
    Tensor fresh = all.activated(direction, 1, all.gate(product, 2) + r * (bias ? linearPart + bias : linearPart));
    return std::vector{fresh + z * (h - fresh)};
  };
}

/// The same, where r changes the state before the product.
static Recurrence::Step gruResetFirst(Recurrence &all, std::int64_t direction) {
  Tensor gateWeight = all.stateWeight(direction, 0, 2), weight = all.stateWeight(direction, 2, 3);
  return [&all, direction, gateWeight, weight](const std::vector<Tensor> &states, const Tensor &product) {
    const Tensor &h = states[0];
    Tensor ofState = linear(h, gateWeight);
    Tensor z = all.activated(direction, 0, all.gate(product, 0) + all.gate(ofState, 0));
    Tensor r = all.activated(direction, 0, all.gate(product, 1) + all.gate(ofState, 1));
    Tensor fresh = all.activated(direction, 1, all.gate(product, 2) + linear(r * h, weight));
    return std::vector{fresh + z * (h - fresh)};
  };
}

void gruOf(Node &node) {
  static constexpr const char *defaults[] = {"Sigmoid", "Tanh"};
  Recurrence all(node, /*gates=*/3, /*states=*/1, defaults);
  bool isLinearFirst = node.integer("linear_before_reset", 0) != 0;
  all.addedGates = isLinearFirst ? 2 : 3;
  all.run([&](std::int64_t direction) {
    return isLinearFirst ? gruLinearFirst(all, direction) : gruResetFirst(all, direction);
  });
}

/// The blocks are i (input), o (output), f (forget) and c (cell). `clip` does not clip the argument of h, the cell, as in
/// ONNX Runtime.
static Recurrence::Step lstmStep(Node &node, Recurrence &all, std::int64_t direction) {
  static constexpr std::size_t kPeepholes = 7;
  bool isCoupled = node.integer("input_forget", 0) != 0;
  if (node.has(kPeepholes) && node.dims(kPeepholes) != Dims{all.directions, 3 * all.hidden})
    Node::fail("the shape of P does not fit W");
  Tensor weight = all.stateWeight(direction, 0, 4);
  std::vector<Tensor> peepholes; // of i, o and f
  for (std::int64_t number = 0; node.has(kPeepholes) && number < 3; ++number)
    peepholes.push_back(all.rows(kPeepholes, direction, number * all.hidden, all.hidden));
  return [&all, weight, peepholes, isCoupled, direction](const std::vector<Tensor> &states, const Tensor &product) {
    const Tensor &before = states[1];
    Tensor gates = product + linear(all.factor(states[0]), weight);
    auto seeing = [&](std::int64_t gate, std::size_t peephole, const Tensor &cell) {
      Tensor x = all.gate(gates, gate);
      return all.activated(direction, 0, peepholes.empty() ? x : x + peepholes[peephole] * cell);
    };
    Tensor input = seeing(0, 0, before), forget = isCoupled ? 1.0 - input : seeing(2, 2, before);
    Tensor cell = forget * before + input * all.activated(direction, 1, all.gate(gates, 3));
    return std::vector{seeing(1, 1, cell) * all.activation(direction, 2)(cell), cell};
  };
}

static constexpr const char *kLstmActivations[] = {"Sigmoid", "Tanh", "Tanh"};

void lstmOf(Node &node) {
  Recurrence all(node, /*gates=*/4, /*states=*/2, kLstmActivations);
  all.run([&](std::int64_t direction) { return lstmStep(node, all, direction); });
}

/// A weight [directions, inputs, rows] of integers as [directions, rows, inputs] of floats. The scale and the zero point
/// are [directions] or [directions, rows].
static Known dequantizedWeight(const Node &node, std::size_t input, std::size_t scaleInput) {
  const Known *weight = node.known(input), *scale = node.known(scaleInput), *zero = node.known(scaleInput + 1);
  if (!weight || !scale || !zero || weight->rank() != 3 || !isInteger(weight->type()) || !isFloat(scale->type()))
    Node::fail("weights must be known when the model is imported");
  std::int64_t inputs = weight->dims()[1], rows = weight->dims()[2];
  bool ofRows = scale->rank() == 2;
  if (scale->dims() != zero->dims() ||
      scale->dims() != (ofRows ? Dims{weight->dims()[0], rows} : Dims{weight->dims()[0]}))
    Node::fail("the shape of a scale does not fit the weight");
  std::vector<double> elements(std::size_t(weight->count()));
  for (std::int64_t i = 0; i < weight->count(); ++i) {
    std::int64_t direction = i / (inputs * rows), column = i / rows % inputs, row = i % rows;
    std::int64_t at = ofRows ? direction * rows + row : direction;
    elements[std::size_t((direction * rows + row) * inputs + column)] =
        (weight->real(i) - zero->real(at)) * scale->real(at);
  }
  return Known::ofReals(ElementType::f32, {weight->dims()[0], rows, inputs}, elements);
}

/// ONNX Runtime's LSTM of quantized weights, which quantizes the inputs and states when it runs.
void dynamicQuantizeLstm(Node &node) {
  static constexpr std::size_t kScaleOfInputWeight = 8, kScaleOfStateWeight = 10;
  Recurrence all(node, /*gates=*/4, /*states=*/2, kLstmActivations,
                 QuantizedWeights{dequantizedWeight(node, 1, kScaleOfInputWeight),
                                  dequantizedWeight(node, 2, kScaleOfStateWeight)});
  all.run([&](std::int64_t direction) { return lstmStep(node, all, direction); });
}

} // namespace sluice::onnx
