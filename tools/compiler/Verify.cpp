// Every entry point runs twice on the same inputs and states: compiled, with a memory plan in which no value is
// overwritten, and in the reference interpreter. After each kernel that the interpreter leaves, what it computed is
// compared with what lies in the kernel's buffers.
#include "tools/compiler/Verify.h"

#include "ir/DiagnosticText.h"
#include "ir/Interpreter.h"
#include "ir/Layout.h"
#include "ir/ParseGuard.h"
#include "tools/compiler/Diagnostics.h"
#include "tools/compiler/LoadedModel.h"
#include <cmath>
#include <cstring>
#include <random>

using namespace mlir;
using sluice::ir::HostTensor;

namespace sluice::compiler {

/// What single and double precision may differ from exact results, relative to a tensor's largest value: a few hundred
/// roundings that add up over the depth of a network. Integers follow from comparisons of floats, of which a few tie.
static double toleranceOf(Type element) {
  if (element.isF64())
    return 1e-10;
  return element.isF32() ? 2e-4 : 1e-2;
}

static double readElement(Type element, const std::byte *data, int64_t index) {
  using runtime::DType;
  DType dtype = element.isF64()         ? DType::f64
                : element.isF32()       ? DType::f32
                : element.isInteger(64) ? DType::i64
                : element.isInteger(32) ? DType::i32
                : element.isInteger(1)  ? DType::boolean
                                        : DType::u8;
  return runtime::elementAsDouble(dtype, data, index);
}

static HostTensor toReference(runtime::DType dtype, const runtime::Shape &shape, llvm::ArrayRef<std::byte> bytes) {
  HostTensor tensor(shape);
  for (int64_t i = 0; i < tensor.size(); ++i)
    tensor.data[i] = runtime::elementAsDouble(dtype, bytes.data(), i);
  return tensor;
}

template <typename T> static void appendAs(std::vector<std::byte> &bytes, double value) {
  T typed = static_cast<T>(value);
  const auto *raw = reinterpret_cast<const std::byte *>(&typed);
  bytes.insert(bytes.end(), raw, raw + sizeof typed);
}

static void append(std::vector<std::byte> &bytes, runtime::DType dtype, double value) {
  switch (dtype) {
  case runtime::DType::f32:
    return appendAs<float>(bytes, value);
  case runtime::DType::f64:
    return appendAs<double>(bytes, value);
  case runtime::DType::i32:
    return appendAs<int32_t>(bytes, value);
  case runtime::DType::i64:
    return appendAs<int64_t>(bytes, value);
  case runtime::DType::u8:
  case runtime::DType::boolean:
    return appendAs<uint8_t>(bytes, value);
  }
}

/// The place in memory of an element of a type with a layout.
class PhysicalIndex {
public:
  PhysicalIndex(RankedTensorType type, int64_t capacity)
      : dims(*ir::getPhysicalDims(type)), sizes(ir::getPhysicalShape(type, capacity)) {}

  int64_t operator()(llvm::ArrayRef<int64_t> index) const {
    int64_t offset = 0;
    for (auto [dim, size] : llvm::zip_equal(dims, sizes)) {
      int64_t at = index[dim.logical];
      if (dim.kind == ir::PhysicalDim::Div)
        at /= dim.tile;
      else if (dim.kind == ir::PhysicalDim::Mod)
        at %= dim.tile;
      offset = offset * size + at;
    }
    return offset;
  }

private:
  llvm::SmallVector<ir::PhysicalDim> dims;
  llvm::SmallVector<int64_t> sizes;
};

namespace {
class Comparison {
public:
  Comparison(ModuleOp module, runtime::Instance &instance, const VerifyOptions &options)
      : module(module), instance(instance), plan(instance.plan()),
        rows(plan.capacity > 0 ? std::min(options.rows, plan.capacity) : 1), random(options.seed), seed(options.seed) {}

  llvm::Expected<Verification> run();

private:
  llvm::Error compareEntry(ir::EntryOp entry);
  HostTensor makeInput(const runtime::Value &input);
  void compareKernel(ir::KernelOp kernel, const runtime::Entry &entry, const runtime::Launch &launch,
                     llvm::ArrayRef<HostTensor> expected);
  void compareResult(ir::KernelOp kernel, const runtime::Entry &entry, const runtime::Buffer &buffer, unsigned number,
                     const HostTensor &expected);

