#include "passes/backend/Backend.h"
#include "mlir/AsmParser/AsmParser.h"
#include "passes/backend/KernelView.h"

using namespace mlir;
using namespace sluice::ir;

namespace sluice::passes {

std::unique_ptr<Backend> Backend::create(const sluice_backend_compile &table, const sluice_target_options &options,
                                         Location loc) {
  sluice_session *session = nullptr;
  sluice_status status = table.begin(&options, &session);
  if (status == SLUICE_OK)
    return std::unique_ptr<Backend>(new Backend(table, session, options.capacity));
  emitError(loc, status == SLUICE_UNSUPPORTED ? "unsupported: " : "")
      << "backend '" << table.name << "' refuses the target '" << options.cpu << "'" << (session ? ": " : "")
      << (session ? table.last_error(session) : "");
  if (session)
    table.end(session);
  return nullptr;
}

Backend::~Backend() { table.end(session); }

/// Whether the table has this member: neither cut off nor null.
template <typename Member>
static bool has(const sluice_backend_compile &table, Member sluice_backend_compile::*member) {
  auto offset = reinterpret_cast<const char *>(&(table.*member)) - reinterpret_cast<const char *>(&table);
  return size_t(offset) < table.struct_size && table.*member;
}

std::string Backend::reasonAgainst(Operation *op) {
  KernelView kernel(op);
  if (!has(table, &sluice_backend_compile::supports) || table.supports(session, kernel.get()) == SLUICE_OK)
    return "";
  StringRef reason = table.last_error(session);
  return reason.empty() ? "it gives no reason" : reason.str();
}

bool Backend::canFuse(ArrayRef<Operation *> ops, ValueRange results) {
  if (!has(table, &sluice_backend_compile::can_fuse))
    return false;
  int fuses = 0;
  KernelView kernel(ops, results);
  return table.can_fuse(session, kernel.get(), &fuses) == SLUICE_OK && fuses;
}

bool Backend::proposesLayouts() const { return has(table, &sluice_backend_compile::propose_layout); }

FailureOr<LayoutProposal> Backend::proposeLayout(Operation *op, bool isResult, unsigned number) {
  const char *text = nullptr;
  int required = 0;
  LayoutProposal proposal;
  if (!proposesLayouts()) {
    auto type = cast<RankedTensorType>(isResult ? op->getResult(number).getType() : op->getOperand(number).getType());
    return LayoutProposal{AffineMap::getMultiDimIdentityMap(type.getRank(), op->getContext()), /*required=*/true};
  }
  KernelView kernel(op);
  if (table.propose_layout(session, kernel.get(), isResult, number, &text, &required) != SLUICE_OK)
    return op->emitError() << table.last_error(session);
  proposal.required = required != 0;
  if (!text)
    return proposal;
  auto type = cast<RankedTensorType>(isResult ? op->getResult(number).getType() : op->getOperand(number).getType());
  if (StringRef(text).empty()) {
    proposal.layout = AffineMap::getMultiDimIdentityMap(type.getRank(), op->getContext());
    return proposal;
  }
  auto map =
      dyn_cast_or_null<AffineMapAttr>(parseAttribute((Twine("affine_map<") + text + ">").str(), op->getContext()));
  if (!map || map.getValue().getNumDims() != type.getRank())
    return op->emitError("backend '") << table.name << "' proposes no valid layout: " << text;
  proposal.layout = map.getValue();
  return proposal;
}

LaunchCost Backend::cost(ArrayRef<Operation *> ops, ValueRange inputs, ValueRange outputs) {
  Work work = workOf(ops, inputs, outputs, capacity);
  std::string kind = kindOf(ops).str();
  sluice_cost_estimate estimate{
      sizeof(estimate), {work.flops, work.flopsPerRow, work.bytes, work.bytesPerRow, /*lanes=*/1}, kind.c_str()};
  if (has(table, &sluice_backend_compile::cost)) {
    KernelView kernel(ops, outputs);
    sluice_cost_estimate better = estimate;
    if (table.cost(session, kernel.get(), &better) == SLUICE_OK && better.kind)
      estimate = better;
  }
  const sluice_cost &known = estimate.work;
  return {{known.flops, known.flops_per_row, known.bytes, known.bytes_per_row}, estimate.kind};
}

FailureOr<sluice_launch_info> Backend::prepare(KernelOp kernel) {
  sluice_launch_info launch{};
  launch.struct_size = sizeof(launch);
  KernelView kernelView(kernel);
  if (table.wants_bytecode)
    kernelView.addBytecode(kernel);
  sluice_status status = table.prepare(session, kernelView.get(), &launch);
  if (status != SLUICE_OK)
    return kernel.emitError(status == SLUICE_UNSUPPORTED ? "unsupported: " : "")
           << "backend '" << table.name << "' cannot make this kernel: " << table.last_error(session);
  return launch;
}

FailureOr<sluice_blob> Backend::lower(Location loc) {
  sluice_blob blob{};
  blob.struct_size = sizeof(blob);
  if (has(table, &sluice_backend_compile::lower) && table.lower(session, &blob) != SLUICE_OK)
    return emitError(loc, "backend '") << table.name << "': " << table.last_error(session);
  return blob;
}

sluice_target_info Backend::describe() const {
  sluice_target_info info{};
  info.struct_size = sizeof(info);
  table.describe(session, &info);
  return info;
}

} // namespace sluice::passes
