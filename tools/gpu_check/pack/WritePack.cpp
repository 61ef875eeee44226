#include "tools/gpu_check/pack/WritePack.h"

#include "ir/Layout.h"
#include "ir/Types.h"
#include "ir/reference/HostTensor.h"
#include "ir/text/DiagnosticText.h"
#include "tools/compiler/Deviation.h"
#include "tools/compiler/Diagnostics.h"
#include "tools/compiler/Files.h"
#include "tools/compiler/Magnitudes.h"
#include <cmath>

using namespace mlir;
using sluice::ir::HostTensor;

namespace sluice::gpu_check {

static RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }

static bool isFloat(Value value) { return isa<FloatType>(typeOf(value).getElementType()); }

//===- kernels ----------------------------------------------------------------------------------------------------===//

static bool hasRows(ir::KernelOp kernel) {
  auto isDynamic = [](Type type) { return !cast<RankedTensorType>(type).hasStaticShape(); };
  return llvm::any_of(kernel->getOperandTypes(), isDynamic) || llvm::any_of(kernel->getResultTypes(), isDynamic);
}

/// All rows, an odd number of them, one and none.
static std::vector<int64_t> rowsToTry(ir::KernelOp kernel, int64_t capacity) {
  if (!hasRows(kernel))
    return {capacity};
  std::vector<int64_t> rows = {capacity};
  for (int64_t fewer : {capacity / 2 | 1, int64_t(1), int64_t(0)})
    if (fewer < rows.back())
      rows.push_back(fewer);
  return rows;
}

static PackedBuffer describe(Value value, int64_t capacity) {
  RankedTensorType type = typeOf(value);
  PackedBuffer buffer;
  buffer.dtype = DType(*ir::dtypeOf(type.getElementType()));
  for (int64_t size : type.getShape())
    buffer.shape.push_back(ShapedType::isDynamic(size) ? -1 : size);
  FailureOr<SmallVector<ir::PhysicalDim>> dims = ir::getPhysicalDims(type);
  for (const ir::PhysicalDim &dim : *dims)
    buffer.layout.push_back({int(dim.logical), runtime::PhysicalDim::Part(int(dim.kind)), dim.tile});
  buffer.bytes = ir::getBufferBytes(type, capacity);
  return buffer;
}

//===- values -----------------------------------------------------------------------------------------------------===//

/// Classes, keys and booleans are 0 or 1; pixels are bytes.
static Range rangeOf(Value operand, const Range &reals) {
  Type element = typeOf(operand).getElementType();
  if (isa<FloatType>(element))
    return reals;
  return {0, element.isUnsignedInteger(8) ? 256.0 : 2.0};
}

static std::vector<HostTensor> drawOperands(const PackedKernel &packed, size_t number, int64_t rows) {
  std::vector<HostTensor> tensors;
  for (auto [operand, buffer] : llvm::enumerate(packed.operands)) {
    HostTensor &tensor = tensors.emplace_back(shapeOf(buffer, rows));
    DrawnElements drawn(number, operand, buffer);
    for (auto [index, value] : llvm::enumerate(tensor.data))
      value = drawn[int64_t(index)];
  }
  return tensors;
}

/// The results of a kernel's ops in double precision.
static std::vector<HostTensor> evaluate(Block &body, ArrayRef<HostTensor> operands, int64_t rows) {
  DenseMap<Value, HostTensor> known;
  for (auto [argument, value] : llvm::zip_equal(body.getArguments(), operands))
    known[argument] = value;
  for (Operation &op : body.without_terminator()) {
    SmallVector<HostTensor> values;
    for (Value operand : op.getOperands())
      values.push_back(known[operand]);
    SmallVector<HostTensor> results = cast<ir::ReferenceOp>(op).evaluate(values, rows);
    for (auto [result, value] : llvm::zip_equal(op.getResults(), results)) {
      Type element = typeOf(result).getElementType();
      for (double &number : value.data) // integers wrap
        number = isFloat(result) ? number : ir::roundTo(element, number);
      known[result] = std::move(value);
    }
  }
  std::vector<HostTensor> results;
  for (Value result : body.getTerminator()->getOperands())
    results.push_back(known[result]);
  return results;
}

static bool areFinite(ArrayRef<HostTensor> tensors) {
  return llvm::all_of(tensors, [](const HostTensor &tensor) {
    return llvm::all_of(tensor.data, [](double value) { return std::isfinite(value); });
  });
}

/// The given ranges, else reals of either sign. If the kernel's results would be NaN, for example with roots, positive
/// reals.
static void chooseRanges(const KernelToPack &given, PackedKernel &packed, size_t number, int64_t rows) {
  ir::KernelOp kernel = given.op;
  for (auto [buffer, range] : llvm::zip(packed.operands, given.ranges))
    buffer.range = range;
  if (!given.ranges.empty())
    return;
  for (const Range &reals : {Range{-1, 1}, Range{0.5, 1.5}}) {
    for (auto [operand, buffer] : llvm::zip_equal(kernel.getBody().getArguments(), packed.operands))
      buffer.range = rangeOf(operand, reals);
    if (areFinite(evaluate(kernel.getBody().front(), drawOperands(packed, number, rows), rows)))
      return;
  }
}

