// BitCast: the bits of elements as another type of the same width.
#include "frontend/onnx/file/Wire.h"
#include "frontend/onnx/import/Operators.h"
#include "frontend/onnx/operators/Casting.h"

namespace sluice::onnx {

/// Throws unless both types have elements of equally many bits.
static ElementType bitCastType(const Node &node) {
  ElementType from = node.type(0), to = ElementType(node.integer("to", 0));
  if (!sizeOf(from) || !sizeOf(to))
    Node::fail("the bits of " + nameOf(sizeOf(from) ? to : from) + " are not supported");
  if (sizeOf(from) != sizeOf(to))
    throw Malformed(nameOf(from) + " and " + nameOf(to) + " differ in width");
  return to;
}

/// Integers of one width differ by wrapping around. The bits of floats are not available in a graph.
void bitCast(Node &node) {
  ElementType from = node.type(0), to = bitCastType(node);
  if (from != to && (isFloat(from) || isFloat(to) || to == ElementType::boolean))
    Node::fail("the bits of " + nameOf(from) + " as " + nameOf(to) + " are not supported" +
               (to == ElementType::boolean ? "" : " unless they are known during the import"));
  node.set(0, castTo(node.tensor(0), from, to), to);
}

bool bitCastKnown(Node &node) {
  const Known *known = node.known(0);
  ElementType to = bitCastType(node);
  if (!known || to == ElementType::boolean)
    return false;
  std::span<const std::byte> bytes(known->at(0),
                                   std::size_t(known->isUniform() ? 1 : known->count()) * known->elementSize());
  if (known->isUniform())
    node.set(0, Known::uniform(to, known->dims(), bytes));
  else
    node.set(0, Known(to, known->dims(), std::vector(bytes.begin(), bytes.end())));
  return true;
}

} // namespace sluice::onnx
