#include "tools/gpu_check/contracts/BlasProduct.h"

#include "backends/cuda/runtime/Error.h"
#include "sluice/backend/halves.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace sluice::gpu_check {

using namespace cuda;

const BlasLt &blasLibrary() {
  try {
    if (const BlasLt *found = BlasLt::find())
      return *found;
  } catch (const cuda::Error &error) {
    throw NotTried(error.what());
  }
  throw NotTried("there is no cublasLt here; SLUICE_CUBLASLT may name it");
}

static void succeed(int status, const char *what) {
  expect(status == 0, std::string(what) + " gives the status " + std::to_string(status));
}

static BlasHandle blasHandle() {
  static BlasHandle handle = nullptr;
  if (!handle)
    succeed(blasLibrary().create(&handle), "cublasLtCreate");
  return handle;
}

//===- numbers ----------------------------------------------------------------------------------------------------===//

template <typename T> static void append(std::string &bytes, T value) {
  bytes.append(reinterpret_cast<const char *>(&value), sizeof value);
}

static std::string encode(BlasType type, const std::vector<double> &numbers) {
  std::string bytes;
  for (double number : numbers)
    switch (type) {
    case BlasType::F64:
      append(bytes, number);
      break;
    case BlasType::F32:
      append(bytes, float(number));
      break;
    case BlasType::F16:
      append(bytes, sluice_f16_of_float(float(number)));
      break;
    case BlasType::BF16:
      append(bytes, sluice_bf16_of_float(float(number)));
    }
  return bytes;
}

