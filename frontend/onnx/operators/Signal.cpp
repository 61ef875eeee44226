// Signals: DFT and STFT as products with constant matrices, windows and MelWeightMatrix.
#include "frontend/onnx/import/Operators.h"
#include "sluice/ops.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace sluice::onnx {

/// Larger matrices and windows are refused.
static constexpr std::int64_t kMostOfTransform = std::int64_t(1) << 25;

//===- transforms -------------------------------------------------------------------------------------------------===//

namespace {

/// A discrete Fourier transform. Numbers have one part (real) or two.
struct Transform {
  std::int64_t length;     ///< of the transform
  std::int64_t inputs;     ///< elements that it reads; the others up to the length are 0
  std::int64_t inputParts; ///< of an element
  bool isInverse, isOneSided;

  bool isReal() const { return isInverse && isOneSided; } ///< the results
  std::int64_t outputs() const { return isOneSided && !isInverse ? length / 2 + 1 : length; }
  std::int64_t outputParts() const { return isReal() ? 1 : 2; }
};

} // namespace

/// What part `from` of element `n` adds to part `to` of result `k`.
static double factorOf(const Transform &transform, std::int64_t n, std::int64_t from, std::int64_t k, std::int64_t to) {
  double angle = 2 * std::numbers::pi * double(n * k % transform.length) / double(transform.length);
  double cosine = std::cos(angle), sine = transform.isInverse ? std::sin(angle) : -std::sin(angle);
  double value = from == to ? cosine : to == 1 ? sine : -sine;
  if (!transform.isInverse)
    return value;
  // The half of a spectrum counts as both halves. Its ends occur once, and are real.
  bool isEnd = n == 0 || 2 * n == transform.length;
  if (transform.isReal())
    value *= isEnd ? (from == 0 ? 1 : 0) : 2;
  return value / double(transform.length);
}

/// The matrix [inputs * parts, outputs * parts] of a transform.
static std::vector<double> matrixOf(const Transform &transform) {
  std::int64_t rows = transform.inputs * transform.inputParts, columns = transform.outputs() * transform.outputParts();
  if (rows > kMostOfTransform || columns > kMostOfTransform || rows * columns > kMostOfTransform)
    Node::fail("a transform of " + std::to_string(transform.length) + " elements is not supported");
  std::vector<double> elements(std::size_t(rows * columns));
  for (std::int64_t i = 0; i < rows * columns; ++i) {
    std::int64_t row = i / columns, column = i % columns;
    elements[std::size_t(i)] = factorOf(transform, row / transform.inputParts, row % transform.inputParts,
                                        column / transform.outputParts(), column % transform.outputParts());
  }
  return elements;
}

static std::int64_t partsOf(const Node &node) {
  Size parts = node.rank(0) == 0 ? Size{} : node.shape(0).back();
  if (parts != Size{1, 0} && parts != Size{2, 0})
    Node::fail("the last dimension must be 1 (real) or 2 (complex)");
  return parts.constant;
}

static void transformAlong(Node &node, std::int64_t axis) {
  std::int64_t parts = partsOf(node), rank = node.rank(0);
  axis = Node::axisOf(axis, rank);
  if (axis == rank - 1 || !node.shape(0)[std::size_t(axis)].isKnown())
    Node::fail("a transform along dimension " + std::to_string(axis) + " is not supported");
  std::int64_t size = node.shape(0)[std::size_t(axis)].constant;
  Transform transform{.length = size,
                      .inputs = size,
                      .inputParts = parts,
                      .isInverse = node.integer("inverse", 0) != 0,
                      .isOneSided = node.integer("onesided", 0) != 0};
  if (node.has(1))
    transform.length = node.integer(1, "dft_length");
  else if (transform.isReal())
    transform.length = 2 * (size - 1);
  if (transform.length < 1 || transform.length > kMostOfTransform)
    Node::fail("a transform of " + std::to_string(transform.length) + " elements is not supported");
  transform.inputs = std::min(size, transform.isReal() ? transform.length / 2 + 1 : transform.length);
  Tensor x = node.tensor(0);
  std::int64_t rows = transform.inputs * parts, columns = transform.outputs() * transform.outputParts();
  // Results may be much smaller than the elements of x, so sums have the next wider type.
  DType dtype = x.dtype(), wide = dtype == f32 || dtype == f64 ? f64 : f32;
  Tensor matrix = node.constant(Known::ofReals(elementTypeOf(wide), {rows, columns}, matrixOf(transform)));
  x = x.to(wide).slice(axis, 0, transform.inputs).transpose(axis, rank - 2).flatten(rank - 2, rank - 1);
  Tensor y = matmul(x, matrix).to(dtype);
  Shape flat = y.shape();
  std::vector<Dim> shape(flat.begin(), flat.end());
  shape.back() = transform.outputs();
  shape.emplace_back(transform.outputParts());
  node.set(0, y.reshape(Shape(shape)).transpose(axis, rank - 2));
}

void transformByAttribute(Node &node) { transformAlong(node, node.integer("axis", 1)); }
void transformByInput(Node &node) { transformAlong(node, node.has(2) ? node.integer(2, "the axis") : -2); }

