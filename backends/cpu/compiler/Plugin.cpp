// The CPU backend's compile half: kernels become stage functions in one module per session, and the module an object
// file.
#include "backends/cpu/compiler/Plugin.h"
#include "backends/cpu/compiler/KernelLowering.h"
#include "backends/cpu/compiler/Layouts.h"
#include "backends/cpu/compiler/attention/AttentionKernel.h"
#include "backends/cpu/compiler/llvm/Codegen.h"
#include "backends/cpu/compiler/machine/Target.h"
#include "backends/loops/FusionRules.h"
#include "ir/Layout.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/IRMapping.h"
#include "runtime/files/OutputFile.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include <deque>

using namespace mlir;
using namespace sluice;

namespace {

/// Kernels whose code is made once it is needed: the search for a placement prepares many that are never run.
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

  /// Gives the stage functions of all that were added their bodies.
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

struct sluice_session {
  cpu::Target target;
  int64_t capacity = 0;
  std::string temporaries;      // a folder for the object; empty: none
  OwningOpRef<ModuleOp> module; // of all stages so far
  PostponedKernels postponed;
  std::string instructions; // of the target, separated by commas
  std::string error;
  std::deque<std::string> texts; // what earlier answers point to
  std::deque<std::vector<sluice_stage_info>> stages;
  std::deque<std::vector<sluice_layout_dim>> layouts;
  SmallVector<char, 0> object;

  const char *keep(std::string text) { return texts.emplace_back(std::move(text)).c_str(); }

