#include "frontend/onnx/operators/Joining.h"

#include "frontend/onnx/file/Wire.h"
#include "frontend/onnx/import/Operators.h"
#include "frontend/onnx/operators/Control.h"
#include "frontend/onnx/operators/Moving.h"
#include "frontend/onnx/operators/Sizes.h"
#include "sluice/ops.h"

#include <algorithm>
#include <cstring>
#include <numeric>

namespace sluice::onnx {

static bool isEmpty(const ValuePtr &value) { return value->known() && value->known()->count() == 0; }

static std::int64_t rankOf(const ValuePtr &value) { return std::int64_t(value->shape().size()); }

/// Of values that are all empty: the sum of their sizes along the axis.
static ValuePtr joinedEmpty(const std::vector<ValuePtr> &values, std::int64_t axis) {
  Dims dims = values.front()->known()->dims();
  auto at = std::size_t(Node::axisOf(axis, std::int64_t(dims.size())));
  for (const ValuePtr &value : std::span(values).subspan(1)) {
    const Dims &others = value->known()->dims();
    dims[at] += others.size() > at ? others[at] : 0;
  }
  return emptyValue(values.front()->type, dims);
}

/// Throws unless all values are known, of one type, and agree in all dimensions but the axis.
static void requireJoinable(const std::vector<ValuePtr> &values, std::size_t axis) {
  Dims first = values.front()->known()->dims();
  first[axis] = 0;
  for (const ValuePtr &value : values) {
    Dims dims = value->known()->dims();
    if (value->type != values.front()->type || dims.size() != first.size())
      throw Malformed("tensors of different types or dimensions are joined");
    dims[axis] = 0;
    if (dims != first)
      throw Malformed("tensors of different sizes are joined");
  }
}

static ValuePtr joinedElements(const std::vector<ValuePtr> &values, std::size_t axis) {
  requireJoinable(values, axis);
  const Known &first = *values.front()->known();
  Dims dims = first.dims();
  dims[axis] = 0;
  for (const ValuePtr &value : values)
    dims[axis] += value->known()->dims()[axis];
  std::size_t size = first.elementSize();
  std::vector<std::byte> bytes(std::size_t(countOf(dims)) * size);
  std::int64_t outer =
      std::accumulate(dims.begin(), dims.begin() + std::int64_t(axis), std::int64_t(1), std::multiplies());
  std::byte *to = bytes.data();
  for (std::int64_t i = 0; i < outer; ++i)
    for (const ValuePtr &value : values)
      for (std::int64_t each = value->known()->count() / outer, j = 0; j < each; ++j, to += size)
        std::memcpy(to, value->known()->at(i * each + j), size);
  return valueOf(Known(first.type(), std::move(dims), std::move(bytes)));
}

/// Of vectors of sizes and of known integers.
static ValuePtr joinedSizes(const std::vector<ValuePtr> &values) {
  Sizes result;
  for (const ValuePtr &value : values) {
    if (rankOf(value) != 1)
      throw Malformed("tensors of different dimensions are joined");
    if (const Sizes *sizes = value->sizes())
      result.elements.insert(result.elements.end(), sizes->elements.begin(), sizes->elements.end());
    else
      for (std::int64_t number : value->known()->integers())
        result.elements.push_back({number, 0});
  }
  return valueOf(std::move(result));
}

/// The values joined when the model is imported; null if the graph must join them. None is empty.
static ValuePtr joinedKnown(const std::vector<ValuePtr> &values, std::int64_t axis) {
  std::int64_t elements = 0;
  bool areKnown = true;
  for (const ValuePtr &value : values) {
    if (value->tensor())
      return nullptr;
    areKnown &= value->known() != nullptr;
    elements += value->known() ? value->known()->count() : 0;
  }
  if (elements > kMostMoved)
    return nullptr;
  auto at = std::size_t(Node::axisOf(axis, rankOf(values.front())));
  return areKnown ? joinedElements(values, at) : joinedSizes(values);
}

static std::vector<ValuePtr> withElements(const std::vector<ValuePtr> &values) {
  std::vector<ValuePtr> rest;
  std::ranges::copy_if(values, std::back_inserter(rest), [](const ValuePtr &value) { return !isEmpty(value); });
  return rest;
}

ValuePtr joinedValues(Node &node, const std::vector<ValuePtr> &values, std::int64_t axis) {
  std::vector<ValuePtr> rest = withElements(values);
  if (rest.empty())
    return joinedEmpty(values, axis);
  if (rest.size() == 1)
    return rest.front();
  ValuePtr known = joinedKnown(rest, axis);
  return known ? known : valueOf(cat(tensorsOf(node, rest), axis), rest.front()->type);
}

ValuePtr stackedValues(Node &node, const std::vector<ValuePtr> &values, std::int64_t axis) {
  std::vector<ValuePtr> wide;
  for (const ValuePtr &value : values) {
    std::vector<Size> shape = value->shape();
    shape.insert(shape.begin() + Node::axisOf(axis, std::int64_t(shape.size()) + 1), Size{1, 0});
    wide.push_back(value->tensor() ? nullptr : redimensioned(*value, shape));
  }
  bool areKnown = std::ranges::find(wide, nullptr) == wide.end();
  if (ValuePtr known = areKnown ? joinedKnown(wide, axis) : nullptr)
    return known;
  return valueOf(stack(tensorsOf(node, values), axis), values.front()->type);
}

//===- Concat -----------------------------------------------------------------------------------------------------===//

static std::vector<ValuePtr> allInputs(Node &node) {
  std::vector<ValuePtr> values;
  for (std::size_t i = 0; i < node.inputs(); ++i) {
    node.input(i); // not absent, and no sequence
    values.push_back(node.inputValue(i));
  }
  if (values.empty())
    throw Malformed("nothing is joined");
  return values;
}

static std::int64_t joinedAxis(Node &node) { return node.integer("axis", node.opset() < 4 ? 1 : 0); }

void joined(Node &node) { node.set(0, joinedValues(node, allInputs(node), joinedAxis(node))); }
bool joinKnown(Node &node) {
  std::vector<ValuePtr> values = withElements(allInputs(node));
  return !values.empty() && setIfMoved(node, 0, joinedKnown(values, joinedAxis(node)));
}

} // namespace sluice::onnx