/// A convolution whose channels are the results of a transform, with the window in its weight.
void shortTimeTransform(Node &node) {
  static constexpr std::size_t kWindow = 2, kFrameLength = 3;
  std::int64_t parts = partsOf(node);
  if (node.rank(0) != 3 || !node.shape(0)[1].isKnown())
    Node::fail("the signal must be [batch, length, 1] or [batch, length, 2]");
  std::int64_t samples = node.shape(0)[1].constant, step = node.integer(1, "frame_step"), length = samples;
  if (node.has(kWindow) && node.rank(kWindow) == 1)
    length = node.dims(kWindow)[0];
  if (node.has(kFrameLength))
    length = node.integer(kFrameLength, "frame_length");
  if (length < 1 || length > samples || step < 1)
    Node::fail("frames of " + std::to_string(length) + " of " + std::to_string(samples) + " samples, " +
               std::to_string(step) + " apart");
  if (node.has(kWindow) && node.dims(kWindow) != Dims{length})
    Node::fail("the window does not have the length of a frame");
  Transform transform{.length = length,
                      .inputs = length,
                      .inputParts = parts,
                      .isInverse = false,
                      .isOneSided = node.integer("onesided", 1) != 0};
  Tensor x = node.tensor(0).transpose(1, 2);
  std::int64_t channels = transform.outputs() * 2;
  ElementType type = elementTypeOf(x.dtype());
  std::vector<double> matrix = matrixOf(transform), weight(matrix.size());
  const Known *window = node.known(kWindow);
  for (std::int64_t channel = 0, to = 0; channel < channels; ++channel)
    for (std::int64_t part = 0; part < parts; ++part)
      for (std::int64_t n = 0; n < length; ++n)
        weight[std::size_t(to++)] =
            matrix[std::size_t((n * parts + part) * channels + channel)] * (window ? window->real(n) : 1.0);
  Tensor taps = node.constant(Known::ofReals(type, {channels, parts, length}, weight));
  if (node.has(kWindow) && !window)
    taps = taps * node.tensor(kWindow);
  Tensor y = conv1d(x, taps, {}, {.stride = step});
  node.set(0, y.reshape({y.size(0), transform.outputs(), 2, y.size(2)}).permute({0, 3, 1, 2}));
}

//===- windows ----------------------------------------------------------------------------------------------------===//

/// a0 - a1 cos(t) + a2 cos(2 t), with t from 0 to 2 pi.
static void setWindow(Node &node, double a0, double a1, double a2) {
  std::int64_t size = node.integer(0, "the size"), period = size - (node.integer("periodic", 1) != 0 ? 0 : 1);
  auto type = ElementType(node.integer("output_datatype", 1));
  if (size < 0 || size > kMostOfTransform || (size > 0 && period == 0) || !heldAs(type))
    Node::fail("a window of " + std::to_string(size) + " elements of type " + nameOf(type) + " is not supported");
  std::vector<double> elements;
  for (std::int64_t i = 0; i < size; ++i) {
    double angle = 2 * std::numbers::pi * double(i) / double(period);
    elements.push_back(a0 - a1 * std::cos(angle) + a2 * std::cos(2 * angle));
  }
  node.set(0, Known::ofReals(type, {size}, elements));
}

void hannWindow(Node &node) { setWindow(node, 0.5, 0.5, 0); }
void hammingWindow(Node &node) { setWindow(node, 25.0 / 46, 1 - 25.0 / 46, 0); }
void blackmanWindow(Node &node) { setWindow(node, 0.42, 0.5, 0.08); }

/// Triangles whose corners are equally spaced in mel, from the lower edge on. The last one ends below the upper edge, as in
/// ONNX's formula: the step is a part of bins + 2, not of bins + 1.
void melWeightMatrix(Node &node) {
  std::int64_t bins = node.integer(0, "num_mel_bins"), length = node.integer(1, "dft_length"),
               rate = node.integer(2, "sample_rate");
  double lower = node.real(3, "lower_edge_hertz"), upper = node.real(4, "upper_edge_hertz");
  auto type = ElementType(node.integer("output_datatype", 1));
  std::int64_t rows = length / 2 + 1;
  if (bins < 1 || length < 1 || rate < 1 || !(lower >= 0) || !(upper > lower) || !heldAs(type) ||
      bins > kMostOfTransform || rows > kMostOfTransform || bins * rows > kMostOfTransform)
    Node::fail("a matrix for " + std::to_string(bins) + " bins of " + std::to_string(length) + " elements");
  auto melOf = [](double hertz) { return 2595 * std::log1p(hertz / 700) / std::numbers::ln10; };
  double first = melOf(lower), step = (melOf(upper) - first) / double(bins + 2);
  std::vector<std::int64_t> corners;
  for (std::int64_t i = 0; i < bins + 2; ++i) {
    double hertz = 700 * std::expm1((double(i) * step + first) / 2595 * std::numbers::ln10);
    double corner = std::floor(double(length + 1) * hertz / double(rate));
    if (!(corner < double(rows)))
      Node::fail("upper_edge_hertz is above half of sample_rate");
    corners.push_back(std::int64_t(corner));
  }
  std::vector<double> elements(std::size_t(rows * bins));
  for (std::int64_t bin = 0; bin < bins; ++bin) {
    auto at = [&](std::int64_t row) -> double & { return elements[std::size_t(row * bins + bin)]; };
    std::int64_t left = corners[std::size_t(bin)], peak = corners[std::size_t(bin) + 1],
                 right = corners[std::size_t(bin) + 2];
    for (std::int64_t row = left; row < peak; ++row)
      at(row) = double(row - left) / double(peak - left);
    at(peak) = 1;
    for (std::int64_t row = peak; row < right; ++row)
      at(row) = double(right - row) / double(right - peak);
  }
  node.set(0, Known::ofReals(type, {rows, bins}, elements));
}

} // namespace sluice::onnx
