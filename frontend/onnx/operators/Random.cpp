// Random numbers. The key of a node comes from its seed or its name, so that every call gives the same numbers. In a loop,
// each iteration has a key.
#include "sluice/random.h"
#include "frontend/onnx/import/Operators.h"
#include "sluice/ops.h"

#include <bit>

namespace sluice::onnx {

/// 64-bit FNV-1a.
static std::uint64_t hashOf(const std::string &text) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (char c : text)
    hash = (hash ^ std::uint8_t(c)) * 0x100000001b3;
  return hash;
}

static Tensor keyOf(Node &node) {
  Graph graph = node.graph();
  bool hasSeed = node.hasAttribute("seed");
  std::uint64_t seed = hasSeed ? std::bit_cast<std::uint32_t>(float(node.real("seed", 0))) : hashOf(node.name());
  Tensor key = random::key(graph, seed + std::uint64_t(node.iterations()) * 0x9e3779b97f4a7c15); // of unrolled loops
  for (const Tensor &iteration : node.scanIterations())
    key = random::bits(key + iteration.to(i32), {2});
  return key;
}

/// The type that the attribute `dtype` names, or else `otherwise`.
static ElementType typeOfNumbers(const Node &node, ElementType otherwise) {
  auto type = ElementType(node.integer("dtype", 0));
  if (type == ElementType::undefined)
    type = otherwise;
  if (!heldAs(type))
    Node::fail("values of type " + nameOf(type) + " are not supported");
  return type;
}

static Shape staticShape(const std::vector<Size> &sizes) {
  std::vector<Dim> shape;
  for (const Size &size : sizes) {
    if (!size.isKnown())
      Node::fail("random numbers for each row of the batch are not supported");
    shape.emplace_back(size.constant);
  }
  return Shape(shape);
}

static Shape shapeOfNumbers(const Node &node) {
  std::vector<Size> sizes;
  for (std::int64_t size : node.integers("shape"))
    sizes.push_back({size, 0});
  return staticShape(sizes);
}

static void setNumbers(Node &node, const Shape &shape, ElementType type, bool isNormal) {
  if (!isFloat(type))
    Node::fail("random numbers of type " + nameOf(type) + " are not supported");
  Tensor key = keyOf(node);
  double first = isNormal ? node.real("mean", 0) : node.real("low", 0);
  double second = isNormal ? node.real("scale", 1) : node.real("high", 1);
  node.set(0, isNormal ? random::normal(key, shape, first, second, *heldAs(type))
                       : random::uniform(key, shape, first, second, *heldAs(type)));
}

void randomNormal(Node &node) { setNumbers(node, shapeOfNumbers(node), typeOfNumbers(node, ElementType::f32), true); }
void randomUniform(Node &node) { setNumbers(node, shapeOfNumbers(node), typeOfNumbers(node, ElementType::f32), false); }
void randomNormalLike(Node &node) {
  setNumbers(node, staticShape(node.shape(0)), typeOfNumbers(node, node.type(0)), true);
}
void randomUniformLike(Node &node) {
  setNumbers(node, staticShape(node.shape(0)), typeOfNumbers(node, node.type(0)), false);
}

void bernoulli(Node &node) {
  ElementType type = typeOfNumbers(node, node.type(0));
  Tensor probability = node.tensor(0);
  DType dtype = probability.dtype() == f64 ? f64 : f32;
  Tensor numbers = random::uniform(keyOf(node), staticShape(node.shape(0)), 0, 1, dtype);
  node.set(0, (numbers < probability.to(dtype)).to(*heldAs(type)), type);
}

/// Gumbel's method: the class with the largest sum of its log-probability and -log(-log(u)), for a uniform u.
void multinomial(Node &node) {
  std::int64_t samples = node.integer("sample_size", 1);
  ElementType type = typeOfNumbers(node, ElementType::i32);
  if (node.rank(0) != 2 || samples < 1 || (type != ElementType::i32 && type != ElementType::i64))
    Node::fail(std::to_string(samples) + " samples of type " + nameOf(type) + " are not supported");
  Tensor scores = node.tensor(0).to(f32).unsqueeze(1);
  Shape shape = staticShape(node.shape(0));
  Tensor numbers = random::uniform(keyOf(node), {shape[0], samples, shape[1]});
  node.set(0, argmax(scores - sluice::log(-sluice::log(numbers)), 2, false, *heldAs(type)), type);
}

} // namespace sluice::onnx
