#include "backends/cuda/compiler/Plugin.h"

#include "backends/cuda/compiler/Layouts.h"
#include "backends/cuda/compiler/Peaks.h"
#include "backends/cuda/compiler/Session.h"
#include "backends/cuda/compiler/attention/AttentionKernel.h"
#include "backends/cuda/compiler/product/ProductKernel.h"
#include "backends/loops/FusionRules.h"
#include "ir/Work.h"
#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/StringExtras.h"
#include <deque>
#include <memory>

using namespace mlir;
using namespace sluice;

namespace {

/// A sluice_session: that name is another backend's in the same program.
struct PluginSession {
  std::unique_ptr<cuda::Session> session; // null if it did not begin
  std::string error;
  std::string architectures; // as description
  std::vector<sluice_peak> peaks;
  std::deque<std::string> names; // of functions, which earlier answers point to
  std::deque<std::string> kinds;
  std::deque<std::vector<sluice_layout_dim>> layouts;
  std::string image;
  std::vector<sluice_function_needs> needs; // of its functions

  static PluginSession *of(sluice_session *session) { return reinterpret_cast<PluginSession *>(session); }
  sluice_status fail(sluice_status status, std::string why) {
    error = std::move(why);
    return status;
  }
};

} // namespace

static Operation *operationOf(const sluice_kernel_view *view) { return static_cast<Operation *>(view->operation); }

static sluice_status begin(const sluice_target_options *options, sluice_session **result) {
  auto *its = new PluginSession;
  *result = reinterpret_cast<sluice_session *>(its);
  auto fail = [&](llvm::Error failure) {
    std::error_code code;
    llvm::handleAllErrors(std::move(failure), [&](const llvm::StringError &error) {
      code = error.convertToErrorCode();
      its->error = error.getMessage();
    });
    return code == std::errc::not_supported ? SLUICE_UNSUPPORTED : SLUICE_USAGE;
  };
  auto settings = cuda::readSettings(options->settings);
  if (!settings)
    return fail(settings.takeError());
  if (options->struct_size >= sizeof(*options) && options->temporaries)
    settings->temporaries = options->temporaries;
  auto session = cuda::Session::begin(std::move(*settings), options->capacity);
  if (!session)
    return fail(session.takeError());
  its->session = std::make_unique<cuda::Session>(std::move(*session));
  its->architectures = llvm::join(its->session->architectures(), ", ");
  its->peaks = cuda::publishedPeaks(its->session->architectures());
  if (its->session->options().tf32)
    its->architectures += ", f32 products in tf32";
  if (its->session->timesAlgorithms())
    its->architectures += ", products timed";
  return SLUICE_OK;
}

static void end(sluice_session *session) { delete PluginSession::of(session); }

static const char *lastError(sluice_session *session) { return PluginSession::of(session)->error.c_str(); }

/// What the driver's memory begins at multiples of, and what cublasLt takes matrices to do unless it is told of less. Wide loads
/// want 16, and a warp's fill whole cache lines at multiples of 128.
static constexpr size_t kAlignment = 256;

static sluice_status describe(sluice_session *session, sluice_target_info *info) {
  info->device_type = "cuda";
  info->cpu = PluginSession::of(session)->architectures.c_str();
  info->no_tree_sums = "NCCL adds in an order of its own, not in a tree: replicas on devices of cuda "
                       "cannot be --deterministic, and one alone can";
  if (info->struct_size < sizeof(*info))
    return SLUICE_OK;
  info->peaks = PluginSession::of(session)->peaks.data();
  info->num_peaks = PluginSession::of(session)->peaks.size();
  info->peak_size = sizeof(sluice_peak);
  info->alignment = kAlignment;
  return SLUICE_OK;
}

static sluice_status supports(sluice_session *session, const sluice_kernel_view *view) {
  Operation *op = operationOf(view);
  PluginSession *its = PluginSession::of(session);
  if (!ir::isCompute(op))
    return its->fail(SLUICE_UNSUPPORTED, "CUDA devices have no code for " + op->getName().getStringRef().str());
  if (isa<ir::BlockwiseOp>(op))
    if (std::string reason = cuda::reasonAgainstAttention(op, its->session->options()); !reason.empty())
      return its->fail(SLUICE_UNSUPPORTED, reason);
  return SLUICE_OK;
}

static sluice_status proposeLayout(sluice_session *session, const sluice_kernel_view *view, int isResult,
                                   unsigned number, sluice_layout_proposal *proposal) {
  const sluice_op_view &op = *sluice_kernel_op_at(view, 0);
  size_t value = isResult ? view->num_operands + number : op.operands[number];
  std::optional<cuda::LayoutPreference> preferred =
      cuda::preferredLayout(op, isResult != 0, number, *sluice_kernel_value_at(view, value));
  if (!preferred)
    return SLUICE_OK;
  proposal->cares = 1;
  proposal->required = preferred->required;
  proposal->num_layout = preferred->layout.size();
  proposal->layout = PluginSession::of(session)->layouts.emplace_back(std::move(preferred->layout)).data();
  return SLUICE_OK;
}

static sluice_status prepare(sluice_session *opaque, const sluice_kernel_view *view, sluice_launch_info *launch) {
  PluginSession *session = PluginSession::of(opaque);
  auto kernel = cast<ir::KernelOp>(operationOf(view));
  session->error.clear();
  ScopedDiagnosticHandler handler(kernel.getContext(), [&](Diagnostic &diagnostic) {
    session->error += (session->error.empty() ? "" : "; ") + diagnostic.str();
  });
  FailureOr<cuda::Session::Prepared> prepared = session->session->prepare(kernel);
  if (failed(prepared))
    return SLUICE_UNSUPPORTED;
  launch->function = session->names.emplace_back(std::move(prepared->function)).c_str();
  launch->workspace_bytes = prepared->workspaceBytes;
  Block &body = kernel.getBody().front();
  SmallVector<Operation *> ops(llvm::make_pointer_range(body.without_terminator()));
  ir::Work work =
      ir::workOf(ops, body.getArguments(), body.getTerminator()->getOperands(), session->session->capacity());
  launch->cost = {work.flops, work.flopsPerRow, work.bytes, work.bytesPerRow, prepared->lanes};
  return SLUICE_OK;
}

