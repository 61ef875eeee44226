#include "passes/backend/DeviceBackends.h"
#include "ir/Module.h"
#include "passes/driver/OptionValues.h"
#include "runtime/plan/Plan.h"

using namespace mlir;
using namespace sluice::ir;

namespace sluice::passes {

static const sluice_backend_compile *findTable(ArrayRef<const sluice_backend_compile *> tables, StringRef name) {
  auto it = llvm::find_if(tables, [&](const sluice_backend_compile *table) { return table->name == name; });
  return it == tables.end() ? nullptr : *it;
}

/// The alignment of buffers on the backend's devices.
static FailureOr<int64_t> alignmentOf(const Backend &backend, Location loc) {
  constexpr int64_t kMost = runtime::mostAlignment;
  static_assert(kLeastAlignment == runtime::leastAlignment);
  int64_t bytes = int64_t(backend.describe().alignment);
  if (bytes == 0)
    return kLeastAlignment;
  if (bytes < kLeastAlignment || bytes > kMost || !llvm::isPowerOf2_64(uint64_t(bytes)))
    return emitError(loc, "the backend '")
           << backend.name() << "' wants buffers at multiples of " << bytes << " bytes, which is no power of two from "
           << kLeastAlignment << " to " << kMost;
  return bytes;
}

std::unique_ptr<DeviceBackends> DeviceBackends::create(ModuleOp module, ArrayRef<const sluice_backend_compile *> tables,
                                                       const CompileOptions &options, const std::string &kernelTexts) {
  FailureOr<Target> target = Target::of(module);
  if (failed(target))
    return nullptr;
  std::unique_ptr<DeviceBackends> result(new DeviceBackends);
  result->devices = *target;
  result->services = {sizeof(sluice_compile_services), findTable(tables, kHostDevice)};
  sluice_target_options its{sizeof(its),
                            options.target_cpu.c_str(),
                            getCapacity(module),
                            &result->services,
                            "",
                            kernelTexts.empty() ? nullptr : kernelTexts.c_str(),
                            mathOf(options)};
  llvm::StringMap<Backend *> byName;
  for (auto [number, device] : llvm::enumerate(target->devices())) {
    Backend *&backend = byName[device.backend];
    if (!backend) {
      const sluice_backend_compile *table = findTable(tables, device.backend);
      if (!table)
        return emitError(module.getLoc(), "unsupported: there is no backend '")
                   << device.backend << "' for the device " << device.name,
               nullptr;
      std::string settings = settingsOf(options, device.backend);
      its.settings = settings.c_str();
      std::unique_ptr<Backend> begun = Backend::create(*table, its, module.getLoc());
      if (!begun)
        return nullptr;
      backend = begun.get();
      result->backends.push_back(std::move(begun));
    }
    result->byDevice[device.name] = backend;
    FailureOr<int64_t> alignment = alignmentOf(*backend, module.getLoc());
    if (failed(alignment))
      return nullptr;
    result->devices.setAlignment(number, *alignment);
  }
  return result;
}

bool DeviceBackends::roundsAsHost(StringRef device) const {
  const char *its = of(device).describe().instructions, *hosts = host().describe().instructions;
  return &of(device) != &host() && its && hosts && StringRef(its) == hosts;
}

/// Builds the op's formula; false if it has none.
static bool buildFormula(Operation *op, Block &formula) {
  auto composite = dyn_cast<CompositeOp>(op);
  OpBuilder builder(op->getContext());
  builder.setInsertionPointToEnd(&formula);
  return composite && !composite.expand(builder).empty();
}

static bool isFormula(Operation *op) {
  Block formula;
  return buildFormula(op, formula);
}

std::string DeviceBackends::reasonAgainstKernel(Operation *op, StringRef device) const {
  if (!isCompute(op) || isCrossing(op))
    return "";
  std::string reason = of(device).reasonAgainst(op);
  if (!isa<CompositeOp>(op) || !roundsAsHost(device))
    return reason;
  bool hostHasKernel = host().reasonAgainst(op).empty();
  if (hostHasKernel == reason.empty() || !isFormula(op))
    return reason;
  return hostHasKernel
             ? reason + "; the formula in its place would give other bits than on the host, which has a kernel for it"
             : "its kernel would give other bits than on the host, which computes the formula in its place";
}

std::string DeviceBackends::reasonAgainst(Operation *op, StringRef device) const {
  std::string reason = reasonAgainstKernel(op, device);
  Block formula;
  if (reason.empty() || !buildFormula(op, formula) || (roundsAsHost(device) && host().reasonAgainst(op).empty()))
    return reason;
  reason.clear();
  for (Operation &part : formula)
    if (reason.empty())
      reason = reasonAgainst(&part, device);
  return reason;
}

Backend &DeviceBackends::of(Operation *op) const {
  Type type = op->getNumResults() ? op->getResult(0).getType() : op->getOperand(0).getType();
  return of(getDevice(type).getValue());
}

std::string DeviceBackends::reasonAgainstRelayout(Value value, Type type) const {
  OpBuilder builder(value.getContext());
  OwningOpRef<RelayoutOp> asked = builder.create<RelayoutOp>(value.getLoc(), type, value);
  return of(*asked).reasonAgainst(*asked);
}

} // namespace sluice::passes
