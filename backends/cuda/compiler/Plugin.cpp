#include "backends/cuda/compiler/Plugin.h"

#include "backends/cuda/compiler/Layouts.h"
#include "backends/cuda/compiler/Peaks.h"
#include "backends/cuda/compiler/Session.h"
#include "backends/cuda/compiler/attention/AttentionKernel.h"
#include "backends/cuda/compiler/product/ProductKernel.h"
#include "backends/loops/FusionRules.h"
#include "backends/loops/SessionError.h"
#include "ir/Work.h"
#include "sluice/backend/adapter.h"
#include "llvm/ADT/StringExtras.h"
#include <deque>

using namespace mlir;
using namespace sluice;

namespace {

/// A class for adapter/compile.h.
class CudaSession {
public:
  static constexpr const char *name = "cuda", *nativeAbi = LLVM_VERSION_STRING;

  explicit CudaSession(const sluice_target_options &options);
  void describe(sluice_target_info &info) const;
  void supports(const sluice_kernel_view &view) const;
  void proposeLayout(const sluice_kernel_view &view, bool isResult, unsigned number, sluice_layout_proposal &proposal);
  void prepare(const sluice_kernel_view &view, sluice_launch_info &launch);
  void lower(sluice_blob &blob);
  bool canFuse(const sluice_kernel_view &kernel) const;
  void cost(const sluice_kernel_view &kernel, sluice_cost_estimate &estimate);

private:
  cuda::Session session;
  std::string architectures; // and settings that affect bits, as the description of the target
  std::vector<sluice_peak> peaks;
  std::deque<std::string> names; // of functions; results of earlier calls point to them
  std::deque<std::string> kinds;
  std::deque<std::vector<sluice_layout_dim>> layouts;
  std::string image;
  std::vector<sluice_function_needs> needs; // of its functions
};

} // namespace

static Operation *operationOf(const sluice_kernel_view &view) { return static_cast<Operation *>(view.operation); }

static const char *textsIn(const sluice_target_options &options) {
  bool has = SLUICE_HAS_MEMBER(sluice_target_options, &options, temporaries);
  return has && options.temporaries ? options.temporaries : "";
}

static sluice_math mathOf(const sluice_target_options &options) {
  return SLUICE_HAS_MEMBER(sluice_target_options, &options, math) ? options.math : SLUICE_MATH_STRICT;
}

CudaSession::CudaSession(const sluice_target_options &options)
    : session(loops::valueOf(cuda::Session::begin(loops::valueOf(cuda::readSettings(options.settings)),
                                                  options.capacity, mathOf(options), textsIn(options)))),
      architectures(llvm::join(session.architectures(), ", ")), peaks(cuda::publishedPeaks(session.architectures())) {
  if (sluice_math math = session.options().math; math != SLUICE_MATH_STRICT)
    architectures += math == SLUICE_MATH_TF32_CONVOLUTIONS ? ", f32 convolutions in tf32" : ", f32 products in tf32";
  if (session.timesAlgorithms())
    architectures += ", products timed";
}

/// The driver aligns memory to this, and cublasLt assumes it for matrices by default. Wide loads require 16; a warp's
/// loads cover whole cache lines at multiples of 128.
static constexpr size_t kAlignment = 256;

void CudaSession::describe(sluice_target_info &info) const {
  info.device_type = "cuda";
  info.cpu = architectures.c_str();
  info.no_tree_sums = "NCCL does not add in a fixed order; use one replica, or leave out --deterministic";
  if (info.struct_size < sizeof(info))
    return;
  info.peaks = peaks.data();
  info.num_peaks = peaks.size();
  info.peak_size = sizeof(sluice_peak);
  info.alignment = kAlignment;
}

void CudaSession::supports(const sluice_kernel_view &view) const {
  Operation *op = operationOf(view);
  if (!ir::isCompute(op))
    throw backend::Error(SLUICE_UNSUPPORTED, "CUDA devices have no code for " + op->getName().getStringRef().str());
  if (isa<ir::BlockwiseOp>(op))
    if (std::string reason = cuda::reasonAgainstAttention(op, session.options()); !reason.empty())
      throw backend::Error(SLUICE_UNSUPPORTED, reason);
}

void CudaSession::proposeLayout(const sluice_kernel_view &view, bool isResult, unsigned number,
                                sluice_layout_proposal &proposal) {
  const sluice_op_view &op = *sluice_kernel_op_at(&view, 0);
  size_t value = isResult ? view.num_operands + number : op.operands[number];
  std::optional<cuda::LayoutPreference> preferred =
      cuda::preferredLayout(op, isResult, number, *sluice_kernel_value_at(&view, value));
  if (!preferred)
    return;
  proposal.cares = 1;
  proposal.required = preferred->required;
  proposal.num_layout = preferred->layout.size();
  proposal.layout = layouts.emplace_back(std::move(preferred->layout)).data();
}