  /// Runs `body`; diagnostics that it emits become the session's error.
  sluice_status guarded(MLIRContext *context, sluice_status failureStatus, llvm::function_ref<LogicalResult()> body) {
    error.clear();
    ScopedDiagnosticHandler handler(
        context, [&](Diagnostic &diagnostic) { error += (error.empty() ? "" : "; ") + diagnostic.str(); });
    return succeeded(body()) ? SLUICE_OK : failureStatus;
  }
};

static Operation *operationOf(const sluice_kernel_view *view) { return static_cast<Operation *>(view->operation); }

static sluice_status begin(const sluice_target_options *options, sluice_session **session) {
  *session = new sluice_session;
  (*session)->capacity = options->capacity;
  if (options->struct_size >= sizeof(*options) && options->temporaries)
    (*session)->temporaries = options->temporaries;
  if (*options->settings) {
    (*session)->error = std::string("there is no setting '").append(options->settings).append("'");
    return SLUICE_USAGE;
  }
  llvm::Expected<cpu::Target> target = cpu::Target::of(options->cpu);
  if (target) {
    (*session)->target = *target;
    (*session)->instructions = llvm::join(target->instructions, ",");
    return SLUICE_OK;
  }
  std::error_code code;
  llvm::handleAllErrors(target.takeError(), [&](const llvm::StringError &error) {
    code = error.convertToErrorCode();
    (*session)->error = error.getMessage();
  });
  return code == std::errc::not_supported ? SLUICE_UNSUPPORTED : SLUICE_USAGE;
}

static void end(sluice_session *session) { delete session; }

static const char *lastError(sluice_session *session) { return session->error.c_str(); }

static sluice_status describe(sluice_session *session, sluice_target_info *info) {
  info->device_type = "cpu";
  info->cpu = session->target.cpu.c_str();
  info->vector_bits = uint32_t(session->target.vectorBits);
  info->instructions = session->instructions.c_str();
  return SLUICE_OK;
}

static sluice_status supports(sluice_session *session, const sluice_kernel_view *kernel) {
  Operation *op = operationOf(kernel);
  session->error.clear();
  if (!ir::isCompute(op))
    session->error = ("the CPU has no code for " + op->getName().getStringRef()).str();
  else if (cpu::hasLargeGroups(op))
    session->error = "the CPU has products for large groups, each by itself";
  else
    session->error = cpu::reasonAgainstAttention(op);
  return session->error.empty() ? SLUICE_OK : SLUICE_UNSUPPORTED;
}

static_assert(int(ir::PhysicalDim::Whole) == SLUICE_LAYOUT_WHOLE &&
              int(ir::PhysicalDim::Div) == SLUICE_LAYOUT_TILE_NUMBER &&
              int(ir::PhysicalDim::Mod) == SLUICE_LAYOUT_PLACE_IN_TILE);

static sluice_status proposeLayout(sluice_session *session, const sluice_kernel_view *view, int isResult,
                                   unsigned number, sluice_layout_proposal *proposal) {
  Operation *op = operationOf(view);
  cpu::LayoutPreference preference = cpu::preferredLayout(op, isResult != 0, number, session->target);
  proposal->cares = bool(preference.layout);
  proposal->required = preference.required;
  if (!preference.layout)
    return SLUICE_OK;
  Value value = isResult ? Value(op->getResult(number)) : op->getOperand(number);
  std::vector<sluice_layout_dim> &dims = session->layouts.emplace_back();
  auto laidOut = ir::withLayout(cast<RankedTensorType>(value.getType()), preference.layout);
  SmallVector<ir::PhysicalDim> physical = *ir::getPhysicalDims(laidOut);
  for (const ir::PhysicalDim &dim : physical)
    dims.push_back({dim.logical, sluice_layout_part(dim.kind), dim.tile});
  proposal->layout = dims.data();
  proposal->num_layout = dims.size();
  return SLUICE_OK;
}

static sluice_status prepare(sluice_session *session, const sluice_kernel_view *view, sluice_launch_info *launch) {
  auto kernel = cast<ir::KernelOp>(operationOf(view));
  if (!session->module)
    session->module = ModuleOp::create(UnknownLoc::get(kernel.getContext()));
  return session->guarded(kernel.getContext(), SLUICE_UNSUPPORTED, [&]() -> LogicalResult {
    std::string name = cpu::uniqueName(*session->module, kernel.getName());
    FailureOr<cpu::LoweredKernel> lowered =
        cpu::lowerKernel(kernel, {*session->module, /*hasBodies=*/false}, name, session->target, session->capacity);
    if (failed(lowered))
      return failure();
    if (!lowered->hasBodies)
      session->postponed.add(kernel, *lowered, name);
    std::vector<sluice_stage_info> &stages = session->stages.emplace_back();
    for (const cpu::Stage &stage : lowered->stages)
      stages.push_back({session->keep(stage.function), stage.tasks, stage.rowsPerTask});
    launch->stages = stages.data();
    launch->num_stages = stages.size();
    launch->stage_size = sizeof(sluice_stage_info);
    launch->workspace_bytes = lowered->workspaceBytes;
    const ir::Work &work = lowered->work;
    launch->cost = {work.flops, work.flopsPerRow, work.bytes, work.bytesPerRow, lowered->lanes};
    return success();
  });
}

/// Fails with why it cannot be written.
static llvm::Error keepObject(const sluice_session &session) {
  if (session.temporaries.empty())
    return llvm::Error::success();
  std::string path = session.temporaries + "/kernels.o";
  if (std::error_code failed = llvm::sys::fs::create_directories(session.temporaries))
    return llvm::createStringError(failed, "%s: %s", session.temporaries.c_str(), failed.message().c_str());
  if (files::Failure failure = files::writeFile(path, {session.object.data(), session.object.size()}); !failure.empty())
    return llvm::createStringError("%s: %s", path.c_str(), failure.c_str());
  return llvm::Error::success();
}

static sluice_status lower(sluice_session *session, sluice_blob *blob) {
  if (!session->module)
    return SLUICE_OK;
  sluice_status status = session->guarded(session->module->getContext(), SLUICE_UNSUPPORTED, [&] {
    return session->postponed.lower(*session->module, session->target, session->capacity);
  });
  if (status != SLUICE_OK)
    return status;
  llvm::Expected<SmallVector<char, 0>> object = cpu::compileToObject(*session->module, session->target);
  if (!object) {
    session->error = llvm::toString(object.takeError());
    return SLUICE_INTERNAL;
  }
  session->object = std::move(*object);
  if (llvm::Error error = keepObject(*session)) {
    session->error = llvm::toString(std::move(error));
    return SLUICE_USAGE;
  }
  blob->kind = SLUICE_BLOB_HOST_OBJECT;
  blob->data = session->object.data();
  blob->bytes = session->object.size();
  return SLUICE_OK;
}

static sluice_status canFuse(sluice_session *, const sluice_kernel_view *kernel, int *fuses) {
  *fuses = loops::lastOpJoins(*kernel);
  return SLUICE_OK;
}

/// Whether a convolution has so few channels on one side that they fill a small part of the vectors.
static bool isNarrow(const sluice_kernel_view &kernel, const sluice_op_view &op) {
  constexpr int64_t kFewChannels = 8;
  return llvm::any_of(llvm::ArrayRef(op.operands, op.num_operands), [&](size_t operand) {
    const sluice_type_view &type = *sluice_kernel_value_at(&kernel, operand);
    return type.rank == 4 && type.shape[1] < kFewChannels;
  });
}

/// Narrow convolutions have code of their own, which reaches another share of the peak.
static sluice_status cost(sluice_session *session, const sluice_kernel_view *kernel, sluice_cost_estimate *estimate) {
  for (size_t number = 0; number < kernel->num_ops; ++number) {
    const sluice_op_view &op = *sluice_kernel_op_at(kernel, number);
    if (llvm::StringRef(op.name).starts_with("sluice.conv2d") && isNarrow(*kernel, op))
      estimate->kind = session->keep(std::string(estimate->kind) + "_narrow");
  }
  return SLUICE_OK;
}

extern "C" const sluice_backend_compile *sluice_cpu_backend_compile(void) {
  static const sluice_backend_compile table = {sizeof(table),
                                               SLUICE_BACKEND_MAJOR,
                                               SLUICE_BACKEND_MINOR,
                                               "cpu",
                                               LLVM_VERSION_STRING,
                                               /*wants_bytecode=*/0,
                                               begin,
                                               end,
                                               lastError,
                                               describe,
                                               supports,
                                               proposeLayout,
                                               prepare,
                                               lower,
                                               canFuse,
                                               cost};
  return &table;
}
