// cublasLt: supported products, rounding, epilogues, when an algorithm is valid, and captures.
#include "tools/gpu_check/contracts/BlasProduct.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <utility>

namespace sluice::gpu_check {

using namespace cuda;

static constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

static BlasShape shapeOf(BlasType type) {
  BlasShape shape;
  shape.type = type;
  shape.compute = type == BlasType::F64 ? BlasCompute::F64 : BlasCompute::F32;
  return shape;
}

static void libraryIsThere(Machine &) { expect(!blasLibrary().version.empty(), "cublasLt has no version"); }

//===- operands ---------------------------------------------------------------------------------------------------===//

static void transposesOperands(Machine &machine) {
  for (BlasType type : {BlasType::F32, BlasType::F64, BlasType::F16, BlasType::BF16})
    for (int which = 0; which < 4; ++which) {
      BlasShape shape = shapeOf(type);
      shape.transposed[0] = which % 2, shape.transposed[1] = which / 2;
      BlasProduct(machine, shape).expectExact();
    }
}

/// The sizes are prime, so that no alignment helps. The gaps between columns stay unchanged.
static void columnsMayLieApart(Machine &machine) {
  for (BlasType type : {BlasType::F32, BlasType::BF16})
    for (int which = 0; which < 4; ++which) {
      BlasShape shape = shapeOf(type);
      shape.m = 23, shape.n = 17, shape.k = 41, shape.padding = 3;
      shape.transposed[0] = which % 2, shape.transposed[1] = which / 2;
      BlasProduct(machine, shape).expectExact();
    }
}

static void batchesHaveStrides(Machine &machine) {
  for (bool sharesB : {false, true}) {
    BlasShape shape;
    shape.batch = 3, shape.betweenBatches = 64, shape.sharesB = sharesB;
    BlasProduct(machine, shape).expectExact();
  }
}

static void sizesMustFit(Machine &machine) {
  BlasProduct narrow(machine, {}), other(machine, {});
  uint64_t rows = 41; // of B; A has only 40 columns
  narrow.setRowsOfB(rows);
  expect(narrow.choose().empty(), "there is an algorithm for 40 columns and 41 rows");
  other.setRowsOfB(other.shape.k);
  expect(!other.choose().empty(), "there is no algorithm for 40 columns and 40 rows");
}

/// The smallest alignment, if the library has an algorithm for it, and the alignment of the backend's buffers.
static void keepsToPromisedAlignment(Machine &machine) {
  for (BlasType type : {BlasType::F32, BlasType::F64, BlasType::F16, BlasType::BF16})
    for (bool isSmallest : {true, false}) {
      BlasShape shape = shapeOf(type);
      shape.alignment = !isSmallest ? 64 : type == BlasType::F64 ? 8 : type == BlasType::F32 ? 4 : 2;
      shape.epilogue = type == BlasType::F64 ? BlasEpilogue::None : BlasEpilogue::Bias;
      BlasProduct product(machine, shape);
      if (!isSmallest || !product.choose().empty())
        product.expectExact();
    }
}

//===- sums -------------------------------------------------------------------------------------------------------===//

static void drawFractions(std::vector<double> &numbers) {
  uint32_t state = 7;
  for (double &number : numbers) {
    state = state * 1664525 + 1013904223;
    number = double(float(int32_t(state)) * 0x1p-31f);
  }
}

static BlasProduct productOfFractions(Machine &machine, BlasShape shape) {
  BlasProduct product(machine, shape);
  drawFractions(product.a), drawFractions(product.b);
  return product;
}

/// Each term is rounded to f32, and so is each sum, in any order.
static void sumsF32(Machine &machine) {
  BlasShape shape;
  shape.k = 64;
  productOfFractions(machine, shape).expectWithin(double(shape.k) * 0x1p-24);
}

/// Operands may lose all but 11 bits, with any rounding.
static void sumsTf32(Machine &machine) {
  BlasShape shape;
  shape.compute = BlasCompute::Tf32;
  BlasProduct(machine, shape).expectExact();
  shape.k = 64;
  productOfFractions(machine, shape).expectWithin(0x1p-9 + double(shape.k) * 0x1p-22);
}

/// Sums of one large term and many that it would absorb; with C and a bias that turn a midpoint into a representable
/// number.
static void sumsOfHalvesAreRoundedOnce(Machine &machine) {
  for (auto [type, large] : {std::pair(BlasType::BF16, 256.0), {BlasType::F16, 2048.0}}) {
    BlasShape shape = shapeOf(type);
    shape.epilogue = BlasEpilogue::Bias;
    for (double beta : {0.0, 1.0}) {
      BlasProduct product(machine, shape);
      std::fill(product.a.begin(), product.a.end(), 1);
      std::fill(product.b.begin(), product.b.end(), 1);
      std::fill(product.d.begin(), product.d.end(), 1);
      std::fill(product.bias.begin(), product.bias.end(), beta == 0 ? 1 : 2);
      for (uint64_t row = 0; row < shape.m; ++row) {
        product.a[product.indexIn(0, row, 0, 0)] = large; // plus 37 times 1
        product.a[product.indexIn(0, row, 38, 0)] = product.a[product.indexIn(0, row, 39, 0)] = 0;
      }
      product.expectExact(beta);
    }
  }
}

/// Long sums, with enough workspace for split-K algorithms.
static BlasShape shapeOfLongSums(const Machine &machine) {
  BlasShape shape;
  shape.k = machine.isEmulated() ? 128 : 4096;
  shape.workspace = 32 << 20;
  return shape;
}

/// Runs each algorithm twice and compares the bits.
static void expectItsBitsAgain(BlasProduct &product, std::vector<double> (BlasProduct::*download)()) {
  for (const BlasChoice &choice : product.choose()) {
    product.algorithm = choice.algorithm;
    std::vector<double> found[2];
    for (std::vector<double> &its : found) {
      product.upload();
      expect(product.launch(0, product.shape.workspace) == 0, "an algorithm that was offered is refused");
      its = (product.*download)();
    }
    product.expectSame(found[1], found[0]);
  }
}

static void repeatsItsBits(Machine &machine) {
  BlasProduct product = productOfFractions(machine, shapeOfLongSums(machine));
  expectItsBitsAgain(product, &BlasProduct::download);
}

/// An algorithm that was chosen for many columns of D and is used for few.
static void fewerColumnsHaveTheSameBits(Machine &machine) {
  BlasShape shape;
  shape.n = 64, shape.k = machine.isEmulated() ? 128 : 1024;
  shape.workspace = 32 << 20;
  BlasProduct product = productOfFractions(machine, shape);
  product.takeBest();
  product.upload();
  expect(product.launch(0, shape.workspace) == 0, "the best algorithm is refused");
  std::vector<double> all = product.download();
  bool isTaken = false;
  for (uint64_t columns : {63, 32, 17, 1}) {
    BlasChoice checked{};
    product.setColumns(columns);
    if (product.check(checked) != 0 || checked.workspaceBytes > shape.workspace)
      continue;
    isTaken = true;
    product.upload();
    expect(product.launch(0, shape.workspace) == 0, "an algorithm that passes the check is refused");
    std::vector<double> found = product.download(), wanted = product.d;
    std::copy_n(all.begin(), columns * shape.m, wanted.begin());
    product.expectSame(found, wanted);
  }
  if (!isTaken)
    throw NotTried("the check refuses the algorithm for fewer columns");
}

//===- epilogues --------------------------------------------------------------------------------------------------===//

static void resultIsNotReadWithoutBeta(Machine &machine) {
  for (BlasType type : {BlasType::F32, BlasType::F64, BlasType::F16, BlasType::BF16}) {
    BlasProduct product(machine, shapeOf(type));
    std::fill(product.d.begin(), product.d.end(), kNaN);
    product.expectExact(0);
  }
}

/// Before the epilogue: a ReLU applies to the whole sum.
static void resultIsAddedTo(Machine &machine) {
  for (BlasType type : {BlasType::F32, BlasType::F64, BlasType::BF16})
    for (auto epilogue : {BlasEpilogue::None, BlasEpilogue::Bias, BlasEpilogue::ReluBias}) {
      if (type == BlasType::F64 && epilogue != BlasEpilogue::None)
        continue; // unused by the backend
      BlasShape shape = shapeOf(type);
      shape.epilogue = epilogue;
      BlasProduct(machine, shape).expectExact(1);
    }
}

static void biasIsOfRows(Machine &machine) {
  for (BlasType type : {BlasType::F32, BlasType::F16, BlasType::BF16})
    for (auto epilogue : {BlasEpilogue::Bias, BlasEpilogue::ReluBias}) {
      BlasShape shape = shapeOf(type);
      shape.batch = 2, shape.epilogue = epilogue;
      BlasProduct(machine, shape).expectExact();
    }
}

static void reluKeepsNaN(Machine &machine) {
  for (BlasType type : {BlasType::F32, BlasType::F16, BlasType::BF16})
    for (auto epilogue : {BlasEpilogue::Relu, BlasEpilogue::ReluBias}) {
      BlasShape shape = shapeOf(type);
      shape.epilogue = epilogue;
      BlasProduct product(machine, shape);
      product.a[product.indexIn(0, 3, 5, 0)] = kNaN; // affects row 3
      product.expectExact();
    }
}

/// The result of a product whose epilogue is optional for the library; throws NotTried if unsupported.
static std::vector<double> resultIfThereIsAny(BlasProduct &product, double beta) {
  std::vector<BlasChoice> choices = product.choose();
  if (choices.empty())
    throw NotTried("the library has no algorithm with epilogue " + std::to_string(int(product.shape.epilogue)));
  product.algorithm = choices.front().algorithm;
  product.upload();
  expect(product.launch(beta, product.shape.workspace) == 0, "a product with a GELU is refused");
  return product.download();
}

static constexpr double kFactorOfGelu = 0.7978845608028654, kShareOfGelu = 1e-5, kRoundingOfGelu = 0x1p-22;

/// 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))), except for the cancellation in 1 + tanh.
static void geluIsByTanh(Machine &machine) {
  for (auto [epilogue, hasBias] : {std::pair(BlasEpilogue::Gelu, false), {BlasEpilogue::GeluBias, true}}) {
    BlasShape shape;
    shape.epilogue = epilogue;
    BlasProduct product(machine, shape);
    for (double &number : product.a)
      number /= 16;
    std::vector<double> found = resultIfThereIsAny(product, 0);
    for (uint64_t column = 0; column < shape.n; ++column)
      for (uint64_t row = 0; row < shape.m; ++row) {
        double x = product.sumOf(row, column) + (hasBias ? product.bias[row] : 0);
        double wanted = 0.5 * x * (1 + std::tanh(kFactorOfGelu * (x + 0.044715 * x * x * x)));
        double its = found[product.indexIn(2, row, column, 0)];
        expect(std::fabs(its - wanted) <= kShareOfGelu * std::fabs(wanted) + kRoundingOfGelu * std::fabs(x),
               "GELU of " + std::to_string(x) + " is " + std::to_string(its) + ", not " + std::to_string(wanted));
      }
  }
}

static double derivativeOfGelu(double x) {
  double t = std::tanh(kFactorOfGelu * (x + 0.044715 * x * x * x));
  return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * kFactorOfGelu * (1 + 3 * 0.044715 * x * x);
}

/// The sum, with C, times the derivative of that GELU at the matrix that the epilogue reads, separate for each matrix
/// of a batch.
template <BlasCompute compute> static void geluGradientIsByTanh(Machine &machine) {
  for (double beta : {0.0, 1.0}) {
    BlasShape shape;
    shape.compute = compute, shape.epilogue = BlasEpilogue::GeluGradient;
    shape.padding = 8, shape.batch = 2;
    BlasProduct product(machine, shape);
    for (double &number : product.input)
      number /= 2;
    std::vector<double> found = resultIfThereIsAny(product, beta);
    for (int32_t number = 0; number < shape.batch; ++number)
      for (uint64_t column = 0; column < shape.n; ++column)
        for (uint64_t row = 0; row < shape.m; ++row) {
          size_t index = product.indexIn(2, row, column, number);
          double sum = product.sumOf(row, column, number) + beta * product.d[index], x = product.input[index];
          double wanted = sum * derivativeOfGelu(x), its = found[index];
          expect(std::fabs(its - wanted) <= kShareOfGelu * std::fabs(wanted) + kRoundingOfGelu * std::fabs(sum),
                 std::to_string(sum) + " times the derivative of GELU at " + std::to_string(x) + " is " +
                     std::to_string(its) + ", not " + std::to_string(wanted));
        }
  }
}

/// Calls `check` for the supported sums of either operand, in every memory order; throws NotTried if there are none.
static void forEachOfSums(Machine &machine, BlasShape shape, const std::function<void(BlasProduct &)> &check) {
  bool isTried = false;
  for (auto epilogue : {BlasEpilogue::SumsOfA, BlasEpilogue::SumsOfB})
    for (int which = 0; which < 4; ++which) {
      shape.epilogue = epilogue;
      shape.transposed[0] = which % 2, shape.transposed[1] = which / 2;
      BlasProduct product(machine, shape);
      if (product.choose().empty())
        continue;
      isTried = true;
      check(product);
    }
  if (!isTried)
    throw NotTried("the library leaves no sums of operands of type " + std::to_string(int(shape.type)));
}

static void expectExactSums(BlasProduct &product) {
  product.expectExact();
  product.expectSame(product.downloadSums(), product.expectedSums());
}

template <BlasCompute compute> static void operandsAreSummed(Machine &machine) {
  BlasShape shape;
  shape.compute = compute, shape.padding = 8;
  forEachOfSums(machine, shape, expectExactSums);
}

/// Sums of one large term and many that it would absorb.
static void operandsOfHalvesAreSummed(Machine &machine) {
  for (auto [type, large] : {std::pair(BlasType::BF16, 256.0), {BlasType::F16, 2048.0}})
    forEachOfSums(machine, shapeOf(type), [large = large](BlasProduct &product) {
      bool isOfB = product.shape.epilogue == BlasEpilogue::SumsOfB;
      std::vector<double> &summed = isOfB ? product.b : product.a, &other = isOfB ? product.a : product.b;
      std::fill(summed.begin(), summed.end(), 1), std::fill(other.begin(), other.end(), 1);
      for (uint64_t i = 0; i < (isOfB ? product.shape.n : product.shape.m); ++i)
        summed[isOfB ? product.indexIn(1, 0, i, 0) : product.indexIn(0, i, 0, 0)] = large;
      expectExactSums(product);
    });
}

static void sumsOfOperandsRepeat(Machine &machine) {
  forEachOfSums(machine, shapeOfLongSums(machine), [](BlasProduct &product) {
    drawFractions(product.a), drawFractions(product.b);
    expectItsBitsAgain(product, &BlasProduct::downloadSums);
  });
}

//===- algorithms -------------------------------------------------------------------------------------------------===//

static BlasShape longSum(Machine &machine, uint64_t workspace) {
  BlasShape shape;
  shape.m = shape.n = machine.isEmulated() ? 16 : 64;
  shape.k = machine.isEmulated() ? 512 : 8192;
  shape.workspace = workspace;
  return shape;
}

static void workspacesAreBounded(Machine &machine) {
  for (uint64_t most : {0, 4 << 10, 1 << 20, 32 << 20}) {
    std::vector<BlasChoice> choices = BlasProduct(machine, longSum(machine, most)).choose();
    expect(!choices.empty(), "there is no algorithm with a workspace of " + std::to_string(most) + " bytes");
    for (const BlasChoice &choice : choices)
      expect(choice.workspaceBytes <= most, "an algorithm wants " + std::to_string(choice.workspaceBytes) +
                                                " bytes of workspace where it may have " + std::to_string(most));
  }
}

/// Rejected, or not needed.
static void workspacesThatAreTooSmall(Machine &machine) {
  BlasProduct product(machine, longSum(machine, 32 << 20));
  bool wantsSome = false;
  for (const BlasChoice &choice : product.choose()) {
    wantsSome |= choice.workspaceBytes > 0;
    product.algorithm = choice.algorithm;
    product.upload();
    if (choice.workspaceBytes > 0 && product.launch(0, 0) == 0)
      product.expectSame(product.download(), product.expected(0));
  }
  if (!wantsSome)
    throw NotTried("no algorithm wants a workspace");
}

static void choicesPassTheCheck(Machine &machine) {
  BlasProduct product(machine, longSum(machine, 32 << 20));
  for (const BlasChoice &choice : product.choose()) {
    BlasChoice checked{};
    product.algorithm = choice.algorithm;
    int status = product.check(checked);
    expect(status == 0, "the check of an algorithm that was offered gives " + std::to_string(status));
    expect(checked.workspaceBytes <= product.shape.workspace, "an algorithm wants more workspace when it is checked");
  }
}

//===- streams and captures ---------------------------------------------------------------------------------------===//

/// Of one number, after all earlier work of the stream.
static void copyNumberLate(BlasProduct &product, DeviceAddress to, float number) {
  Machine &machine = product.machine;
  DeviceAddress from = machine.place(product.stream, std::vector<float>{number});
  int turns = machine.turns(), zero = 0;
  machine.launch(product.stream, "copy_late", 1, 1, {&to, &from, &turns, &zero});
}

static void productsKeepTheOrder(Machine &machine) {
  BlasProduct product(machine, {});
  std::vector<double> wanted = product.expected(0);
  double first = std::exchange(product.b[0], 1000);
  product.takeBest();
  product.upload();
  copyNumberLate(product, product.placeOfB, float(first));
  expect(product.launch(0, 0) == 0, "a product behind a kernel is refused");
  product.expectSame(product.download(), wanted);
}

static void descriptionsAreReadAtOnce(Machine &machine) {
  BlasShape shape;
  shape.epilogue = BlasEpilogue::Bias;
  BlasProduct product(machine, shape);
  product.takeBest();
  product.upload();
  copyNumberLate(product, product.placeOfBias, float(product.bias[0]));
  expect(product.launch(0, 0) == 0, "a product behind a kernel is refused");
  product.setBias(product.placeOfA);
  product.setColumns(1);
  product.expectSame(product.download(), product.expected(0));
}

/// As in the backend, the product has run once before; everything else is repeated in the capture.
static void mayBeCaptured(Machine &machine) {
  BlasShape shape = longSum(machine, 32 << 20);
  BlasProduct product(machine, shape);
  product.expectExact();
  product.upload();
  DriverGraph graph = nullptr;
  DriverExecutable executable = nullptr;
  machine.check(machine.driver.captureBegin(product.stream, kCaptureOfThread), "cuStreamBeginCapture");
  product.takeBest();
  BlasChoice checked{};
  expect(product.check(checked) == 0, "the check of an algorithm is refused in a capture");
  expect(product.launch(0, shape.workspace) == 0, "a product is refused in a capture");
  machine.check(machine.driver.captureEnd(product.stream, &graph), "cuStreamEndCapture");
  machine.check(machine.driver.graphInstantiate(&executable, graph, 0), "cuGraphInstantiateWithFlags");
  product.expectSame(product.download(), product.d);
  for (int turn = 0; turn < 2; ++turn) {
    product.upload();
    machine.check(machine.driver.graphLaunch(executable, product.stream), "cuGraphLaunch");
    product.expectSame(product.download(), product.expected(0));
  }
}

std::vector<Contract> blasContracts() {
  return {{"blas.library", libraryIsThere},
          {"blas.transposes", transposesOperands},
          {"blas.leading_dimensions", columnsMayLieApart},
          {"blas.batches", batchesHaveStrides},
          {"blas.sizes_must_fit", sizesMustFit},
          {"blas.alignment", keepsToPromisedAlignment},
          {"blas.sums_f32", sumsF32},
          {"blas.sums_tf32", sumsTf32},
          {"blas.sums_of_halves", sumsOfHalvesAreRoundedOnce},
          {"blas.repeats_its_bits", repeatsItsBits},
          {"blas.fewer_columns", fewerColumnsHaveTheSameBits},
          {"blas.beta_0", resultIsNotReadWithoutBeta},
          {"blas.beta_1", resultIsAddedTo},
          {"blas.bias", biasIsOfRows},
          {"blas.relu_keeps_nan", reluKeepsNaN},
          {"blas.gelu", geluIsByTanh},
          {"blas.gelu_gradient", geluGradientIsByTanh<BlasCompute::F32>},
          {"blas.gelu_gradient_tf32", geluGradientIsByTanh<BlasCompute::Tf32>},
          {"blas.operand_sums", operandsAreSummed<BlasCompute::F32>},
          {"blas.operand_sums_tf32", operandsAreSummed<BlasCompute::Tf32>},
          {"blas.operand_sums_of_halves", operandsOfHalvesAreSummed},
          {"blas.operand_sums_repeat", sumsOfOperandsRepeat},
          {"blas.workspace_bound", workspacesAreBounded},
          {"blas.workspace_too_small", workspacesThatAreTooSmall},
          {"blas.check", choicesPassTheCheck},
          {"blas.order", productsKeepTheOrder},
          {"blas.descriptions_are_read_at_once", descriptionsAreReadAtOnce},
          {"blas.captured", mayBeCaptured}};
}

} // namespace sluice::gpu_check