namespace {

/// For f64 and integers, whose types have no tolerance.
constexpr double kTolerancesOfDoubles = 1e-9;

/// The binary file under construction.
struct Figures {
  std::string bytes;

  void add(double value) { bytes.append(reinterpret_cast<const char *>(&value), sizeof value); }

  /// Rounded up to four bits, because further bits would take space in a compressed pack.
  static double roundUp(double allowed) {
    int exponent = 0;
    double share = std::frexp(allowed, &exponent);
    return std::ldexp(std::ceil(share * 16) / 16, exponent);
  }

  /// A sample of a result. Integers must be exact; the rounding of figures to f32 is negligible compared with an f32
  /// tolerance.
  Expected addResult(const HostTensor &result, const HostTensor &magnitude, double tolerance) {
    double largest = 1e-30;
    for (double value : result.data)
      largest = std::isfinite(value) ? std::max(largest, std::abs(value)) : largest;
    Expected expected{int64_t(bytes.size()), sampleSize(result.size())};
    for (int64_t i = 0; i < expected.count; ++i) {
      auto element = size_t(sampledElement(result.size(), i));
      double value = result.data[element];
      add(tolerance > kTolerancesOfDoubles ? double(float(value)) : value);
      add(roundUp(tolerance * std::max(largest, magnitude.data[element])));
    }
    return expected;
  }
};

} // namespace

/// Relative to the magnitudes of the results: the tolerance of the narrowest float type of the kernel.
static double toleranceOf(Block &body, double productTolerance) {
  double allowed = 0;
  for (Operation &op : body.without_terminator()) {
    if (isa<ir::ContractionOp, ir::BlockwiseOp>(op))
      allowed = std::max(allowed, productTolerance);
    for (Value value : op.getResults())
      allowed = isFloat(value) ? std::max(allowed, compiler::toleranceOf(typeOf(value).getElementType())) : allowed;
  }
  return allowed;
}

static PackedCall packCall(ir::KernelOp kernel, const PackedKernel &packed, size_t number, int64_t rows,
                           double tolerance, Figures &figures) {
  std::vector<HostTensor> operands = drawOperands(packed, number, rows);
  Block &body = kernel.getBody().front();
  std::vector<HostTensor> results = evaluate(body, operands, rows);
  SmallVector<HostTensor> magnitudes = compiler::magnitudesOf(body, operands, rows);
  PackedCall call{rows, {}};
  for (auto [value, result, magnitude] : llvm::zip_equal(kernel.getResults(), results, magnitudes))
    call.results.push_back(figures.addResult(result, magnitude, isFloat(value) ? tolerance : 0));
  return call;
}

//===- packs ------------------------------------------------------------------------------------------------------===//

static llvm::Expected<PackedKernel> prepare(const KernelToPack &kernel, passes::Backend &backend, int64_t capacity) {
  ir::DiagnosticText diagnostics(ir::KernelOp(kernel.op).getContext());
  FailureOr<sluice_launch_info> info = backend.prepare(kernel.op);
  if (failed(info))
    return compiler::makeError(compiler::ExitCode::Unsupported, diagnostics.errors());
  PackedKernel packed;
  packed.name = kernel.name;
  packed.place = ir::printLocation(ir::KernelOp(kernel.op).getLoc());
  packed.function = info->function ? info->function : "";
  auto parameters = static_cast<const std::byte *>(info->parameters);
  packed.parameters.assign(parameters, parameters + info->parameters_bytes);
  packed.workspaceBytes = info->workspace_bytes;
  for (Value operand : ir::KernelOp(kernel.op).getBody().getArguments())
    packed.operands.push_back(describe(operand, capacity));
  for (Value result : ir::KernelOp(kernel.op).getResults())
    packed.results.push_back(describe(result, capacity));
  return packed;
}

llvm::Error packKernels(Pack pack, ArrayRef<KernelToPack> kernels, passes::Backend &backend, const std::string &folder,
                        double productTolerance) {
  for (const KernelToPack &kernel : kernels) {
    auto packed = prepare(kernel, backend, pack.capacity);
    if (!packed)
      return packed.takeError();
    pack.kernels.push_back(std::move(*packed));
  }
  ir::KernelOp any = kernels.front().op;
  ir::DiagnosticText diagnostics(any.getContext());
  FailureOr<sluice_blob> blob = backend.lower(any.getLoc());
  if (failed(blob))
    return compiler::makeError(compiler::ExitCode::Internal, diagnostics.errors());
  pack.imageBytes = int64_t(blob->bytes);
  Figures figures{std::string(static_cast<const char *>(blob->data), blob->bytes)};
  for (auto [number, kernel] : llvm::enumerate(kernels)) {
    PackedKernel &packed = pack.kernels[number];
    chooseRanges(kernel, packed, number, pack.capacity);
    double tolerance = toleranceOf(ir::KernelOp(kernel.op).getBody().front(), productTolerance);
    for (int64_t rows : rowsToTry(kernel.op, pack.capacity))
      packed.calls.push_back(packCall(kernel.op, packed, number, rows, tolerance, figures));
  }
  std::string path = folder + "/" + pack.model;
  return compiler::writeAll({{path + ".json", writePack(pack)}, {path + ".bin", figures.bytes}});
}

} // namespace sluice::gpu_check