  ModuleOp module;
  runtime::Instance &instance;
  const runtime::Plan &plan;
  int64_t rows;
  std::mt19937_64 random;
  uint64_t seed;
  Verification result;
};
} // namespace

/// Random values that every model takes: classes are 0 or 1, keys come from the seed.
HostTensor Comparison::makeInput(const runtime::Value &input) {
  HostTensor tensor(input.shapeFor(rows, plan.capacity));
  if (input.name == "key") {
    tensor.data[0] = static_cast<double>(static_cast<int32_t>(seed >> 32));
    tensor.data[1] = static_cast<double>(static_cast<int32_t>(seed));
    return tensor;
  }
  for (double &value : tensor.data) {
    double unit = static_cast<double>(random() >> 40) * 0x1p-24; // exact in f32
    value = runtime::isFloat(input.dtype) ? unit : std::floor(unit * (input.dtype == runtime::DType::u8 ? 256 : 2));
  }
  return tensor;
}

void Comparison::compareResult(ir::KernelOp kernel, const runtime::Entry &entry, const runtime::Buffer &buffer,
                               unsigned number, const HostTensor &expected) {
  auto type = cast<RankedTensorType>(kernel.getResult(number).getType());
  PhysicalIndex place(type, plan.capacity);
  std::vector<std::byte> data(size_t(buffer.bytes));
  instance.readBuffer(entry, buffer, data);
  bool isFloat = isa<FloatType>(type.getElementType());
  double largest = 0, worst = 0, unequal = 0;
  for (double element : expected.data)
    largest = std::max(largest, std::abs(element));
  Difference difference;
  ir::forEachIndex(expected.shape, [&](llvm::ArrayRef<int64_t> index) {
    double want = isFloat ? expected.at(index) : ir::roundTo(type.getElementType(), expected.at(index));
    double have = readElement(type.getElementType(), data.data(), place(index));
    double error = std::isnan(want) != std::isnan(have) ? INFINITY : want == have ? 0 : std::abs(want - have);
    unequal += error > 0;
    if (!(error > worst))
      return;
    worst = error;
    difference.index.assign(index.begin(), index.end());
    difference.actual = have;
    difference.expected = want;
  });
  double error = isFloat ? worst / std::max(largest, 1e-30) : unequal / std::max<double>(1, double(expected.size()));
  double tolerance = toleranceOf(type.getElementType());
  if (isFloat)
    result.largestError = std::max(result.largestError, error);
  if (error <= tolerance || result.first)
    return;
  difference.entry = entry.name;
  difference.kernel = kernel.getName().str();
  difference.place = ir::printPlace(kernel.getLoc());
  for (Operation &op : kernel.getBody().front().without_terminator())
    difference.ops.push_back(op.getName().getStringRef().str());
  difference.result = number;
  difference.error = error;
  difference.tolerance = tolerance;
  result.first = std::move(difference);
}

void Comparison::compareKernel(ir::KernelOp kernel, const runtime::Entry &entry, const runtime::Launch &launch,
                               llvm::ArrayRef<HostTensor> expected) {
  ++result.kernels;
  for (auto [number, tensor] : llvm::enumerate(expected))
    compareResult(kernel, entry, launch.buffers[kernel.getOperands().size() + number], unsigned(number), tensor);
}

llvm::Error Comparison::compareEntry(ir::EntryOp entry) {
  const runtime::Entry &planned = instance.entry(entry.getSymName());
  ir::StateMap states;
  for (const runtime::State &state : plan.states) {
    std::vector<std::byte> bytes(size_t(state.logicalBytes()));
    instance.getState(state, bytes);
    states[state.name] = toReference(state.dtype, state.shape, bytes);
  }
  std::vector<HostTensor> inputs;
  for (const runtime::Value &input : planned.inputs) {
    const HostTensor &tensor = inputs.emplace_back(makeInput(input));
    std::vector<std::byte> bytes;
    for (double value : tensor.data)
      append(bytes, input.dtype, value);
    instance.setInput(input, bytes, rows);
  }
  instance.run(planned, rows);

  std::vector<const runtime::Launch *> launches = planned.launches();
  size_t launched = 0;
  ir::InterpreterOptions options;
  options.observer = [&](Operation *op, llvm::ArrayRef<HostTensor> results) {
    if (auto kernel = dyn_cast<ir::KernelOp>(op))
      compareKernel(kernel, planned, *launches[launched++], results);
  };
  ir::DiagnosticText diagnostics(module.getContext());
  if (failed(ir::interpret(entry, inputs, states, rows, options)))
    return makeError(ExitCode::Internal, "the reference interpreter failed: " + diagnostics.errors());
  result.entries.push_back(planned.name);
  return llvm::Error::success();
}

llvm::Expected<Verification> Comparison::run() {
  std::vector<ir::EntryOp> entries; // `init` first: the others start from what it leaves
  for (ir::EntryOp entry : module.getOps<ir::EntryOp>())
    entries.insert(entry.getSymName() == "init" ? entries.begin() : entries.end(), entry);
  for (ir::EntryOp entry : entries) {
    if (llvm::Error error = guardRuntime([&] { return compareEntry(entry); }))
      return error;
    if (result.first)
      break;
  }
  return std::move(result);
}

llvm::Expected<Verification> compareWithReference(ModuleOp module, runtime::Instance &instance,
                                                  const VerifyOptions &options) {
  return Comparison(module, instance, options).run();
}

llvm::Expected<Verification> verifyFile(llvm::StringRef path, const VerifyOptions &options) {
  MLIRContext context;
  auto module = ir::parseModuleFile(path, context);
  if (!module)
    return withCode(ExitCode::Invalid, module.takeError());
  CompileOptions compile = options.compile;
  compile.reuseMemory = false;
  auto compiled = compileModule(**module, compile);
  if (!compiled)
    return compiled.takeError();
  runtime::InstanceOptions instance;
  instance.devices.discards = false; // every kernel's results are looked at when a call is over
  auto loaded = LoadedModel::load(compiled->objects, std::move(instance));
  if (!loaded)
    return loaded.takeError();
  return compareWithReference(**module, (*loaded)->instance(), options);
}

} // namespace sluice::compiler
