// The CPU backend's compile half: kernels become stage functions in one module per session, and the module an object
// file.
#include "backends/cpu/compiler/Plugin.h"
#include "backends/cpu/compiler/KernelLowering.h"
#include "backends/cpu/compiler/Layouts.h"
#include "backends/cpu/compiler/attention/AttentionKernel.h"
#include "backends/cpu/compiler/llvm/Codegen.h"
#include "backends/cpu/compiler/machine/Target.h"
#include "backends/loops/FusionRules.h"
#include "backends/loops/SessionError.h"
#include "ir/Layout.h"
#include "mlir/IR/IRMapping.h"
#include "runtime/files/OutputFile.h"
#include "sluice/backend/adapter.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include <deque>

using namespace mlir;
using namespace sluice;

namespace {

/// Kernels whose code is generated on demand: placement prepares many that never run.
class PostponedKernels {
public:
  void add(ir::KernelOp kernel, const cpu::LoweredKernel &lowered, StringRef name) {
    if (!module)
      module = ModuleOp::create(UnknownLoc::get(kernel.getContext()));
    OpBuilder builder = OpBuilder::atBlockEnd(module->getBody());
    ValueRange operands =
        builder.create<UnrealizedConversionCastOp>(kernel.getLoc(), kernel->getOperandTypes(), ValueRange())
            .getResults();
    IRMapping mapping;
    mapping.map(kernel.getOperands(), operands);
    Postponed &one = kernels.emplace_back();
    one.kernel = cast<ir::KernelOp>(builder.clone(*kernel, mapping));
    one.name = name;
    for (const cpu::Stage &stage : lowered.stages)
      one.stages.push_back(stage.function);
  }

  /// Generates the bodies of all stage functions added so far.
  LogicalResult lower(ModuleOp into, const cpu::Target &target, int64_t capacity) {
    for (Postponed &one : kernels) {
      for (const std::string &stage : one.stages)
        into.lookupSymbol(stage)->erase();
      if (failed(cpu::lowerKernel(one.kernel, into, one.name, target, capacity)))
        return failure();
    }
    kernels.clear();
    return success();
  }

private:
  struct Postponed {
    ir::KernelOp kernel;
    std::string name;
    std::vector<std::string> stages;
  };

  OwningOpRef<ModuleOp> module; // of the kernels, whose operands nothing computes
  std::vector<Postponed> kernels;
};

} // namespace

static_assert(int(ir::PhysicalDim::Whole) == SLUICE_LAYOUT_WHOLE &&
              int(ir::PhysicalDim::Div) == SLUICE_LAYOUT_TILE_NUMBER &&
              int(ir::PhysicalDim::Mod) == SLUICE_LAYOUT_PLACE_IN_TILE);

static Operation *operationOf(const sluice_kernel_view &view) { return static_cast<Operation *>(view.operation); }

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
  bool canFuse(const sluice_kernel_view &kernel) const { return loops::lastOpJoins(kernel); }
  void cost(const sluice_kernel_view &kernel, sluice_cost_estimate &estimate);

private:
  const char *keep(std::string text) { return texts.emplace_back(std::move(text)).c_str(); }
  void keepObject() const;

  cpu::Target target;
  int64_t capacity = 0;
  std::string temporaries;      // folder for the object; empty: none
  OwningOpRef<ModuleOp> module; // of all stages so far
  PostponedKernels postponed;
  std::string instructions;      // of the target, separated by commas
  std::deque<std::string> texts; // owns the memory of earlier answers
  std::deque<std::vector<sluice_stage_info>> stages;
  std::deque<std::vector<sluice_layout_dim>> layouts;
  SmallVector<char, 0> object;
};

} // namespace

CpuSession::CpuSession(const sluice_target_options &options) : capacity(options.capacity) {
  if (options.struct_size >= sizeof(options) && options.temporaries)
    temporaries = options.temporaries;
  if (*options.settings)
    throw backend::Error(SLUICE_USAGE, std::string("there is no setting '") + options.settings + "'");
  target = loops::valueOf(cpu::Target::of(options.cpu));
  instructions = llvm::join(target.instructions, ",");
}

void CpuSession::describe(sluice_target_info &info) const {
  info.device_type = "cpu";
  info.cpu = target.cpu.c_str();
  info.vector_bits = uint32_t(target.vectorBits);
  info.instructions = instructions.c_str();
}

static std::string reasonAgainst(Operation *op) {
  if (!ir::isCompute(op))
    return ("the CPU has no code for " + op->getName().getStringRef()).str();
  if (cpu::hasLargeGroups(op))
    return "the CPU has products for large groups, each by itself";
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

void CpuSession::prepare(const sluice_kernel_view &view, sluice_launch_info &launch) {
  auto kernel = cast<ir::KernelOp>(operationOf(view));
  if (!module)
    module = ModuleOp::create(UnknownLoc::get(kernel.getContext()));
  loops::diagnosed(kernel.getContext(), [&]() -> LogicalResult {
    std::string name = cpu::uniqueName(*module, kernel.getName());
    FailureOr<cpu::LoweredKernel> lowered =
        cpu::lowerKernel(kernel, {*module, /*hasBodies=*/false}, name, target, capacity);
    if (failed(lowered))
      return failure();
    if (!lowered->hasBodies)
      postponed.add(kernel, *lowered, name);
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

/// Throws the reason if the kernel is not supported.
void CpuSession::keepObject() const {
  if (temporaries.empty())
    return;
  std::string path = temporaries + "/kernels.o";
  if (std::error_code failed = llvm::sys::fs::create_directories(temporaries))
    throw backend::Error(SLUICE_USAGE, temporaries + ": " + failed.message());
  if (files::Failure failure = files::writeFile(path, {object.data(), object.size()}); !failure.empty())
    throw backend::Error(SLUICE_USAGE, path + ": " + failure.c_str());
}

void CpuSession::lower(sluice_blob &blob) {
  if (!module)
    return;
  loops::diagnosed(module->getContext(), [&] { return postponed.lower(*module, target, capacity); });
  llvm::Expected<SmallVector<char, 0>> compiled = cpu::compileToObject(*module, target);
  if (!compiled)
    throw backend::Error(SLUICE_INTERNAL, llvm::toString(compiled.takeError()));
  object = std::move(*compiled);
  keepObject();
  blob.kind = SLUICE_BLOB_HOST_OBJECT;
  blob.data = object.data();
  blob.bytes = object.size();
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
