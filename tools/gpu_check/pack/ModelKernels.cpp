#include "tools/gpu_check/pack/ModelKernels.h"

#include "ir/Layout.h"
#include "ir/Module.h"
#include "ir/Types.h"
#include "ir/reference/HostTensor.h"
#include "ir/text/DiagnosticText.h"
#include "ir/text/ParseGuard.h"
#include "mlir/IR/OperationSupport.h"
#include "passes/backend/DeviceBackends.h"
#include "tools/compiler/Backends.h"
#include "tools/compiler/Compiler.h"
#include "tools/compiler/Diagnostics.h"
#include "tools/compiler/Files.h"
#include "tools/compiler/Magnitudes.h"
#include "tools/compiler/Verify.h"
#include "tools/gpu_check/Pack.h"
#include <cmath>

using namespace mlir;
using sluice::ir::HostTensor;

namespace sluice::gpu_check {

static RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }

static bool isFloat(Value value) { return isa<FloatType>(typeOf(value).getElementType()); }

//===- kernels ----------------------------------------------------------------------------------------------------===//

/// Those of one device, each of several equal ones once.
static std::vector<ir::KernelOp> distinctKernels(ModuleOp module, StringRef device) {
  std::vector<ir::KernelOp> kernels;
  module.walk([&](ir::KernelOp kernel) {
    if (ir::getDevice(kernel->getResult(0).getType()) != device)
      return;
    bool isKnown = llvm::any_of(kernels, [&](ir::KernelOp known) {
      return OperationEquivalence::isRegionEquivalentTo(&known.getBody(), &kernel.getBody(),
                                                        OperationEquivalence::IgnoreLocations);
    });
    if (!isKnown)
      kernels.push_back(kernel);
  });
  return kernels;
}

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

/// Classes, keys and booleans are 0 or 1, pixels bytes.
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
    for (auto [index, value] : llvm::enumerate(tensor.data))
      value = drawElement(number, operand, int64_t(index), buffer.dtype, buffer.range);
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
    for (auto [result, value] : llvm::zip_equal(op.getResults(), results))
      known[result] = std::move(value);
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

/// Reals of either sign, unless the kernel makes no numbers of them, such as roots: then positive ones.
static void chooseRanges(ir::KernelOp kernel, PackedKernel &packed, size_t number, int64_t rows) {
  for (const Range &reals : {Range{-1, 1}, Range{0.5, 1.5}}) {
    for (auto [operand, buffer] : llvm::zip_equal(kernel.getBody().getArguments(), packed.operands))
      buffer.range = rangeOf(operand, reals);
    if (areFinite(evaluate(kernel.getBody().front(), drawOperands(packed, number, rows), rows)))
      return;
  }
}

namespace {

/// The binary file, as it grows.
struct Figures {
  std::string bytes;

  void add(double value) { bytes.append(reinterpret_cast<const char *>(&value), sizeof value); }

  /// A sample of a result. Of integers nothing may be off.
  Expected addResult(const HostTensor &result, const HostTensor &magnitude, double tolerance) {
    double largest = 1e-30;
    for (double value : result.data)
      largest = std::isfinite(value) ? std::max(largest, std::abs(value)) : largest;
    Expected expected{int64_t(bytes.size()), sampleSize(result.size())};
    for (int64_t i = 0; i < expected.count; ++i) {
      auto element = size_t(sampledElement(result.size(), i));
      add(result.data[element]);
      add(tolerance * std::max(largest, magnitude.data[element]));
    }
    return expected;
  }
};

} // namespace

static PackedCall packCall(ir::KernelOp kernel, const PackedKernel &packed, size_t number, int64_t rows,
                           Figures &figures) {
  std::vector<HostTensor> operands = drawOperands(packed, number, rows);
  Block &body = kernel.getBody().front();
  std::vector<HostTensor> results = evaluate(body, operands, rows);
  SmallVector<HostTensor> magnitudes = compiler::magnitudesOf(body, operands, rows);
  PackedCall call{rows, {}};
  for (auto [value, result, magnitude] : llvm::zip_equal(kernel.getResults(), results, magnitudes)) {
    double tolerance = isFloat(value) ? compiler::toleranceOf(typeOf(value).getElementType()) : 0;
    call.results.push_back(figures.addResult(result, magnitude, tolerance));
  }
  return call;
}

//===- packs ------------------------------------------------------------------------------------------------------===//

