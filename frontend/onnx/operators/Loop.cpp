// Loops: unrolled, or scans over the numbers of their iterations.
#include "frontend/onnx/file/Wire.h"
#include "frontend/onnx/import/Operators.h"
#include "frontend/onnx/operators/Control.h"
#include "frontend/onnx/operators/Joining.h"
#include "frontend/onnx/operators/Moving.h"
#include "frontend/onnx/operators/Sizes.h"
#include "sluice/ops.h"

#include <algorithm>
#include <limits>
#include <optional>

namespace sluice::onnx {

/// Loops of more iterations whose values are tensors become scans, unless a known condition ends them.
static constexpr std::int64_t kMostTripsUnrolled = 8, kMostTripsUntilCondition = 1024;
/// The most iterations of a scan.
static constexpr std::int64_t kMostTrips = std::int64_t(1) << 24;

namespace {

struct LoopForm {
  file::Graph body;
  std::vector<ValuePtr> states;      ///< before the first iteration
  std::size_t stacked;               ///< the number of results that are collected
  std::optional<std::int64_t> trips; ///< at most
  ValuePtr condition;                ///< of the first iteration

  std::size_t results() const { return 1 + states.size() + stacked; }
  /// The inputs of an iteration.
  std::vector<ValuePtr> inputs(ValuePtr iteration, const std::vector<ValuePtr> &states) const {
    std::vector<ValuePtr> values{std::move(iteration), truth()};
    values.insert(values.end(), states.begin(), states.end());
    return values;
  }
  static ValuePtr truth() {
    constexpr std::int64_t one = 1;
    return valueOf(Known::ofIntegers(ElementType::boolean, {}, {&one, 1}));
  }
};

/// Thrown by a step of a scan if the condition of the loop is computed.
struct NeedsCondition {};

} // namespace

static LoopForm loopForm(Node &node) {
  LoopForm form{node.graphAttribute("body"), {}, 0, std::nullopt, LoopForm::truth()};
  for (std::size_t i = 2; i < node.inputs(); ++i) {
    if (!node.has(i))
      throw Malformed("a value of a loop is absent");
    form.states.push_back(node.inputValue(i));
  }
  if (form.body.outputs.size() < 1 + form.states.size() || form.body.outputs.size() != node.outputs() + 1)
    throw Malformed("the graph of a loop has " + std::to_string(form.body.outputs.size()) + " results");
  form.stacked = form.body.outputs.size() - 1 - form.states.size();
  if (node.has(0))
    form.trips = std::max<std::int64_t>(node.integer(0, "the number of iterations"), 0);
  if (node.has(1))
    form.condition = node.inputValue(1);
  if (form.condition->known() && node.has(1) && node.integer(1, "the condition") == 0)
    form.trips = 0;
  return form;
}

/// A stack of no values; the file may tell their shape.
static ValuePtr emptyStack(const file::ValueInfo &value) {
  Dims dims{0};
  if (!value.shape)
    Node::fail("a loop without iterations collects values of no known shape");
  for (const file::Dimension &dimension : *value.shape) {
    if (!dimension.size)
      Node::fail("a loop without iterations collects values of no known shape");
    dims.push_back(*dimension.size);
  }
  return emptyValue(value.type, dims);
}

static bool areStatic(const std::vector<ValuePtr> &values) {
  return std::ranges::none_of(values, [](const ValuePtr &value) { return value->tensor(); });
}

/// Builds all iterations one after another; false if a condition is computed, or if there are too many iterations of
/// tensors: of all that are possible, or with `untilCondition` before a known condition ends the loop.
static bool unroll(Node &node, const LoopForm &form, bool untilCondition) {
  if (!form.condition->known())
    return false;
  std::vector<ValuePtr> states = form.states;
  std::vector<std::vector<ValuePtr>> stacks(form.stacked);
  std::int64_t trips = form.trips.value_or(std::numeric_limits<std::int64_t>::max());
  bool isRunning = true, isKnown = areStatic(states);
  for (std::int64_t i = 0; i < trips && isRunning; ++i) {
    if (!isKnown && (untilCondition ? i > kMostTripsUntilCondition : trips > kMostTripsUnrolled))
      return false;
    node.countIteration();
    std::vector<ValuePtr> results =
        resultsOf(node, form.body, form.inputs(valueOf(Known::scalar(i)), states), form.results());
    const Known *condition = results.front()->known();
    if (!condition || condition->count() != 1)
      return false;
    isRunning = condition->integer(0) != 0;
    isKnown = areStatic(results);
    auto split = results.begin() + 1 + std::int64_t(states.size());
    states.assign(results.begin() + 1, split);
    for (std::vector<ValuePtr> &stack : stacks)
      stack.push_back(*split++);
  }
  for (std::size_t i = 0; i < states.size(); ++i)
    node.set(i, states[i]);
  for (std::size_t i = 0; i < stacks.size(); ++i)
    node.set(states.size() + i, stacks[i].empty() ? emptyStack(form.body.outputs[1 + states.size() + i])
                                                  : stackedValues(node, stacks[i], 0));
  return true;
}

static std::vector<ValuePtr> valuesOf(const LoopForm &form, const std::vector<Tensor> &tensors) {
  std::vector<ValuePtr> values;
  for (std::size_t i = 0; i < form.states.size(); ++i)
    values.push_back(valueOf(tensors[i], form.states[i]->type));
  return values;
}

/// A scan of all iterations. Throws NeedsCondition if one of them may be the last.
static void scanIterations(Node &node, const LoopForm &form) {
  std::vector<ElementType> types;
  auto step = [&](const std::vector<Tensor> &carried, const std::vector<Tensor> &slices) {
    AtIteration at(node, slices.front());
    std::vector<ValuePtr> results =
        resultsOf(node, form.body, form.inputs(valueOf(slices.front()), valuesOf(form, carried)), form.results());
    const Known *condition = results.front()->known();
    if (!condition || condition->count() != 1 || condition->integer(0) == 0)
      throw NeedsCondition();
    results.erase(results.begin());
    std::vector<Tensor> made = tensorsOf(node, results, &types);
    auto split = made.begin() + std::int64_t(form.states.size());
    return ScanStep{{made.begin(), split}, {split, made.end()}};
  };
  if (!form.condition->known())
    throw NeedsCondition();
  ScanStep whole = scan(tensorsOf(node, form.states), {node.graph().arange(double(*form.trips))}, 0, step);
  whole.carried.insert(whole.carried.end(), whole.stacked.begin(), whole.stacked.end());
  for (std::size_t i = 0; i < whole.carried.size(); ++i)
    node.set(i, whole.carried[i], types[i]);
}

/// A scan of all iterations, of which those after the last that the condition allows change nothing.
static void scanWhile(Node &node, const LoopForm &form) {
  if (form.stacked != 0)
    Node::fail("a loop whose number of iterations is computed collects values");
  auto step = [&](const std::vector<Tensor> &carried, const std::vector<Tensor> &slices) {
    AtIteration at(node, slices.front());
    auto iterate = [&] {
      std::vector<ValuePtr> results =
          resultsOf(node, form.body, form.inputs(valueOf(slices.front()), valuesOf(form, carried)), form.results());
      std::vector<Tensor> made = tensorsOf(node, results);
      made.push_back(reshapedTo(node, made.front(), {}));
      made.erase(made.begin());
      return made;
    };
    return ScanStep{cond(carried.back(), iterate, [&] { return carried; }), {}};
  };
  std::vector<Tensor> init = tensorsOf(node, form.states);
  init.push_back(reshapedTo(node, node.tensorOf(form.condition), {}));
  ScanStep whole = scan(init, {node.graph().arange(double(*form.trips))}, 0, step);
  for (std::size_t i = 0; i < form.states.size(); ++i)
    node.set(i, whole.carried[i], form.states[i]->type);
}

void looped(Node &node) {
  LoopForm form = loopForm(node);
  bool isBounded = form.trips && *form.trips <= kMostTrips;
  if (unroll(node, form, /*untilCondition=*/!isBounded))
    return;
  if (!isBounded)
    Node::fail("the number of iterations has no bound of at most 2^24");
  try {
    scanIterations(node, form);
  } catch (const NeedsCondition &) {
    if (!unroll(node, form, /*untilCondition=*/true))
      scanWhile(node, form);
  }
}

} // namespace sluice::onnx
