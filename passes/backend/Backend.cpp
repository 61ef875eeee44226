#include "passes/backend/Backend.h"
#include "passes/backend/KernelView.h"
#include "passes/backend/ProposedLayout.h"

using namespace mlir;
using namespace sluice::ir;

namespace sluice::passes {

std::unique_ptr<Backend> Backend::create(const sluice_backend_compile &table, const sluice_target_options &options,
                                         Location loc) {
  sluice_session *session = nullptr;
  sluice_status status = table.begin(&options, &session);
  if (status == SLUICE_OK)
    return std::unique_ptr<Backend>(new Backend(table, session, options));
  emitError(loc, status == SLUICE_UNSUPPORTED ? "unsupported: " : "")
      << "backend '" << table.name << "' refuses the target '" << options.cpu << "'" << (session ? ": " : "")
      << (session ? table.last_error(session) : "");
  if (session)
    table.end(session);
  return nullptr;
}

Backend::Backend(const sluice_backend_compile &table, sluice_session *session, const sluice_target_options &options)
    : table(table), session(session), capacity(options.capacity) {
  sluice_target_info info = describe();
  llvm::raw_string_ostream out(target);
  for (const char *part :
       {makerOfKernels().data(), options.cpu, info.cpu, info.instructions, info.tuning, options.settings})
    out << (part ? part : "") << '\0';
  out << info.vector_bits << '\0' << capacity << '\0' << int(options.math);
}

Backend::~Backend() { table.end(session); }

/// Whether the table has this member: neither truncated nor null.
template <typename Member>
static bool has(const sluice_backend_compile &table, Member sluice_backend_compile::*member) {
  auto offset = reinterpret_cast<const char *>(&(table.*member)) - reinterpret_cast<const char *>(&table);
  return size_t(offset) < table.struct_size && table.*member;
}

StringRef Backend::makerOfKernels() const { return describe().host_kernels ? StringRef(kHostDevice) : name(); }

std::string Backend::reasonAgainst(Operation *op) {
  KernelView kernel(op);
  if (!kernel.unsaid().empty())
    return kernel.unsaid().str();
  if (!has(table, &sluice_backend_compile::supports) || table.supports(session, kernel.get()) == SLUICE_OK)
    return "";
  StringRef reason = table.last_error(session);
  return reason.empty() ? "it gives no reason" : reason.str();
}

bool Backend::canFuse(const KernelView &kernel) {
  if (!has(table, &sluice_backend_compile::can_fuse))
    return false;
  int fuses = 0;
  return kernel.unsaid().empty() && table.can_fuse(session, kernel.get(), &fuses) == SLUICE_OK && fuses;
}

bool Backend::proposesLayouts() const { return has(table, &sluice_backend_compile::propose_layout); }

FailureOr<LayoutProposal> Backend::proposeLayout(const KernelView &kernel, bool isResult, unsigned number) {
  auto *op = static_cast<Operation *>(kernel.get()->operation);
  auto type = cast<RankedTensorType>(isResult ? op->getResult(number).getType() : op->getOperand(number).getType());
  if (!proposesLayouts())
    return LayoutProposal{AffineMap::getMultiDimIdentityMap(type.getRank(), op->getContext()), /*required=*/true};
  if (!kernel.unsaid().empty())
    return op->emitError() << kernel.unsaid();
  sluice_layout_proposal proposed{};
  proposed.struct_size = sizeof(proposed);
  if (table.propose_layout(session, kernel.get(), isResult, number, &proposed) != SLUICE_OK)
    return op->emitError() << table.last_error(session);
  if (!proposed.cares)
    return LayoutProposal();
  ArrayRef<sluice_layout_dim> dims(proposed.layout, proposed.num_layout);
  if (std::string why = whyNoLayout(dims, type.getRank()); !why.empty())
    return op->emitError("backend '") << table.name << "' proposes no layout for "
                                      << (isResult ? "result " : "operand ") << number << " of '" << op->getName()
                                      << "': " << why;
  return LayoutProposal{layoutOf(dims, type.getRank(), op->getContext()), proposed.required != 0};
}

LaunchCost Backend::cost(ArrayRef<Operation *> ops, ValueRange inputs, ValueRange outputs) {
  Work work = workOf(ops, inputs, outputs, capacity);
  std::string kind = kindOf(ops).str();
  sluice_cost_estimate estimate{
      sizeof(estimate), {work.flops, work.flopsPerRow, work.bytes, work.bytesPerRow, /*lanes=*/1}, kind.c_str()};
  if (has(table, &sluice_backend_compile::cost)) {
    OpViews views;
    KernelView kernel(ops, outputs, views);
    sluice_cost_estimate better = estimate;
    if (kernel.unsaid().empty() && table.cost(session, kernel.get(), &better) == SLUICE_OK && better.kind)
      estimate = better;
  }
  const sluice_cost &known = estimate.work;
  return {{known.flops, known.flops_per_row, known.bytes, known.bytes_per_row}, estimate.kind};
}

/// The size of a stage in version 2.0.
static constexpr size_t kLeastStageBytes = offsetof(sluice_stage_info, rows_per_task) + sizeof(int64_t);

/// Whether all stages have the prefix that makes their names unique.
static bool areStagesOf(const sluice_launch_info &launch, StringRef symbol) {
  for (size_t number = 0; number < launch.num_stages; ++number)
    if (!StringRef(sluice_launch_info_stage_at(&launch, number)->symbol).starts_with(symbol))
      return false;
  return true;
}

FailureOr<sluice_launch_info> Backend::prepare(KernelOp kernel, StringRef name, StringRef symbol) {
  sluice_launch_info launch{};
  launch.struct_size = sizeof(launch);
  KernelView kernelView(kernel);
  if (!kernelView.unsaid().empty())
    return kernel.emitError() << kernelView.unsaid();
  if (!name.empty())
    kernelView.setName(name);
  kernelView.setSymbol(symbol);
  if (table.wants_bytecode)
    kernelView.addBytecode(kernel);
  sluice_status status = table.prepare(session, kernelView.get(), &launch);
  if (status != SLUICE_OK)
    return kernel.emitError(status == SLUICE_UNSUPPORTED ? "unsupported: " : "")
           << "backend '" << table.name << "' cannot make this kernel: " << table.last_error(session);
  if (launch.num_stages > 0 && launch.stage_size < kLeastStageBytes)
    return kernel.emitError("backend '") << table.name << "' gives stages of " << launch.stage_size
                                         << " bytes each, and one has at least " << kLeastStageBytes;
  if (!areStagesOf(launch, symbol))
    return kernel.emitError("backend '") << table.name << "' returned a stage of the kernel '" << symbol
                                         << "' whose symbol does not begin with '" << symbol << "'";
  return launch;
}

bool Backend::lowersKernels() const { return has(table, &sluice_backend_compile::lower_kernels); }

KernelKey Backend::keyOf(KernelOp kernel) const {
  Block &body = kernel.getBody().front();
  SmallVector<Operation *> ops(llvm::make_pointer_range(body.without_terminator()));
  KernelView view(kernel);
  KernelKey key = passes::keyOf(*view.get(), target + view.unsaid().str(), kindOf(ops));
  key.isOfHost = makerOfKernels() == kHostDevice;
  return key;
}

FailureOr<std::vector<std::string>> Backend::lowerKernels(ArrayRef<std::string> symbols, Location loc) {
  std::vector<sluice_blob> blobs(symbols.size());
  SmallVector<const char *> names;
  SmallVector<sluice_blob *> results;
  for (auto [symbol, blob] : llvm::zip_equal(symbols, blobs)) {
    blob.struct_size = sizeof(blob);
    names.push_back(symbol.c_str());
    results.push_back(&blob);
  }
  if (table.lower_kernels(session, names.data(), names.size(), results.data()) != SLUICE_OK)
    return emitError(loc, "backend '") << table.name << "': " << table.last_error(session);
  std::vector<std::string> objects;
  for (auto [symbol, blob] : llvm::zip_equal(symbols, blobs)) {
    if (blob.kind == SLUICE_BLOB_DEVICE)
      return emitError(loc, "backend '") << table.name << "' cannot lower the kernel '" << symbol
                                         << "': lower_kernels returned device code, not an object for the host";
    objects.emplace_back(static_cast<const char *>(blob.data), blob.kind == SLUICE_BLOB_NONE ? 0 : blob.bytes);
  }
  return objects;
}

/// The reason why the list of functions cannot be read; empty if it can.
static std::string whyNoNeeds(const sluice_blob &blob) {
  if (!blob.functions)
    return "";
  if (blob.function_size < sizeof(sluice_function_needs))
    return "an entry has " + std::to_string(blob.function_size) + " bytes instead of at least " +
           std::to_string(sizeof(sluice_function_needs));
  for (size_t number = 0; number < blob.num_functions; ++number) {
    const sluice_function_needs &its = *sluice_blob_function_at(&blob, number);
    if (!its.function || !its.target)
      return "number " + std::to_string(number) + " has no name or no target";
    if (std::min({its.registers, its.spilled_bytes, its.stack_bytes, its.shared_bytes}) < 0)
      return std::string("'") + its.function + "' needs a negative number of registers or bytes";
  }
  return "";
}

FailureOr<sluice_blob> Backend::lower(Location loc) {
  sluice_blob blob{};
  blob.struct_size = sizeof(blob);
  if (has(table, &sluice_backend_compile::lower) && table.lower(session, &blob) != SLUICE_OK)
    return emitError(loc, "backend '") << table.name << "': " << table.last_error(session);
  if (std::string why = whyNoNeeds(blob); !why.empty())
    return emitError(loc, "backend '") << table.name << "' lists the needs of its functions, but " << why;
  return blob;
}

std::vector<FunctionNeeds> Backend::needsIn(const sluice_blob &blob) const {
  std::vector<FunctionNeeds> all;
  for (size_t number = 0; blob.functions && number < blob.num_functions; ++number) {
    const sluice_function_needs &its = *sluice_blob_function_at(&blob, number);
    all.push_back(
        {table.name, its.function, its.target, its.registers, its.spilled_bytes, its.stack_bytes, its.shared_bytes});
  }
  return all;
}

sluice_target_info Backend::describe() const {
  sluice_target_info info{};
  info.struct_size = sizeof(info);
  table.describe(session, &info);
  return info;
}

} // namespace sluice::passes
