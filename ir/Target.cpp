// Targets as text and as ops at the top of a module.
#include "ir/Target.h"
#include "ir/Module.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace sluice::ir {

/// More devices than any machine has, so that ordinals stay small numbers whoever wrote them.
static constexpr int64_t kMostOrdinal = 65535;

std::string acceleratorName(int64_t index) { return "acc" + std::to_string(index); }

std::string TargetDevice::spelling() const {
  return name == kHostDevice ? name : backend + ":" + std::to_string(ordinal);
}

Target::Target() : list{{kHostDevice.str(), kHostDevice.str(), 0}} {}

const TargetDevice *Target::find(StringRef name) const {
  auto it = llvm::find_if(list, [&](const TargetDevice &device) { return device.name == name; });
  return it == list.end() ? nullptr : it;
}

std::string Target::str() const {
  return llvm::join(llvm::map_range(list, [](const TargetDevice &device) { return device.spelling(); }), ",");
}

//===- text -------------------------------------------------------------------------------------------------------===//

static llvm::Error malformed(const Twine &message) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(), message);
}

static bool isBackendName(StringRef text) {
  auto isPart = [](char c) { return llvm::isAlnum(c) || c == '_' || c == '-'; };
  return !text.empty() && llvm::isAlpha(text.front()) && llvm::all_of(text, isPart);
}

/// "sim:1" or "sim"; the name is not known yet.
static llvm::Expected<TargetDevice> parseDevice(StringRef spelling) {
  auto [backend, digits] = spelling.split(':');
  int64_t ordinal = 0;
  bool hasOrdinal = spelling.contains(':');
  bool isNumber = !hasOrdinal || (!digits.empty() && llvm::all_of(digits, llvm::isDigit));
  if (!isBackendName(backend) || !isNumber)
    return malformed("'" + spelling + "' names no device; a backend and a number are expected, as in cpu,sim:0,sim:1");
  if (hasOrdinal && (digits.getAsInteger(10, ordinal) || ordinal > kMostOrdinal))
    return malformed("'" + spelling + "': devices are numbered from 0 to " + Twine(kMostOrdinal));
  if (backend == "gpu")
    return malformed("'" + spelling +
                     "' names no backend; gpu(0) is the first accelerator of the list, such as cuda:0");
  return TargetDevice{"", backend.str(), ordinal};
}

llvm::Expected<Target> Target::parse(StringRef text) {
  Target target;
  bool hasHost = false;
  SmallVector<StringRef> parts;
  text.split(parts, ',');
  for (auto [i, part] : llvm::enumerate(parts)) {
    llvm::Expected<TargetDevice> device = parseDevice(part);
    if (!device)
      return device.takeError();
    bool isHost = device->backend == kHostDevice;
    auto isSame = [&](const TargetDevice &known) { return known.spelling() == device->spelling(); };
    device->name = isHost ? kHostDevice.str() : acceleratorName(target.accelerators());
    if (isHost ? hasHost : llvm::any_of(target.list, isSame))
      return malformed("'" + part + "' is listed twice in '" + text + "'");
    hasHost |= isHost;
    if (!isHost)
      target.list.push_back(*device);
    if (i == 0)
      target.firstIndex = target.list.size() - 1;
  }
  return target;
}

//===- the module's devices ---------------------------------------------------------------------------------------===//

void Target::record(ModuleOp module) const {
  for (auto old : llvm::make_early_inc_range(module.getOps<DeviceOp>()))
    old.erase();
  OpBuilder builder = behindHead(module);
  for (auto [i, device] : llvm::enumerate(list))
    builder.create<DeviceOp>(module.getLoc(), device.name, device.backend, device.ordinal, i > 0 && i == firstIndex);
}

/// What is wrong with the device in row `index` of a table; empty if nothing is.
static std::string problemOfRow(DeviceOp row, int64_t index) {
  int64_t ordinal = int64_t(row.getOrdinal());
  std::string name = index == 0 ? kHostDevice.str() : acceleratorName(index - 1);
  if (row.getName() != name)
    return "is called '" + row.getName().str() + "'; the " + (index == 0 ? "host" : "next") + " is '" + name + "'";
  if (!isBackendName(row.getBackend()) || (row.getBackend() == kHostDevice) != (index == 0))
    return "cannot be of the backend '" + row.getBackend().str() + "'";
  if (ordinal < 0 || ordinal > kMostOrdinal)
    return "has the number " + std::to_string(ordinal) + "; devices are numbered from 0 to " +
           std::to_string(kMostOrdinal);
  return "";
}

FailureOr<Target> Target::of(ModuleOp module) {
  Target target;
  auto rows = module.getOps<DeviceOp>();
  if (rows.empty())
    return target;
  target.list.clear();
  for (DeviceOp row : rows) {
    if (std::string problem = problemOfRow(row, int64_t(target.list.size())); !problem.empty())
      return row.emitOpError(problem);
    if (row.getFirst() && target.firstIndex != 0)
      return row.emitOpError("is the second device that comes first");
    if (row.getFirst())
      target.firstIndex = target.list.size();
    target.list.push_back({row.getName().str(), row.getBackend().str(), int64_t(row.getOrdinal())});
  }
  return target;
}

} // namespace sluice::ir
