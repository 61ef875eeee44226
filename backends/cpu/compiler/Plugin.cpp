// The CPU backend's compile half: a kernel becomes a module of stage functions. The modules of a session become one
// object file, or one for each.
#include "backends/cpu/compiler/Plugin.h"
#include "backends/cpu/compiler/KernelTexts.h"
#include "backends/cpu/compiler/Layouts.h"
#include "backends/cpu/compiler/SessionKernels.h"
#include "backends/cpu/compiler/attention/AttentionKernel.h"
#include "backends/cpu/compiler/llvm/Codegen.h"
#include "backends/cpu/compiler/machine/Target.h"
#include "backends/cpu/compiler/product/ImageFormula.h"
#include "backends/cpu/compiler/product/MatrixProduct.h"
#include "backends/loops/FusionRules.h"
#include "backends/loops/SessionError.h"
#include "ir/Layout.h"
#include "sluice/backend/adapter.h"
#include "llvm/ADT/StringExtras.h"
#include <deque>

using namespace mlir;
using namespace sluice;

static_assert(int(ir::PhysicalDim::Whole) == SLUICE_LAYOUT_WHOLE &&
              int(ir::PhysicalDim::Div) == SLUICE_LAYOUT_TILE_NUMBER &&
              int(ir::PhysicalDim::Mod) == SLUICE_LAYOUT_PLACE_IN_TILE);

static Operation *operationOf(const sluice_kernel_view &view) { return static_cast<Operation *>(view.operation); }
static Operation *operationAt(const sluice_kernel_view &view, size_t number) {
  return static_cast<Operation *>(sluice_kernel_op_at(&view, number)->operation);
}

namespace {

/// A class for adapter/compile.h.
class CpuSession {
public:
  static constexpr const char *name = "cpu", *nativeAbi = LLVM_VERSION_STRING;

  explicit CpuSession(const sluice_target_options &options);
  void describe(sluice_target_info &info) const;
  void supports(const sluice_kernel_view &op) const;
  void proposeLayout(const sluice_kernel_view &op, bool isResult, unsigned number, sluice_layout_proposal &proposal);
  void prepare(const sluice_kernel_view &view, sluice_launch_info &launch);
  void lower(sluice_blob &blob);
  void lowerKernels(std::span<const char *const> symbols, sluice_blob *const *blobs);
  bool canFuse(const sluice_kernel_view &kernel) const {
    return loops::lastOpJoins(kernel, /*throughMoves=*/false, formulaOfImage(kernel)) ||
           isProductOfWidenedWeight(kernel);
  }
  void cost(const sluice_kernel_view &kernel, sluice_cost_estimate &estimate);

private:
  SmallVector<ModuleOp> generate(ArrayRef<size_t> numbers);
  std::vector<cpu::Object> compileEach(ArrayRef<size_t> numbers);
  bool isProductOfWidenedWeight(const sluice_kernel_view &kernel) const;
  llvm::BitVector formulaOfImage(const sluice_kernel_view &kernel) const;
  const char *keep(std::string text) { return names.emplace_back(std::move(text)).c_str(); }

  cpu::Target target;
  int64_t capacity = 0;
  cpu::SessionKernels kernels;
  cpu::KernelTexts texts;
  std::string instructions, tuning; // of the target
  // Results of earlier calls, which live until the session ends.
  std::deque<std::string> names;
  std::deque<std::vector<sluice_stage_info>> stages;
  std::deque<std::vector<sluice_layout_dim>> layouts;
  std::deque<cpu::Object> objects;
};

} // namespace

CpuSession::CpuSession(const sluice_target_options &options) : capacity(options.capacity) {
  if (SLUICE_HAS_MEMBER(sluice_target_options, &options, temporaries) && options.temporaries)
    texts = cpu::KernelTexts(options.temporaries);
  if (*options.settings)
    throw backend::Error(SLUICE_USAGE, std::string("there is no setting '") + options.settings + "'");
  target = loops::valueOf(cpu::Target::of(options.cpu));
  target.fastMath = SLUICE_HAS_MEMBER(sluice_target_options, &options, math) && options.math == SLUICE_MATH_FAST;
  instructions = llvm::join(target.instructions, ",");
  tuning = ("l1=" + llvm::Twine(target.l1) + ",l2=" + llvm::Twine(target.l2)).str(); // the rest follows from the name
}

