#include "passes/Backend.h"
#include "mlir/AsmParser/AsmParser.h"

using namespace mlir;
using namespace sluice::ir;

namespace sluice::passes {

std::unique_ptr<Backend> Backend::create(const sluice_backend_compile &table, const sluice_target_options &options, Location loc) {
  sluice_session *session = nullptr;
  sluice_status status = table.begin(&options, &session);
  if (status == SLUICE_OK)
    return std::unique_ptr<Backend>(new Backend(table, session));
  emitError(loc, status == SLUICE_UNSUPPORTED ? "unsupported: " : "") << "backend '" << table.name << "' refuses the target '" << options.cpu << "'" << (session ? ": " : "") << (session ? table.last_error(session) : "");
  if (session)
    table.end(session);
  return nullptr;
}

Backend::~Backend() { table.end(session); }

static sluice_kernel_view view(Operation *op, StringRef name) {
  sluice_kernel_view view{};
  view.struct_size = sizeof(view);
  view.name = name.data();
  view.operation = op;
  return view;
}

FailureOr<LayoutProposal> Backend::proposeLayout(Operation *op, bool isResult, unsigned number) {
  const char *text = nullptr;
  int required = 0;
  sluice_kernel_view kernel = view(op, "");
  if (table.propose_layout(session, &kernel, isResult, number, &text, &required) != SLUICE_OK)
    return op->emitError() << table.last_error(session);
  LayoutProposal proposal;
  proposal.required = required != 0;
  if (!text)
    return proposal;
  auto type = cast<RankedTensorType>(isResult ? op->getResult(number).getType() : op->getOperand(number).getType());
  if (StringRef(text).empty()) {
    proposal.layout = AffineMap::getMultiDimIdentityMap(type.getRank(), op->getContext());
    return proposal;
  }
  auto map = dyn_cast_or_null<AffineMapAttr>(parseAttribute((Twine("affine_map<") + text + ">").str(), op->getContext()));
  if (!map || map.getValue().getNumDims() != type.getRank())
    return op->emitError("backend '") << table.name << "' proposes no valid layout: " << text;
  proposal.layout = map.getValue();
  return proposal;
}

FailureOr<sluice_launch_info> Backend::prepare(KernelOp kernel) {
  sluice_launch_info launch{};
  launch.struct_size = sizeof(launch);
  std::string name = kernel.getName().str();
  sluice_kernel_view kernelView = view(kernel, name);
  sluice_status status = table.prepare(session, &kernelView, &launch);
  if (status != SLUICE_OK)
    return kernel.emitError(status == SLUICE_UNSUPPORTED ? "unsupported: " : "") << "backend '" << table.name << "' cannot make this kernel: " << table.last_error(session);
  return launch;
}

FailureOr<StringRef> Backend::lower(Location loc) {
  sluice_blob blob{};
  blob.struct_size = sizeof(blob);
  if (table.lower && table.lower(session, &blob) != SLUICE_OK)
    return emitError(loc, "backend '") << table.name << "': " << table.last_error(session);
  return StringRef(static_cast<const char *>(blob.data), blob.bytes);
}

sluice_target_info Backend::describe() const {
  sluice_target_info info{};
  info.struct_size = sizeof(info);
  table.describe(session, &info);
  return info;
}

} // namespace sluice::passes
