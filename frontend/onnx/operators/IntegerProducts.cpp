// Products of quantized values: MatMulInteger, ConvInteger, QLinearMatMul and QLinearConv. Sums of integers are exact: f32
// holds them if none can exceed 2^24, and f64 otherwise.
#include "frontend/onnx/import/Operators.h"
#include "frontend/onnx/operators/Quantize.h"
#include "frontend/onnx/operators/Windows.h"
#include "sluice/ops.h"

#include <algorithm>
#include <cmath>
#include <functional>

namespace sluice::onnx {

namespace {

/// The places of the inputs of a node with their zero points, which may be absent.
struct IntegerInputs {
  std::size_t x, xZero, weight, weightZero;
};

/// How the elements of a weight share zero points and results. Element i has zero point i / inner % zeros, and is a term of
/// result i / block * columns + i % columns.
struct WeightOrder {
  std::int64_t inner, block, columns, terms; ///< terms: of the sum of one result
};

/// The inputs without their zero points, as floats that hold all sums exactly.
struct IntegerFactors {
  Tensor x, weight;
  bool fitsI32; ///< all sums
};

} // namespace

static std::int64_t countOfZeros(const Node &node, std::size_t input) {
  std::int64_t count = 1;
  if (node.has(input))
    for (std::int64_t size : node.dims(input))
      count *= size;
  return count;
}

/// The largest |element - zero point| of a type of 8 bits.
static double greatestOf(const Node &node, std::size_t input, std::size_t zero) {
  ElementType type = node.type(input);
  if (type != ElementType::u8 && type != ElementType::i8)
    Node::fail("a product of values of type " + nameOf(type) + " is not supported");
  auto [least, most] = limitsOf(type);
  const Known *known = node.known(zero);
  if (node.has(zero) && !known)
    return double(most - least);
  double greatest = 0;
  for (std::int64_t i = 0; i < (known ? known->count() : 1); ++i) {
    std::int64_t at = known ? known->integer(i) : 0;
    greatest = std::max({greatest, double(at - least), double(most - at)});
  }
  return greatest;
}

/// The elements of a known weight without its zero points; nothing if one is not known.
static std::optional<std::vector<double>> knownWeight(const Node &node, const IntegerInputs &inputs,
                                                      const WeightOrder &order) {
  const Known *weight = node.known(inputs.weight), *zero = node.known(inputs.weightZero);
  if (!weight || (node.has(inputs.weightZero) && !zero))
    return std::nullopt;
  std::vector<double> elements = weight->reals();
  for (std::int64_t i = 0; zero && i < weight->count(); ++i)
    elements[std::size_t(i)] -= zero->real(i / order.inner % zero->count());
  return elements;
}

/// The largest sum of |element| over the terms of a result.
static double greatestSum(const std::vector<double> &elements, const WeightOrder &order) {
  std::vector<double> sums(elements.size() / std::size_t(order.terms));
  for (std::size_t i = 0; i < elements.size(); ++i)
    sums[i / std::size_t(order.block) * std::size_t(order.columns) + i % std::size_t(order.columns)] +=
        std::abs(elements[i]);
  return *std::ranges::max_element(sums);
}

static Tensor withoutZero(const Tensor &x, const Tensor &zero, DType dtype) {
  return bool(zero) ? x.to(dtype) - zero.to(dtype) : x.to(dtype);
}

/// `aligned` gives the zero point of an input a shape that broadcasts.
static IntegerFactors integerFactors(Node &node, const IntegerInputs &inputs, const WeightOrder &order,
                                     const std::function<Tensor(std::size_t zero)> &aligned) {
  double greatest = greatestOf(node, inputs.x, inputs.xZero);
  double most = greatest * greatestOf(node, inputs.weight, inputs.weightZero) * double(order.terms);
  std::optional<std::vector<double>> known = knownWeight(node, inputs, order);
  if (known)
    most = greatest * greatestSum(*known, order);
  DType dtype = most < 0x1p24 ? f32 : f64;
  IntegerFactors factors{{}, {}, most < 0x1p31};
  factors.x = withoutZero(node.tensor(inputs.x), node.has(inputs.xZero) ? aligned(inputs.xZero) : Tensor(), dtype);
  if (known)
    factors.weight =
        node.weight(inputs.weight, Known::ofReals(elementTypeOf(dtype), node.known(inputs.weight)->dims(), *known));
  else
    factors.weight = withoutZero(node.tensor(inputs.weight),
                                 node.has(inputs.weightZero) ? aligned(inputs.weightZero) : Tensor(), dtype);
  return factors;
}

/// A sum as i32, which wraps around.
static Tensor sumAsI32(const Tensor &sum, bool fits) { return fits ? sum.to(i32) : sum.to(i64).to(i32); }

/// A scale or zero point of a matrix: one for all, or one for each row or column.
static Tensor ofMatrix(Node &node, std::size_t input, bool ofRows) {
  Tensor all = node.tensor(input);
  if (countOfZeros(node, input) == 1)
    return all.dim() == 0 ? all : all.squeeze();
  return ofRows && all.dim() == 1 ? all.unsqueeze(1) : all;
}

/// One for all, or one for each channel of the result, which has `rank` dimensions.
static Tensor ofChannels(Node &node, std::size_t input, std::int64_t rank) {
  Tensor all = node.tensor(input);
  std::int64_t count = countOfZeros(node, input);
  if (count == 1)
    return all.dim() == 0 ? all : all.squeeze();
  std::vector<Dim> shape(std::size_t(rank), Dim(1));
  shape[1] = count;
  return all.reshape(Shape(shape));
}

//===- products ---------------------------------------------------------------------------------------------------===//

static Tensor integerMatrices(Node &node, const IntegerInputs &inputs, bool &fitsI32) {
  std::vector<Size> shape = node.shape(inputs.weight);
  if (shape.empty() || node.rank(inputs.x) == 0)
    Node::fail("a product of scalars is not supported");
  std::int64_t terms = shape[shape.size() < 2 ? 0 : shape.size() - 2].constant,
               columns = shape.size() < 2 ? 1 : shape.back().constant;
  if (terms < 1 || columns < 1)
    Node::fail("the batch is a dimension of the second matrix");
  std::int64_t zeros = countOfZeros(node, inputs.weightZero);
  if (zeros != 1 && (zeros != columns || node.rank(inputs.weightZero) != 1))
    Node::fail("zero points of the second matrix with " + std::to_string(zeros) + " elements are not supported");
  IntegerFactors factors =
      integerFactors(node, inputs, {.inner = 1, .block = terms * columns, .columns = columns, .terms = terms},
                     [&](std::size_t zero) { return ofMatrix(node, zero, zero == inputs.xZero); });
  fitsI32 = factors.fitsI32;
  return matmul(factors.x, factors.weight);
}

static Tensor integerConvolution(Node &node, const IntegerInputs &inputs, bool &fitsI32) {
  Dims shape = node.dims(inputs.weight);
  if (shape.size() < 3 || countOfZeros(node, inputs.xZero) != 1)
    Node::fail("the shape of the weight or of the zero point is not supported");
  std::int64_t terms = 1, zeros = countOfZeros(node, inputs.weightZero);
  for (std::size_t i = 1; i < shape.size(); ++i)
    terms *= shape[i];
  if (terms < 1 || shape[0] < 1)
    Node::fail("the weight has no elements");
  if (zeros != 1 && zeros != shape[0])
    Node::fail("zero points of the weight with " + std::to_string(zeros) + " elements are not supported");
  IntegerFactors factors = integerFactors(node, inputs, {.inner = terms, .block = terms, .columns = 1, .terms = terms},
                                          [&](std::size_t zero) {
                                            if (zero == inputs.xZero || zeros == 1)
                                              return ofMatrix(node, zero, false);
                                            std::vector<Dim> dims(shape.size(), Dim(1));
                                            dims[0] = zeros;
                                            return node.tensor(zero).reshape(Shape(dims));
                                          });
  fitsI32 = factors.fitsI32;
  return convolved(node, factors.x, factors.weight, {});
}

void matrixProductOfIntegers(Node &node) {
  bool fits = true;
  Tensor sum = integerMatrices(node, {.x = 0, .xZero = 2, .weight = 1, .weightZero = 3}, fits);
  node.set(0, sumAsI32(sum, fits));
}

void convolutionOfIntegers(Node &node) {
  bool fits = true;
  Tensor sum = integerConvolution(node, {.x = 0, .xZero = 2, .weight = 1, .weightZero = 3}, fits);
  node.set(0, sumAsI32(sum, fits));
}

//===- products that are quantized again --------------------------------------------------------------------------===//

/// The inputs of QLinearMatMul and QLinearConv.
static constexpr std::size_t kScaleOfX = 1, kScaleOfWeight = 4, kScaleOfY = 6, kZeroOfY = 7, kBiasOfConv = 8;
static constexpr IntegerInputs kQuantizedInputs{.x = 0, .xZero = 2, .weight = 3, .weightZero = 5};

static Tensor requantized(Node &node, const Tensor &sum, const Tensor &scaleOfX, const Tensor &scaleOfWeight) {
  if (countOfZeros(node, kScaleOfY) != 1 || countOfZeros(node, kZeroOfY) != 1)
    Node::fail("several scales of the result are not supported");
  Tensor scale = scaleOfX * scaleOfWeight / ofMatrix(node, kScaleOfY, false);
  return quantized(sum.to(f32) * scale.to(f32), ofMatrix(node, kZeroOfY, false), node.type(kZeroOfY));
}

void quantizedMatrixProduct(Node &node) {
  bool fits = true;
  Tensor sum = integerMatrices(node, kQuantizedInputs, fits);
  Tensor y = requantized(node, sum, ofMatrix(node, kScaleOfX, true), ofMatrix(node, kScaleOfWeight, false));
  node.set(0, y, node.type(kZeroOfY));
}

void quantizedConvolution(Node &node) {
  bool fits = true;
  Tensor sum = integerConvolution(node, kQuantizedInputs, fits);
  if (countOfZeros(node, kScaleOfX) != 1)
    Node::fail("several scales of the input are not supported");
  if (node.has(kBiasOfConv))
    sum = sumAsI32(sum, fits) + ofChannels(node, kBiasOfConv, sum.dim());
  Tensor y = requantized(node, sum, ofMatrix(node, kScaleOfX, false), ofChannels(node, kScaleOfWeight, sum.dim()));
  node.set(0, y, node.type(kZeroOfY));
}

} // namespace sluice::onnx