void CpuSession::describe(sluice_target_info &info) const {
  info.device_type = "cpu";
  info.cpu = target.cpu.c_str();
  info.vector_bits = uint32_t(target.vectorBits);
  info.instructions = instructions.c_str();
  info.tuning = tuning.c_str();
}

static std::string reasonAgainst(Operation *op) {
  if (!ir::isCompute(op))
    return ("the CPU has no code for " + op->getName().getStringRef()).str();
  if (cpu::hasLargeGroups(op))
    return "the CPU computes each of its large groups as a separate product";
  return cpu::reasonAgainstAttention(op);
}

void CpuSession::supports(const sluice_kernel_view &op) const {
  if (std::string reason = reasonAgainst(operationOf(op)); !reason.empty())
    throw backend::Error(SLUICE_UNSUPPORTED, reason);
}

void CpuSession::proposeLayout(const sluice_kernel_view &view, bool isResult, unsigned number,
                               sluice_layout_proposal &proposal) {
  Operation *op = operationOf(view);
  cpu::LayoutPreference preference = cpu::preferredLayout(op, isResult, number, target, capacity);
  proposal.cares = bool(preference.layout);
  proposal.required = preference.required;
  if (!preference.layout)
    return;
  Value value = isResult ? Value(op->getResult(number)) : op->getOperand(number);
  std::vector<sluice_layout_dim> &dims = layouts.emplace_back();
  auto laidOut = ir::withLayout(cast<RankedTensorType>(value.getType()), preference.layout);
  SmallVector<ir::PhysicalDim> physical = *ir::getPhysicalDims(laidOut);
  for (const ir::PhysicalDim &dim : physical)
    dims.push_back({dim.logical, sluice_layout_part(dim.kind), dim.tile});
  proposal.layout = dims.data();
  proposal.num_layout = dims.size();
}

/// Whether the kernel is a product and the op that widens its weight. The generator of the product then reads the
/// weight as it is stored.
bool CpuSession::isProductOfWidenedWeight(const sluice_kernel_view &kernel) const {
  if (kernel.num_ops != 2)
    return false;
  Value weight = cpu::widenedWeightOf(operationAt(kernel, 1), target, capacity);
  return weight && weight.getDefiningOp() == operationAt(kernel, 0);
}

/// The ops by which a weight gradient of the kernel computes its image as it reads it.
llvm::BitVector CpuSession::formulaOfImage(const sluice_kernel_view &kernel) const {
  llvm::BitVector numbers(unsigned(kernel.num_ops));
  for (size_t op = 0; op < kernel.num_ops; ++op) {
    if (!isa<ir::Conv2dWeightGradOp>(operationAt(kernel, op)))
      continue;
    DenseMap<Operation *, unsigned> inside;
    for (size_t other = 0; other < op; ++other)
      inside[operationAt(kernel, other)] = unsigned(other);
    auto isInside = [&](Operation *one) { return inside.contains(one); };
    if (auto formula = cpu::ImageFormula::of(operationAt(kernel, op), isInside, target, capacity))
      for (Operation *one : formula->ops)
        numbers.set(inside[one]);
  }
  return numbers;
}

void CpuSession::prepare(const sluice_kernel_view &view, sluice_launch_info &launch) {
  auto kernel = cast<ir::KernelOp>(operationOf(view));
  loops::diagnosed(kernel.getContext(), [&]() -> LogicalResult {
    FailureOr<cpu::LoweredKernel> lowered = kernels.add(kernel, view.symbol ? view.symbol : "", target, capacity);
    if (failed(lowered))
      return failure();
    texts.add(view.name, *lowered);
    std::vector<sluice_stage_info> &its = stages.emplace_back();
    for (const cpu::Stage &stage : lowered->stages)
      its.push_back({keep(stage.function), stage.tasks, stage.rowsPerTask});
    launch.stages = its.data();
    launch.num_stages = its.size();
    launch.stage_size = sizeof(sluice_stage_info);
    launch.workspace_bytes = lowered->workspaceBytes;
    const ir::Work &work = lowered->work;
    launch.cost = {work.flops, work.flopsPerRow, work.bytes, work.bytesPerRow, lowered->lanes};
    return success();
  });
}