template <typename T> static T valueAt(const std::string &bytes, size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

static double decode(BlasType type, const std::string &bytes, size_t index) {
  size_t offset = index * bytesOf(type);
  return type == BlasType::F64   ? valueAt<double>(bytes, offset)
         : type == BlasType::F32 ? valueAt<float>(bytes, offset)
         : type == BlasType::F16 ? sluice_float_of_f16(valueAt<uint16_t>(bytes, offset))
                                 : sluice_float_of_bf16(valueAt<uint16_t>(bytes, offset));
}

static std::vector<double> wholeNumbers(size_t count, uint32_t seed) {
  std::vector<double> numbers(count);
  uint32_t state = seed;
  for (double &number : numbers) {
    state = state * 1664525 + 1013904223;
    number = int(state >> 16) % 9 - 4;
  }
  return numbers;
}

//===- the product ------------------------------------------------------------------------------------------------===//

BlasProduct::BlasProduct(Machine &machine, const BlasShape &shape)
    : machine(machine), shape(shape), stream(machine.stream()) {
  describe();
  a = wholeNumbers(extentOf(0), 1), b = wholeNumbers(extentOf(1), 2),
  bias = wholeNumbers(std::max(shape.m, shape.n), 3);
  d = std::vector<double>(extentOf(2), -77); // an invalid sum for all elements
  input = wholeNumbers(extentOf(2), 4);
  placeOfA = reserve(a.size()), placeOfB = reserve(b.size()), placeOfD = reserve(d.size());
  placeOfBias = reserve(bias.size()), placeOfInput = reserve(input.size());
  workspace = machine.allocate(std::max<uint64_t>(shape.workspace, 256));
  uintptr_t aligned = shape.alignment;
  setBias(aligned), setInput(aligned); // unused: heuristics read their alignment
}

BlasProduct::Matrix BlasProduct::matrixOf(int operand) const {
  uint64_t height = operand == 1 ? shape.k : shape.m, width = operand == 0 ? shape.k : shape.n;
  bool isTransposed = operand < 2 && shape.transposed[operand];
  Matrix matrix = isTransposed ? Matrix{width, height, 0} : Matrix{height, width, 0};
  if (operand != 1 || !shape.sharesB)
    matrix.stride = int64_t(matrix.leading(shape.padding) * matrix.columns) + shape.betweenBatches;
  return matrix;
}

size_t BlasProduct::extentOf(int operand) const {
  Matrix matrix = matrixOf(operand);
  return matrix.leading(shape.padding) * matrix.columns + size_t(shape.batch - 1) * size_t(matrix.stride);
}

/// The index of an element of the operand, which may be transposed in memory.
size_t BlasProduct::indexIn(int operand, uint64_t row, uint64_t column, int32_t number) const {
  Matrix matrix = matrixOf(operand);
  if (operand < 2 && shape.transposed[operand])
    std::swap(row, column);
  return row + column * matrix.leading(shape.padding) + size_t(number) * size_t(matrix.stride);
}

BlasLayout BlasProduct::layoutOf(int operand) const {
  const BlasLt &blas = blasLibrary();
  Matrix matrix = matrixOf(operand);
  BlasLayout layout = nullptr;
  succeed(blas.createLayout(&layout, shape.type, matrix.rows, matrix.columns, int64_t(matrix.leading(shape.padding))),
          "cublasLtMatrixLayoutCreate");
  succeed(blas.setLayout(layout, LayoutAttribute::BatchCount, &shape.batch, sizeof shape.batch), "the batch's size");
  succeed(blas.setLayout(layout, LayoutAttribute::BatchStride, &matrix.stride, sizeof matrix.stride),
          "the batch's stride");
  return layout;
}

void BlasProduct::describe() {
  const BlasLt &blas = blasLibrary();
  BlasType scale = shape.type == BlasType::F64 ? BlasType::F64 : BlasType::F32;
  succeed(blas.createDescription(&description, shape.compute, scale), "cublasLtMatmulDescCreate");
  for (int operand = 0; operand < 2; ++operand) {
    BlasOp op = shape.transposed[operand] ? BlasOp::Transposed : BlasOp::Plain;
    auto attribute = operand == 0 ? DescriptionAttribute::TransposeA : DescriptionAttribute::TransposeB;
    set(attribute, &op, sizeof op, "a transposed operand");
  }
  set(DescriptionAttribute::Epilogue, &shape.epilogue, sizeof shape.epilogue, "the epilogue");
  for (int operand = 0; operand < 3; ++operand)
    layouts[operand] = layoutOf(operand);
  if (!hasInput())
    return;
  Matrix result = matrixOf(2);
  auto leading = int64_t(result.leading(shape.padding));
  set(DescriptionAttribute::InputLeading, &leading, sizeof leading, "the epilogue's leading dimension");
  set(DescriptionAttribute::InputBatchStride, &result.stride, sizeof result.stride, "the epilogue's batch stride");
}

void BlasProduct::set(DescriptionAttribute attribute, const void *value, size_t bytes, const char *what) {
  succeed(blasLibrary().setDescription(description, attribute, value, bytes), what);
}

/// At a multiple of the alignment, but of no larger power of two.
DeviceAddress BlasProduct::reserve(size_t elements) {
  return machine.allocate(elements * bytesOf(shape.type) + 256) + shape.alignment % 256;
}

void BlasProduct::setBias(DeviceAddress address) {
  auto pointer = reinterpret_cast<const void *>(address);
  if (hasSums() || (uint32_t(shape.epilogue) & uint32_t(BlasEpilogue::Bias)))
    set(DescriptionAttribute::BiasPointer, static_cast<const void *>(&pointer), sizeof pointer, "the bias");
}

void BlasProduct::setInput(DeviceAddress address) {
  auto pointer = reinterpret_cast<const void *>(address);
  if (hasInput())
    set(DescriptionAttribute::InputPointer, static_cast<const void *>(&pointer), sizeof pointer,
        "the epilogue's input");
}

void BlasProduct::setColumns(uint64_t n) {
  bool isTransposed = shape.transposed[1];
  succeed(blasLibrary().setLayout(layouts[1], isTransposed ? LayoutAttribute::Rows : LayoutAttribute::Columns, &n,
                                  sizeof n),
          "the columns of B");
  succeed(blasLibrary().setLayout(layouts[2], LayoutAttribute::Columns, &n, sizeof n), "the columns of D");
}

void BlasProduct::setRowsOfB(uint64_t rows) {
  succeed(blasLibrary().setLayout(layouts[1], LayoutAttribute::Rows, &rows, sizeof rows), "the rows of B");
}

std::vector<BlasChoice> BlasProduct::choose(int *status) {
  constexpr int kMost = 8;
  const BlasLt &blas = blasLibrary();
  BlasPreference preference = nullptr;
  succeed(blas.createPreference(&preference), "cublasLtMatmulPreferenceCreate");
  auto prefer = [&](PreferenceAttribute attribute, const void *value, size_t bytes) {
    succeed(blas.setPreference(preference, attribute, value, bytes), "cublasLtMatmulPreferenceSetAttribute");
  };
  uint32_t schemes = kReductionInWorkspace;
  prefer(PreferenceAttribute::WorkspaceBytes, &shape.workspace, sizeof shape.workspace);
  prefer(PreferenceAttribute::ReductionSchemes, &schemes, sizeof schemes);
  for (auto attribute : {PreferenceAttribute::AlignmentA, PreferenceAttribute::AlignmentB,
                         PreferenceAttribute::AlignmentC, PreferenceAttribute::AlignmentD})
    prefer(attribute, &shape.alignment, sizeof shape.alignment);
  std::vector<BlasChoice> choices(kMost);
  int found = 0;
  int answer = blas.choose(blasHandle(), description, layouts[0], layouts[1], layouts[2], layouts[2], preference, kMost,
                           choices.data(), &found);
  blas.destroyPreference(preference);
  if (status)
    *status = answer;
  choices.resize(answer == 0 ? size_t(found) : 0);
  std::erase_if(choices, [](const BlasChoice &choice) { return choice.status != 0; });
  return choices;
}

void BlasProduct::takeBest() {
  int status = 0;
  std::vector<BlasChoice> choices = choose(&status);
  expect(!choices.empty(), "no algorithm is found: the heuristic's status is " + std::to_string(status));
  algorithm = choices.front().algorithm;
}

int BlasProduct::check(BlasChoice &result) {
  return blasLibrary().checkAlgorithm(blasHandle(), description, layouts[0], layouts[1], layouts[2], layouts[2],
                                      &algorithm, &result);
}

int BlasProduct::launch(double beta, uint64_t workspaceBytes) {
  double wide[] = {1, beta};
  float narrow[] = {1, float(beta)};
  auto scale = [&](int i) { return shape.type == BlasType::F64 ? static_cast<void *>(&wide[i]) : &narrow[i]; };
  auto pointer = [](DeviceAddress address) { return reinterpret_cast<void *>(address); };
  setBias(placeOfBias), setInput(placeOfInput);
  return blasLibrary().multiply(blasHandle(), description, scale(0), pointer(placeOfA), layouts[0], pointer(placeOfB),
                                layouts[1], scale(1), pointer(placeOfD), layouts[2], pointer(placeOfD), layouts[2],
                                &algorithm, workspaceBytes ? pointer(workspace) : nullptr, workspaceBytes, stream);
}

//===- results ----------------------------------------------------------------------------------------------------===//

void BlasProduct::upload() {
  for (auto [place, numbers] :
       {std::pair(placeOfA, &a), {placeOfB, &b}, {placeOfD, &d}, {placeOfBias, &bias}, {placeOfInput, &input}}) {
    std::string bytes = encode(shape.type, *numbers);
    machine.upload(stream, place, bytes.data(), bytes.size());
    machine.finish(stream);
  }
}

std::vector<double> BlasProduct::download(DeviceAddress place, size_t count) {
  std::string bytes(count * bytesOf(shape.type), 0);
  machine.download(stream, bytes.data(), place, bytes.size());
  machine.finish(stream);
  std::vector<double> numbers(count);
  for (size_t i = 0; i < numbers.size(); ++i)
    numbers[i] = decode(shape.type, bytes, i);
  return numbers;
}

std::pair<double, double> BlasProduct::sumsOf(uint64_t row, uint64_t column, int32_t number) const {
  double sum = 0, magnitudes = 0;
  for (uint64_t i = 0; i < shape.k; ++i) {
    double term = a[indexIn(0, row, i, number)] * b[indexIn(1, i, column, number)];
    sum += term, magnitudes += std::fabs(term);
  }
  return {sum, magnitudes};
}

std::vector<double> BlasProduct::rounded(const std::vector<double> &numbers) const {
  std::string bytes = encode(shape.type, numbers);
  std::vector<double> found(numbers.size());
  for (size_t i = 0; i < found.size(); ++i)
    found[i] = decode(shape.type, bytes, i);
  return found;
}

std::vector<double> BlasProduct::expectedSums() const {
  bool isOfB = shape.epilogue == BlasEpilogue::SumsOfB;
  std::vector<double> sums(isOfB ? shape.n : shape.m);
  for (uint64_t i = 0; i < sums.size(); ++i)
    for (uint64_t k = 0; k < shape.k; ++k)
      sums[i] += isOfB ? b[indexIn(1, k, i, 0)] : a[indexIn(0, i, k, 0)];
  return rounded(sums);
}

/// Preserves NaN.
static double reluOf(double x) { return x < 0 ? 0 : x; }

std::vector<double> BlasProduct::expected(double beta) const {
  auto has = [&](BlasEpilogue epilogue) { return (uint32_t(shape.epilogue) & uint32_t(epilogue)) != 0; };
  std::vector<double> wanted = d;
  for (int32_t number = 0; number < shape.batch; ++number)
    for (uint64_t column = 0; column < shape.n; ++column)
      for (uint64_t row = 0; row < shape.m; ++row) {
        double &element = wanted[indexIn(2, row, column, number)];
        double sum = sumsOf(row, column, number).first + (beta == 0 ? 0 : beta * element) +
                     (has(BlasEpilogue::Bias) ? bias[row] : 0);
        element = has(BlasEpilogue::Relu) ? reluOf(sum) : sum;
      }
  return rounded(wanted);
}

void BlasProduct::expectSame(const std::vector<double> &found, const std::vector<double> &wanted) const {
  for (size_t i = 0; i < wanted.size(); ++i)
    expect(found[i] == wanted[i] || (std::isnan(found[i]) && std::isnan(wanted[i])),
           "of type " + std::to_string(int(shape.type)) + " with epilogue " + std::to_string(int(shape.epilogue)) +
               ", element " + std::to_string(i) + " is " + std::to_string(found[i]) + ", not " +
               std::to_string(wanted[i]));
}

void BlasProduct::expectExact(double beta) {
  takeBest();
  upload();
  succeed(launch(beta, shape.workspace), "cublasLtMatmul");
  expectSame(download(), expected(beta));
}

void BlasProduct::expectWithin(double share) {
  takeBest();
  upload();
  succeed(launch(0, shape.workspace), "cublasLtMatmul");
  std::vector<double> found = download();
  for (uint64_t column = 0; column < shape.n; ++column)
    for (uint64_t row = 0; row < shape.m; ++row) {
      auto [sum, magnitudes] = sumsOf(row, column, 0);
      double error = std::fabs(found[indexIn(2, row, column, 0)] - sum);
      expect(error <= share * magnitudes, "an element is off by " + std::to_string(error / magnitudes) +
                                              " of the sum of its terms' magnitudes, and " + std::to_string(share) +
                                              " is allowed");
    }
}

} // namespace sluice::gpu_check
