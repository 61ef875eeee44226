// Branches and scans.
#include "frontend/onnx/operators/Control.h"

#include "frontend/onnx/file/Wire.h"
#include "frontend/onnx/import/Operators.h"
#include "frontend/onnx/operators/Joining.h"
#include "frontend/onnx/operators/Sizes.h"
#include "sluice/formulas.h"
#include "sluice/ops.h"

namespace sluice::onnx {

std::vector<ValuePtr> resultsOf(Node &node, const file::Graph &body, const std::vector<ValuePtr> &inputs,
                                std::size_t count) {
  if (body.outputs.size() != count)
    throw Malformed("a graph has " + std::to_string(body.outputs.size()) + " results, not " + std::to_string(count));
  std::vector<ValuePtr> results = node.call(body, inputs);
  for (const ValuePtr &result : results)
    if (!result || result->isLost())
      Node::fail("a node of its graph is not supported");
  return results;
}

std::vector<Tensor> tensorsOf(Node &node, const std::vector<ValuePtr> &values, std::vector<ElementType> *types) {
  std::vector<Tensor> tensors;
  for (const ValuePtr &value : values) {
    tensors.push_back(node.tensorOf(value));
    if (types)
      types->push_back(value->type);
  }
  return tensors;
}

//===- If ---------------------------------------------------------------------------------------------------------===//

/// A known condition inlines one branch, and the other is never imported: its types may not fit.
void branched(Node &node) {
  file::Graph then = node.graphAttribute("then_branch"), otherwise = node.graphAttribute("else_branch");
  std::size_t count = node.outputs();
  if (node.known(0)) {
    bool isTrue = node.integer(0, "the condition") != 0;
    std::vector<ValuePtr> results = resultsOf(node, isTrue ? then : otherwise, {}, count);
    for (std::size_t i = 0; i < count; ++i)
      node.set(i, results[i]);
    return;
  }
  std::vector<ElementType> types, others;
  std::vector<Tensor> results = cond(
      reshapedTo(node, node.tensor(0), {}), [&] { return tensorsOf(node, resultsOf(node, then, {}, count), &types); },
      [&] { return tensorsOf(node, resultsOf(node, otherwise, {}, count), &others); });
  if (types != others)
    throw Malformed("the branches have results of different types");
  for (std::size_t i = 0; i < count; ++i)
    node.set(i, results[i], types[i]);
}

//===- Scan -------------------------------------------------------------------------------------------------------===//

namespace {

/// A scan: the last inputs are scanned, and those before are its states.
struct ScanForm {
  file::Graph body;
  std::size_t states, scanned, stacked;
};

} // namespace

static ScanForm scanForm(Node &node, std::size_t inputs) {
  ScanForm form{node.graphAttribute("body"), 0, 0, 0};
  std::int64_t scanned = node.integer("num_scan_inputs", 0);
  if (scanned < 1 || std::size_t(scanned) > inputs || form.body.outputs.size() < inputs - std::size_t(scanned))
    throw Malformed("num_scan_inputs is " + std::to_string(scanned));
  form.scanned = std::size_t(scanned);
  form.states = inputs - form.scanned;
  form.stacked = form.body.outputs.size() - form.states;
  return form;
}

/// One number for each of `count` values; 0 by default.
static std::vector<std::int64_t> numberOfEach(Node &node, const char *name, std::size_t count) {
  std::vector<std::int64_t> numbers = node.integers(name, std::vector<std::int64_t>(count));
  if (numbers.size() != count)
    throw Malformed(std::string(name) + " has " + std::to_string(numbers.size()) + " numbers");
  return numbers;
}

/// x with a dimension moved to another place.
static Tensor withDimMoved(const Tensor &x, std::int64_t from, std::int64_t to) {
  std::vector<std::int64_t> order;
  for (std::int64_t i = 0; i < x.dim(); ++i)
    if (i != from)
      order.push_back(i);
  order.insert(order.begin() + to, from);
  return from == to ? x : permute(x, order);
}

/// Scans along dimension 0 of `xs`. `types` are those of the inputs and become those of the results.
static ScanStep scanOf(Node &node, const ScanForm &form, const std::vector<Tensor> &init, const std::vector<Tensor> &xs,
                       std::vector<ElementType> &types) {
  std::vector<ElementType> results;
  std::vector<Tensor> all = xs;
  all.push_back(node.graph().arange(double(xs.front().size(0).size)));
  ScanStep whole = scan(init, all, 0, [&](const std::vector<Tensor> &carried, const std::vector<Tensor> &slices) {
    AtIteration at(node, slices.back());
    std::vector<ValuePtr> inputs;
    for (const Tensor &tensor : carried)
      inputs.push_back(valueOf(tensor, types[inputs.size()]));
    for (std::size_t i = 0; i < form.scanned; ++i)
      inputs.push_back(valueOf(slices[i], types[inputs.size()]));
    std::vector<Tensor> made =
        tensorsOf(node, resultsOf(node, form.body, inputs, form.states + form.stacked), &results);
    auto split = made.begin() + std::int64_t(form.states);
    return ScanStep{{made.begin(), split}, {split, made.end()}};
  });
  types = results;
  return whole;
}

void scanned(Node &node) {
  ScanForm form = scanForm(node, node.inputs());
  std::vector<std::int64_t> axes = numberOfEach(node, "scan_input_axes", form.scanned),
                            backwards = numberOfEach(node, "scan_input_directions", form.scanned),
                            outputAxes = numberOfEach(node, "scan_output_axes", form.stacked),
                            outputBackwards = numberOfEach(node, "scan_output_directions", form.stacked);
  std::vector<Tensor> init, xs;
  std::vector<ElementType> types;
  for (std::size_t i = 0; i < node.inputs(); ++i)
    types.push_back(node.type(i));
  for (std::size_t i = 0; i < form.states; ++i)
    init.push_back(node.tensor(i));
  for (std::size_t i = 0; i < form.scanned; ++i) {
    std::size_t input = form.states + i;
    Tensor x = withDimMoved(node.tensor(input), Node::axisOf(axes[i], node.rank(input)), 0);
    xs.push_back(backwards[i] != 0 ? flip(x, 0) : x);
  }
  ScanStep whole = scanOf(node, form, init, xs, types);
  for (std::size_t i = 0; i < form.states; ++i)
    node.set(i, whole.carried[i], types[i]);
  for (std::size_t i = 0; i < form.stacked; ++i) {
    Tensor y = outputBackwards[i] != 0 ? flip(whole.stacked[i], 0) : whole.stacked[i];
    node.set(form.states + i, withDimMoved(y, 0, Node::axisOf(outputAxes[i], y.dim())), types[form.states + i]);
  }
}

/// Version 8: a first input of lengths, and a batch [B, ...] of states and of scanned values [B, T, ...]. The graph sees
/// one row at a time.
void scannedByRow(Node &node) {
  if (node.has(0))
    Node::fail("lengths of sequences are not supported");
  if (node.inputs() < 2)
    throw Malformed("a scan has no inputs");
  ScanForm form = scanForm(node, node.inputs() - 1);
  std::vector<std::int64_t> backwards = numberOfEach(node, "directions", form.scanned);
  std::vector<Size> shape = node.shape(1);
  constexpr std::int64_t most = 1024;
  if (shape.empty() || !shape[0].isKnown() || shape[0].constant > most)
    Node::fail("version 8 with other rows than 1 to " + std::to_string(most) + " is not supported");
  std::vector<std::vector<ValuePtr>> results(form.states + form.stacked);
  for (std::int64_t row = 0; row < shape[0].constant; ++row) {
    node.countIteration();
    std::vector<Tensor> init, xs;
    std::vector<ElementType> types;
    for (std::size_t i = 0; i < form.states + form.scanned; ++i) {
      Tensor x = select(node.tensor(i + 1), 0, row);
      types.push_back(node.type(i + 1));
      bool isReversed = i >= form.states && backwards[i - form.states] != 0;
      (i < form.states ? init : xs).push_back(isReversed ? flip(x, 0) : x);
    }
    ScanStep whole = scanOf(node, form, init, xs, types);
    for (std::size_t i = 0; i < results.size(); ++i)
      results[i].push_back(valueOf(i < form.states ? whole.carried[i] : whole.stacked[i - form.states], types[i]));
  }
  for (std::size_t i = 0; i < results.size(); ++i)
    node.set(i, stackedValues(node, results[i], 0));
}

} // namespace sluice::onnx