static void setObject(const cpu::Object &object, sluice_blob &blob) {
  if (object.empty())
    return;
  blob.kind = SLUICE_BLOB_HOST_OBJECT;
  blob.data = object.data();
  blob.bytes = object.size();
}

/// The value, or the error as an exception.
template <typename T> static T compiled(llvm::Expected<T> value) {
  if (!value)
    throw backend::Error(SLUICE_INTERNAL, llvm::toString(value.takeError()));
  return std::move(*value);
}

/// The modules of kernels, whose texts are written if they are wanted.
SmallVector<ModuleOp> CpuSession::generate(ArrayRef<size_t> numbers) {
  SmallVector<ModuleOp> modules;
  loops::diagnosed(kernels.context(), [&] {
    for (size_t number : numbers) {
      FailureOr<ModuleOp> module = kernels.generate(number, target, capacity);
      if (failed(module))
        return failure();
      modules.push_back(*module);
    }
    return success();
  });
  if (llvm::Error error = texts.write(numbers, modules, target))
    throw backend::Error(SLUICE_USAGE, llvm::toString(std::move(error)));
  return modules;
}

void CpuSession::lower(sluice_blob &blob) {
  if (kernels.empty())
    return;
  SmallVector<ModuleOp> modules = generate(kernels.all());
  setObject(objects.emplace_back(compiled(cpu::compileToObject(modules, target))), blob);
}

/// An object for each kernel. Kernels are generated while earlier ones are compiled.
std::vector<cpu::Object> CpuSession::compileEach(ArrayRef<size_t> numbers) {
  std::optional<llvm::Expected<std::vector<cpu::Object>>> made;
  loops::diagnosed(kernels.context(), [&] {
    bool areGenerated = true;
    auto moduleOf = [&](size_t place) {
      FailureOr<ModuleOp> module = kernels.generate(numbers[place], target, capacity);
      areGenerated &= succeeded(module);
      return succeeded(module) ? *module : ModuleOp();
    };
    made.emplace(cpu::compileToObjects(*kernels.context(), numbers.size(), moduleOf, target));
    if (!areGenerated)
      llvm::consumeError(made->takeError()); // the diagnostics have the reason
    return success(areGenerated);
  });
  return compiled(std::move(*made));
}

void CpuSession::lowerKernels(std::span<const char *const> symbols, sluice_blob *const *blobs) {
  SmallVector<size_t> numbers;
  for (const char *symbol : symbols) {
    std::optional<size_t> number = kernels.find(symbol);
    if (!number)
      throw backend::Error(SLUICE_INVALID, std::string("there is no prepared kernel '") + symbol + "'");
    numbers.push_back(*number);
  }
  if (numbers.empty())
    return;
  if (texts.areWritten())
    generate(numbers);
  for (auto [number, object] : llvm::enumerate(compileEach(numbers)))
    setObject(objects.emplace_back(std::move(object)), *blobs[number]);
}

/// Whether a convolution has so few channels on one side that they fill only a small part of the vectors.
static bool isNarrow(const sluice_kernel_view &kernel, const sluice_op_view &op) {
  constexpr int64_t kFewChannels = 8;
  return llvm::any_of(llvm::ArrayRef(op.operands, op.num_operands), [&](size_t operand) {
    const sluice_type_view &type = *sluice_kernel_value_at(&kernel, operand);
    return type.rank == 4 && type.shape[1] < kFewChannels;
  });
}

/// Narrow convolutions use a separate generator, which reaches another share of the peak.
void CpuSession::cost(const sluice_kernel_view &kernel, sluice_cost_estimate &estimate) {
  for (size_t number = 0; number < kernel.num_ops; ++number) {
    const sluice_op_view &op = *sluice_kernel_op_at(&kernel, number);
    if (llvm::StringRef(op.name).starts_with("sluice.conv2d") && isNarrow(kernel, op))
      estimate.kind = keep(std::string(estimate.kind) + "_narrow");
  }
}

extern "C" const sluice_backend_compile *sluice_cpu_backend_compile(void) { return &backend::compileTable<CpuSession>; }