namespace {

/// A model as far as phase `fused`, and the session that makes the kernels of its device.
class FusedModel {
public:
  static llvm::Expected<FusedModel> compile(ModuleOp module, const PackOptions &options) {
    compiler::CompileOptions compile;
    compile.devices = options.device;
    compile.compileTo = "fused";
    compile.settings = options.settings;
    auto compiled = compiler::compileModule(module, compile);
    if (!compiled)
      return compiled.takeError();
    auto backend = compiler::findBackend(StringRef(options.device).split(':').first);
    if (!backend)
      return backend.takeError();
    ir::DiagnosticText diagnostics(module.getContext());
    FusedModel model;
    model.module = module;
    model.capacity = int64_t(ir::getModel(module).getCapacity());
    model.backends =
        passes::DeviceBackends::create(module, {&compiler::hostBackend(), *backend}, "native", options.settings);
    if (!model.backends)
      return compiler::makeError(compiler::ExitCode::Unsupported, diagnostics.errors());
    return model;
  }

  /// Its kernels and their figures; the image comes first in the binary file.
  llvm::Expected<Pack> pack(StringRef name, std::string &binary);

private:
  llvm::Expected<PackedKernel> prepare(ir::KernelOp kernel);

  ModuleOp module;
  int64_t capacity = 0;
  std::unique_ptr<passes::DeviceBackends> backends;
};

} // namespace

llvm::Expected<PackedKernel> FusedModel::prepare(ir::KernelOp kernel) {
  ir::DiagnosticText diagnostics(kernel.getContext());
  FailureOr<sluice_launch_info> info = backends->of(kernel).prepare(kernel);
  if (failed(info))
    return compiler::makeError(compiler::ExitCode::Unsupported, diagnostics.errors());
  PackedKernel packed;
  packed.name = kernel.getName().str();
  packed.place = ir::printLocation(kernel.getLoc());
  packed.function = info->function ? info->function : "";
  auto parameters = static_cast<const std::byte *>(info->parameters);
  packed.parameters.assign(parameters, parameters + info->parameters_bytes);
  packed.workspaceBytes = info->workspace_bytes;
  for (Value operand : kernel.getBody().getArguments())
    packed.operands.push_back(describe(operand, capacity));
  for (Value result : kernel.getResults())
    packed.results.push_back(describe(result, capacity));
  return packed;
}

llvm::Expected<Pack> FusedModel::pack(StringRef name, std::string &binary) {
  Pack pack;
  pack.model = name.str();
  pack.capacity = capacity;
  std::vector<ir::KernelOp> kernels = distinctKernels(module, ir::acceleratorName(0));
  for (ir::KernelOp kernel : kernels) {
    auto packed = prepare(kernel);
    if (!packed)
      return packed.takeError();
    pack.kernels.push_back(std::move(*packed));
  }
  ir::DiagnosticText diagnostics(module.getContext());
  FailureOr<sluice_blob> blob = backends->of(kernels.front()).lower(kernels.front().getLoc());
  if (failed(blob))
    return compiler::makeError(compiler::ExitCode::Internal, diagnostics.errors());
  pack.imageBytes = int64_t(blob->bytes);
  Figures figures{std::string(static_cast<const char *>(blob->data), blob->bytes)};
  for (auto [number, kernel] : llvm::enumerate(kernels)) {
    PackedKernel &packed = pack.kernels[number];
    chooseRanges(kernel, packed, number, capacity);
    for (int64_t rows : rowsToTry(kernel, capacity))
      packed.calls.push_back(packCall(kernel, packed, number, rows, figures));
  }
  binary = std::move(figures.bytes);
  return pack;
}

llvm::Expected<size_t> packModel(const std::string &graph, const std::string &folder, const PackOptions &options) {
  MLIRContext context(MLIRContext::Threading::DISABLED);
  auto module = ir::parseModuleFile(graph, context);
  if (!module)
    return compiler::withCode(compiler::ExitCode::Invalid, module.takeError());
  auto model = FusedModel::compile(**module, options);
  if (!model)
    return model.takeError();
  std::string binary;
  auto pack = model->pack(options.name, binary);
  if (!pack)
    return pack.takeError();
  std::string path = folder + "/" + options.name;
  if (llvm::Error error = compiler::writeAll({{path + ".json", writePack(*pack)}, {path + ".bin", binary}}))
    return std::move(error);
  return pack->kernels.size();
}

} // namespace sluice::gpu_check
