// Sequences, whose lengths are known when a model is imported, and optional values.
#include "frontend/onnx/file/Wire.h"
#include "frontend/onnx/import/Operators.h"
#include "frontend/onnx/operators/Control.h"
#include "frontend/onnx/operators/Joining.h"
#include "frontend/onnx/operators/Moving.h"
#include "frontend/onnx/operators/Parts.h"
#include "frontend/onnx/operators/Sizes.h"
#include "sluice/ops.h"

#include <algorithm>

namespace sluice::onnx {

/// Throws if a sequence is long. Each element is a value of the importer.
static void requireFew(std::int64_t elements) {
  if (elements > 4096)
    Node::fail("a sequence of more than 4096 elements is not supported");
}

/// A place in a sequence, counted from the front.
static std::int64_t placeOf(Node &node, std::size_t input, std::int64_t size, std::int64_t otherwise) {
  return node.has(input) ? Node::axisOf(node.integer(input, "the position in a sequence"), size) : otherwise;
}

void sequenceOf(Node &node) {
  Sequence sequence;
  for (std::size_t i = 0; i < node.inputs(); ++i) {
    node.input(i); // not absent, and no sequence
    sequence.elements.push_back(node.inputValue(i));
  }
  node.set(0, valueOf(std::move(sequence)));
}

void emptySequence(Node &node) { node.set(0, valueOf(Sequence())); }

void lengthOfSequence(Node &node) { node.set(0, Known::scalar(std::int64_t(node.sequence(0).elements.size()))); }

void elementOfSequence(Node &node) {
  const Sequence &sequence = node.sequence(0);
  node.set(0, sequence.elements[std::size_t(placeOf(node, 1, std::int64_t(sequence.elements.size()), 0))]);
}

void insertedIntoSequence(Node &node) {
  const std::vector<ValuePtr> &before = node.sequence(0).elements;
  auto size = std::int64_t(before.size());
  requireFew(size + 1);
  node.input(1); // not absent, and no sequence
  // A negative place counts from the end of the old sequence.
  std::int64_t place = node.has(2) ? node.integer(2, "the position in a sequence") : size;
  place = place == size ? size : Node::axisOf(place, size);
  Sequence sequence;
  sequence.elements.reserve(std::size_t(size) + 1);
  sequence.elements.assign(before.begin(), before.begin() + place);
  sequence.elements.push_back(node.inputValue(1));
  sequence.elements.insert(sequence.elements.end(), before.begin() + place, before.end());
  node.set(0, valueOf(std::move(sequence)));
}

void erasedFromSequence(Node &node) {
  Sequence sequence = node.sequence(0);
  auto size = std::int64_t(sequence.elements.size());
  if (size == 0)
    throw Malformed("a sequence without elements loses one");
  sequence.elements.erase(sequence.elements.begin() + placeOf(node, 1, size, size - 1));
  node.set(0, valueOf(std::move(sequence)));
}

void joinedSequence(Node &node) {
  const Sequence &sequence = node.sequence(0);
  if (sequence.elements.empty())
    Node::fail("a sequence without elements is joined");
  std::int64_t axis = node.integer("axis", 0);
  node.set(0, node.integer("new_axis", 0) != 0 ? stackedValues(node, sequence.elements, axis)
                                               : joinedValues(node, sequence.elements, axis));
}

/// The sizes of parts: all 1, all equal but the last, or given.
static std::vector<std::int64_t> partSizes(Node &node, std::int64_t size) {
  std::int64_t each = 1;
  if (node.has(1) && node.rank(1) > 0) {
    std::vector<std::int64_t> sizes = node.integers(1, "the sizes of parts");
    requireFew(std::int64_t(sizes.size()));
    return sizes;
  }
  if (node.has(1))
    each = node.integer(1, "the size of parts");
  if (each < 1)
    throw Malformed("parts have the size " + std::to_string(each));
  requireFew(size / each + (size % each != 0));
  std::vector<std::int64_t> sizes;
  for (std::int64_t left = size; left > 0; left -= sizes.back())
    sizes.push_back(std::min(each, left));
  return sizes;
}

void splitToSequence(Node &node) {
  std::vector<Size> shape = node.shape(0);
  auto axis = std::size_t(Node::axisOf(node.integer("axis", 0), node.rank(0)));
  if (!shape[axis].isKnown())
    Node::fail("the batch cannot be split");
  bool keeps = node.has(1) || node.integer("keepdims", 1) != 0;
  std::int64_t start = 0;
  Sequence sequence;
  for (std::int64_t size : partSizes(node, shape[axis].constant)) {
    if (size < 0 || size > shape[axis].constant - start)
      throw Malformed("the sizes of parts do not add up to " + textOf(shape[axis]));
    ValuePtr part = partOf(node, axis, start, size);
    if (!keeps) {
      std::vector<Size> without = part->shape();
      without.erase(without.begin() + std::int64_t(axis));
      const Tensor *tensor = part->tensor();
      part = tensor ? valueOf(reshapedTo(node, *tensor, without), part->type) : redimensioned(*part, without);
    }
    sequence.elements.push_back(part);
    start += size;
  }
  if (start != shape[axis].constant)
    throw Malformed("the sizes of parts do not add up to " + textOf(shape[axis]));
  node.set(0, valueOf(std::move(sequence)));
}

/// Calls a graph with the elements of sequences, one after another, and with tensors, and collects each of its results.
void mappedSequence(Node &node) {
  file::Graph body = node.graphAttribute("body");
  std::vector<Sequence> results(node.outputs());
  std::size_t length = node.sequence(0).elements.size();
  for (std::size_t i = 0; i < length; ++i) {
    node.countIteration();
    std::vector<ValuePtr> inputs;
    for (std::size_t k = 0; k < node.inputs(); ++k) {
      const Sequence *sequence = node.has(k) ? node.inputValue(k)->sequence() : nullptr;
      if (sequence && sequence->elements.size() != length)
        throw Malformed("sequences of different lengths are mapped");
      inputs.push_back(sequence ? sequence->elements[i] : node.inputValue(k));
    }
    std::vector<ValuePtr> made = resultsOf(node, body, inputs, results.size());
    for (std::size_t k = 0; k < results.size(); ++k)
      results[k].elements.push_back(made[k]);
  }
  for (std::size_t k = 0; k < results.size(); ++k)
    node.set(k, valueOf(std::move(results[k])));
}

//===- optional values --------------------------------------------------------------------------------------------===//

void optionalOf(Node &node) {
  if (!node.has(0))
    Node::fail("an optional value without an element is not supported");
  node.set(0, node.inputValue(0));
}

void elementOfOptional(Node &node) { optionalOf(node); }

void hasElement(Node &node) {
  std::int64_t has = node.has(0);
  node.set(0, Known::ofIntegers(ElementType::boolean, {}, {&has, 1}));
}

} // namespace sluice::onnx