void CudaSession::prepare(const sluice_kernel_view &view, sluice_launch_info &launch) {
  auto kernel = cast<ir::KernelOp>(operationOf(view));
  FailureOr<cuda::Session::Prepared> prepared = failure();
  loops::diagnosed(kernel.getContext(),
                   [&]() -> LogicalResult { return prepared = session.prepare(kernel, view.name); });
  launch.function = names.emplace_back(std::move(prepared->function)).c_str();
  launch.workspace_bytes = prepared->workspaceBytes;
  Block &body = kernel.getBody().front();
  SmallVector<Operation *> ops(llvm::make_pointer_range(body.without_terminator()));
  ir::Work work = ir::workOf(ops, body.getArguments(), body.getTerminator()->getOperands(), session.capacity());
  launch.cost = {work.flops, work.flopsPerRow, work.bytes, work.bytesPerRow, prepared->lanes};
}

void CudaSession::lower(sluice_blob &blob) {
  if (names.empty())
    return;
  llvm::Expected<std::string> lowered = session.lower();
  if (!lowered)
    throw backend::Error(SLUICE_INTERNAL, llvm::toString(lowered.takeError()));
  image = std::move(*lowered);
  blob.kind = SLUICE_BLOB_DEVICE;
  blob.data = image.data();
  blob.bytes = image.size();
  if (blob.struct_size < sizeof(blob))
    return;
  for (const cuda::CompiledUnit &unit : session.compiled())
    for (const cuda::KernelResources &its : unit.functions)
      needs.push_back({its.name.c_str(), unit.architecture.c_str(), its.registers, its.spillStores + its.spillLoads,
                       its.stack, its.shared});
  blob.functions = needs.data();
  blob.num_functions = needs.size();
  blob.function_size = sizeof(sluice_function_needs);
}

/// The op of type `Op` that reads a result of another of the ops, in practice a moved operand; null if there is none.
template <typename Op> static Operation *readerOfMoved(ArrayRef<Operation *> ops) {
  auto isMade = [&](Value operand) { return llvm::is_contained(ops, operand.getDefiningOp()); };
  const auto *found =
      llvm::find_if(ops, [&](Operation *op) { return isa<Op>(op) && llvm::any_of(op->getOperands(), isMade); });
  return found == ops.end() ? nullptr : *found;
}

// A library product stays in the library: only ops of the library's own epilogue may join, or the sum of an operand and
// a product. The library reads operands through moves that result in matrices; our tiles, through moves that keep
// packs; attention kernels, through moves that keep items contiguous.
bool CudaSession::canFuse(const sluice_kernel_view &kernel) const {
  SmallVector<Operation *> ops;
  SmallVector<Value> made, kept;
  for (size_t op = 0; op < kernel.num_ops; ++op) {
    ops.push_back(static_cast<Operation *>(sluice_kernel_op_at(&kernel, op)->operation));
    llvm::append_range(made, ops.back()->getResults());
  }
  for (size_t result : ArrayRef(kernel.results, kernel.num_results))
    kept.push_back(made[result - kernel.num_operands]);
  bool fuses =
      loops::lastOpJoins(kernel, /*throughMoves=*/true) || (kept.size() == 2 && session.isForLibrary(ops, kept));
  if (!fuses || ops.size() < 2)
    return fuses;
  auto isForLibrary = [&](Operation *op) { return session.isForLibrary(op, op->getResults()); };
  if (llvm::any_of(ops, isForLibrary))
    return session.isForLibrary(ops, kept);
  if (Operation *product = readerOfMoved<ir::ContractionOp>(ops))
    return cuda::readsPacksThrough(product, ops, session.capacity(), session.options());
  if (Operation *attention = readerOfMoved<ir::BlockwiseOp>(ops))
    return cuda::findsOperands(attention, session.capacity(), ops);
  return true;
}

/// The suffix of the kind of products on tensor cores, which have separate peaks; "" for others.
static const char *endingOf(Operation *op, const cuda::GridOptions &options) {
  if (!isa<ir::ContractionOp, ir::BlockwiseOp>(op))
    return "";
  Type element = cast<RankedTensorType>(op->getOperand(0).getType()).getElementType();
  if (ir::isHalf(element) && options.halfCores)
    return element.isBF16() ? cuda::kBf16Ending : cuda::kF16Ending;
  return cuda::usesTf32(op, options) ? cuda::kTf32Ending : "";
}

/// Products with mostly empty tiles, and products on tensor cores, have separate kinds: they reach other shares of the
/// peak, or another peak.
void CudaSession::cost(const sluice_kernel_view &kernel, sluice_cost_estimate &estimate) {
  constexpr double kMostlyEmpty = 0.5;
  const cuda::GridOptions options = session.options();
  std::string kind = estimate.kind;
  const char *ending = "";
  for (size_t number = 0; number < kernel.num_ops; ++number) {
    const sluice_op_view &op = *sluice_kernel_op_at(&kernel, number);
    auto *its = static_cast<Operation *>(op.operation);
    if (const char *found = endingOf(its, options); *found)
      ending = found;
    if (!cuda::isProduct(op))
      continue;
    estimate.work.lanes = cuda::filledTiles(its, session.capacity(), options).value_or(1);
    if (estimate.work.lanes < kMostlyEmpty)
      kind += "_narrow";
  }
  estimate.kind = kinds.emplace_back(kind + ending).c_str();
}

extern "C" const sluice_backend_compile *sluice_cuda_backend_compile(void) {
  return &backend::compileTable<CudaSession>;
}