static sluice_status lower(sluice_session *opaque, sluice_blob *blob) {
  PluginSession *session = PluginSession::of(opaque);
  if (session->names.empty())
    return SLUICE_OK;
  llvm::Expected<std::string> image = session->session->lower();
  if (!image)
    return session->fail(SLUICE_INTERNAL, llvm::toString(image.takeError()));
  session->image = std::move(*image);
  blob->kind = SLUICE_BLOB_DEVICE;
  blob->data = session->image.data();
  blob->bytes = session->image.size();
  if (blob->struct_size < sizeof(*blob))
    return SLUICE_OK;
  for (const cuda::CompiledUnit &unit : session->session->compiled())
    for (const cuda::KernelResources &its : unit.functions)
      session->needs.push_back({its.name.c_str(), unit.architecture.c_str(), its.registers,
                                its.spillStores + its.spillLoads, its.stack, its.shared});
  blob->functions = session->needs.data();
  blob->num_functions = session->needs.size();
  blob->function_size = sizeof(sluice_function_needs);
  return SLUICE_OK;
}

/// The op of this kind that reads what another one of them makes; null if none does.
template <typename Op> static Operation *readerOfMoved(ArrayRef<Operation *> ops) {
  auto isMade = [&](Value operand) { return llvm::is_contained(ops, operand.getDefiningOp()); };
  const auto *found =
      llvm::find_if(ops, [&](Operation *op) { return isa<Op>(op) && llvm::any_of(op->getOperands(), isMade); });
  return found == ops.end() ? nullptr : *found;
}

// What a library does stays with it: only what it does in the same pass may join, as may the sum of an operand and a product.
// It reads products' operands through moves that leave matrices of them; tiles of our own through those that leave packs, and
// kernels of attention items of neighbours.
static sluice_status canFuse(sluice_session *session, const sluice_kernel_view *kernel, int *fuses) {
  SmallVector<Operation *> ops;
  SmallVector<Value> made, kept;
  for (size_t op = 0; op < kernel->num_ops; ++op) {
    ops.push_back(static_cast<Operation *>(sluice_kernel_op_at(kernel, op)->operation));
    llvm::append_range(made, ops.back()->getResults());
  }
  for (size_t result : ArrayRef(kernel->results, kernel->num_results))
    kept.push_back(made[result - kernel->num_operands]);
  const cuda::Session &its = *PluginSession::of(session)->session;
  *fuses = loops::lastOpJoins(*kernel, /*throughMoves=*/true) || (kept.size() == 2 && its.isForLibrary(ops, kept));
  if (!*fuses || ops.size() < 2)
    return SLUICE_OK;
  auto isForLibrary = [&](Operation *op) { return its.isForLibrary(op, op->getResults()); };
  if (llvm::any_of(ops, isForLibrary))
    *fuses = its.isForLibrary(ops, kept);
  else if (Operation *product = readerOfMoved<ir::ContractionOp>(ops))
    *fuses = cuda::readsPacksThrough(product, ops, its.capacity(), its.options());
  else if (Operation *attention = readerOfMoved<ir::BlockwiseOp>(ops))
    *fuses = cuda::findsOperands(attention, its.capacity(), ops);
  return SLUICE_OK;
}

/// How the kinds of products end that are on tensor cores, which have peaks of their own; of others "".
static const char *endingOf(Operation *op, const cuda::GridOptions &options) {
  if (!isa<ir::ContractionOp, ir::BlockwiseOp>(op))
    return "";
  Type element = cast<RankedTensorType>(op->getOperand(0).getType()).getElementType();
  if (ir::isHalf(element) && options.halfCores)
    return element.isBF16() ? cuda::kBf16Ending : cuda::kF16Ending;
  return element.isF32() && options.tf32 ? cuda::kTf32Ending : "";
}

/// A product whose tiles are mostly empty reaches another share of the peak, and one on tensor cores has another peak.
static sluice_status cost(sluice_session *opaque, const sluice_kernel_view *kernel, sluice_cost_estimate *estimate) {
  constexpr double kMostlyEmpty = 0.5;
  PluginSession *session = PluginSession::of(opaque);
  const cuda::GridOptions options = session->session->options();
  std::string kind = estimate->kind;
  const char *ending = "";
  for (size_t number = 0; number < kernel->num_ops; ++number) {
    const sluice_op_view &op = *sluice_kernel_op_at(kernel, number);
    auto *its = static_cast<Operation *>(op.operation);
    if (const char *found = endingOf(its, options); *found)
      ending = found;
    if (!cuda::isProduct(op))
      continue;
    estimate->work.lanes = cuda::filledTiles(its, session->session->capacity(), options).value_or(1);
    if (estimate->work.lanes < kMostlyEmpty)
      kind += "_narrow";
  }
  estimate->kind = session->kinds.emplace_back(kind + ending).c_str();
  return SLUICE_OK;
}

extern "C" const sluice_backend_compile *sluice_cuda_backend_compile(void) {
  static const sluice_backend_compile table = {sizeof(table),
                                               SLUICE_BACKEND_MAJOR,
                                               SLUICE_BACKEND_MINOR,
                                               "cuda",
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
