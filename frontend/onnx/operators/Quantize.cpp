// Quantization: QuantizeLinear, DequantizeLinear and DynamicQuantizeLinear.
#include "frontend/onnx/operators/Quantize.h"
#include "frontend/onnx/import/Operators.h"
#include "sluice/ops.h"

#include <algorithm>

namespace sluice::onnx {

//===- scales and zero points -------------------------------------------------------------------------------------===//

Granularity::Granularity(const Node &node) : shape(node.shape(0)), block(node.integer("block_size", 0)) {
  std::vector<Size> scale = node.shape(1);
  std::int64_t rank = std::int64_t(shape.size());
  if (block < 0)
    Node::fail("block_size " + std::to_string(block) + " is not supported");
  if (block == 0 && scale.size() <= 1 && (scale.empty() || scale[0] == Size{1, 0}))
    return;
  axis = Node::axisOf(node.integer("axis", 1), rank);
  Size along = shape[std::size_t(*axis)];
  std::vector<Size> expected = block > 0 ? shape : std::vector{along};
  if (block > 0)
    expected[std::size_t(*axis)] = {along.constant / block + (along.constant % block > 0), 0};
  if (scale != expected || !along.isKnown())
    Node::fail("the shape of the scale does not fit the input");
}

Tensor Granularity::aligned(const Tensor &scale) const {
  if (!axis)
    return scale.dim() == 0 ? scale : scale.squeeze();
  Size along = shape[std::size_t(*axis)];
  if (block == 0) {
    std::vector<Dim> dims(shape.size(), Dim(1));
    dims[std::size_t(*axis)] = along.constant;
    return scale.reshape(Shape(dims));
  }
  Tensor copies = scale.unsqueeze(*axis + 1);
  Shape single = copies.shape();
  std::vector<Dim> dims(single.begin(), single.end());
  dims[std::size_t(*axis) + 1] = std::min(block, along.constant);
  return copies.expand(Shape(dims)).flatten(*axis, *axis + 1).slice(*axis, 0, along.constant);
}

std::int64_t Granularity::scaleOf(std::int64_t element) const {
  if (!axis)
    return 0;
  std::int64_t inner = 1, along = shape[std::size_t(*axis)].constant;
  for (std::size_t i = std::size_t(*axis) + 1; i < shape.size(); ++i)
    inner *= shape[i].constant;
  std::int64_t place = element / inner % along;
  if (block == 0)
    return place;
  std::int64_t blocks = along / block + (along % block > 0);
  return (element / inner / along * blocks + place / block) * inner + element % inner;
}

/// Whether there are elements, all of which are 0.
static bool isZero(const Known *known) {
  bool isZero = known && known->count() > 0;
  for (std::int64_t i = 0; isZero && i < (known->isUniform() ? 1 : known->count()); ++i)
    isZero = known->integer(i) == 0;
  return isZero;
}

/// One element may be a scalar or a vector in both, each in its own form.
static void requireSameShape(const Node &node) {
  auto isOne = [](const std::vector<Size> &shape) { return shape.empty() || shape == std::vector{Size{1, 0}}; };
  if (node.has(2) && node.shape(2) != node.shape(1) && !(isOne(node.shape(1)) && isOne(node.shape(2))))
    Node::fail("the scale and the zero point differ in their shapes");
}

//===- QuantizeLinear ---------------------------------------------------------------------------------------------===//

Tensor quantized(const Tensor &quotient, const Tensor &zeroPoint, ElementType type) {
  std::optional<DType> held = heldAs(type);
  if (!held || !isInteger(type))
    Node::fail("quantization to the type " + nameOf(type) + " is not supported");
  Tensor y = sluice::round(quotient).to(f32);
  if (bool(zeroPoint))
    y = y + zeroPoint.to(f32);
  auto [least, most] = limitsOf(type);
  return clip(y, double(least), double(most)).to(*held);
}

void quantizeLinear(Node &node) {
  requireSameShape(node);
  auto type = ElementType(node.integer("output_dtype", 0));
  if (type == ElementType::undefined)
    type = node.has(2) ? node.type(2) : ElementType::u8;
  else if (node.has(2) && type != node.type(2))
    Node::fail("output_dtype is " + nameOf(type) + ", and the zero point is " + nameOf(node.type(2)));
  if (type == ElementType::i32 || type == ElementType::i64 || type == ElementType::u32)
    Node::fail("quantization to the type " + nameOf(type) + " is not supported");
  Granularity granularity(node);
  Tensor scale = granularity.aligned(node.tensor(1));
  auto precision = ElementType(node.integer("precision", 0));
  std::optional<DType> dtype = precision == ElementType::undefined ? scale.dtype() : heldAs(precision);
  if (!dtype || !is_float(*dtype))
    Node::fail("the precision " + nameOf(precision) + " is not supported");
  Tensor quotient = node.tensor(0).to(*dtype) / scale.to(*dtype);
  bool isShifted = node.has(2) && !isZero(node.known(2));
  node.set(0, quantized(quotient, isShifted ? granularity.aligned(node.tensor(2)) : Tensor(), type), type);
}

//===- DequantizeLinear -------------------------------------------------------------------------------------------===//

static ElementType dequantizedType(const Node &node) {
  requireSameShape(node);
  auto type = ElementType(node.integer("output_dtype", 0));
  if (type == ElementType::undefined)
    type = node.type(1);
  for (ElementType of : {type, node.type(1)})
    if (!isFloat(of))
      Node::fail("values of type " + nameOf(of) + " are not supported");
  if (!isInteger(node.type(0)))
    Node::fail("dequantization of values of type " + nameOf(node.type(0)) + " is not supported");
  return type;
}

void dequantizeLinear(Node &node) {
  ElementType type = dequantizedType(node);
  Granularity granularity(node);
  Tensor x = node.tensor(0), scale = granularity.aligned(node.tensor(1));
  if (node.has(2) && !isZero(node.known(2)))
    x = x.to(i32) - granularity.aligned(node.tensor(2)).to(i32);
  DType wide = scale.dtype() == f64 ? f64 : f32; // products of f16 and bf16 are rounded once
  node.set(0, (x.to(wide) * scale.to(wide)).to(*heldAs(type)), type);
}

/// The same for weights: also for more elements than folding takes.
bool dequantizeKnown(Node &node) {
  const Known *x = node.known(0), *scale = node.known(1), *zeroPoint = node.known(2);
  ElementType type = dequantizedType(node);
  if (!x || !scale || (node.has(2) && !zeroPoint) || !heldAs(x->type()) || x->count() == 0)
    return false;
  Granularity granularity(node);
  bool isDouble = scale->type() == ElementType::f64;
  std::size_t width = *sizeOf(type);
  std::vector<std::byte> bytes(std::size_t(x->count()) * width);
  for (std::int64_t i = 0; i < x->count(); ++i) {
    std::int64_t at = granularity.scaleOf(i);
    std::int64_t difference = x->integer(i) - (zeroPoint ? zeroPoint->integer(at) : 0);
    double y = isDouble ? double(difference) * scale->real(at) : double(float(difference) * float(scale->real(at)));
    storeReal(type, y, bytes.data() + std::size_t(i) * width);
  }
  node.set(0, Known(type, x->dims(), std::move(bytes)));
  return true;
}

//===- DynamicQuantizeLinear --------------------------------------------------------------------------------------===//

DynamicScale dynamicScaleOf(const Tensor &x, const Axes &dims) {
  bool keep = !dims.values().empty();
  Tensor least = minimum(sluice::min(x, dims, keep), 0.0), most = maximum(sluice::max(x, dims, keep), 0.0);
  Tensor scale = (most - least) / 255.0;
  scale = where(scale == 0.0, 1.0, scale); // of zeros alone
  return {scale, clip(sluice::round(-least / scale), 0.0, 255.0)};
}

void dynamicQuantizeLinear(Node &node) {
  Tensor x = node.tensor(0);
  DynamicScale dynamic = dynamicScaleOf(x);
  node.set(0, quantized(x / dynamic.scale, dynamic.zeroPoint, ElementType::u8));
  node.set(1, dynamic.scale);
  node.set(2, dynamic.zeroPoint.to(u8));
}

} // namespace sluice::onnx
