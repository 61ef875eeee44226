// Targets as text and as ops at the top of a module.
#include "ir/Target.h"
#include "ir/Module.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace sluice::ir {

/// More devices than any machine has: bounds the ordinals in untrusted input.
static constexpr int64_t kMostOrdinal = 65535;

std::string acceleratorName(int64_t index) { return "acc" + std::to_string(index); }

std::string TargetDevice::spelling(int64_t replica) const {
  return name == kHostDevice ? name
                             : backend + ":" + std::to_string(replica == 0 ? ordinal : ofReplicas[size_t(replica - 1)]);
}

Target::Target() : list{{kHostDevice.str(), kHostDevice.str(), 0}} {}

const TargetDevice *Target::find(StringRef name) const {
  auto it = llvm::find_if(list, [&](const TargetDevice &device) { return device.name == name; });
  return it == list.end() ? nullptr : it;
}

std::string Target::str() const {
  std::string text = list.front().spelling();
  for (int64_t replica = 0; replica < replicaCount; ++replica)
    for (const TargetDevice &device : llvm::drop_begin(list))
      text += "," + device.spelling(replica);
  return text;
}

//===- text -------------------------------------------------------------------------------------------------------===//

static llvm::Error malformed(const Twine &message) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(), message);
}

static bool isBackendName(StringRef text) {
  auto isPart = [](char c) { return llvm::isAlnum(c) || c == '_' || c == '-'; };
  return !text.empty() && llvm::isAlpha(text.front()) && llvm::all_of(text, isPart);
}

/// "sim:1" or "sim"; the logical name is not known yet.
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
  return TargetDevice{"", backend.str(), ordinal, {}};
}

/// "sim:0-3" is sim:0, sim:1, sim:2 and sim:3; any other string is unchanged.
static llvm::Expected<SmallVector<std::string>> expandRange(StringRef part) {
  static constexpr int64_t kMostInRange = 4096;
  auto [backend, range] = part.split(':');
  auto [firstText, lastText] = range.split('-');
  int64_t first = 0, last = 0;
  if (firstText.getAsInteger(10, first) || lastText.getAsInteger(10, last))
    return SmallVector<std::string>{part.str()};
  if (last < first || last - first >= kMostInRange)
    return malformed("'" + part + "' is no range of devices, from a first to a last, at most " + Twine(kMostInRange));
  SmallVector<std::string> items;
  for (int64_t ordinal = first; ordinal <= last; ++ordinal)
    items.push_back((backend + ":" + Twine(ordinal)).str());
  return items;
}

llvm::Expected<Target> Target::parse(StringRef text) {
  Target target;
  bool hasHost = false;
  SmallVector<StringRef> ranges;
  text.split(ranges, ',');
  SmallVector<std::string> parts;
  for (StringRef range : ranges) {
    auto items = expandRange(range);
    if (!items)
      return items.takeError();
    llvm::append_range(parts, *items);
  }
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

llvm::Expected<Target> Target::shareAmong(int64_t replicas) const {
  int64_t listed = std::max<int64_t>(replicas, 1);
  if (accelerators() % listed != 0)
    return malformed("cannot divide the devices '" + str() + "' among " + Twine(replicas) +
                     " replicas: each needs the same number of accelerators, and there are " + Twine(accelerators()) +
                     "; list a multiple of " + Twine(replicas));
  Target shared = *this;
  shared.replicaCount = replicas;
  size_t each = size_t(accelerators() / listed);
  shared.list.truncate(1 + each);
  for (size_t i = 1 + each; i < list.size(); ++i) {
    TargetDevice &device = shared.list[1 + (i - 1) % each];
    if (list[i].backend != device.backend)
      return malformed("cannot use " + list[i].spelling() + " in replica " + Twine((i - 1) / each) +
                       ": replica 0 has " + device.spelling() +
                       " in its place; list devices of the same backends for each replica, one replica after another");
    device.ofReplicas.push_back(list[i].ordinal);
  }
  return shared;
}

//===- the module's devices ---------------------------------------------------------------------------------------===//

void Target::record(ModuleOp module) const {
  for (auto old : llvm::make_early_inc_range(module.getOps<DeviceOp>()))
    old.erase();
  OpBuilder builder = behindHead(module);
  for (auto [i, device] : llvm::enumerate(list))
    builder.create<DeviceOp>(module.getLoc(), device.name, device.backend, device.ordinal,
                             device.ofReplicas.empty() ? DenseI64ArrayAttr()
                                                       : builder.getDenseI64ArrayAttr(device.ofReplicas),
                             i > 0 && i == firstIndex);
}

/// The error in the device in row `index` of a table; empty if none.
static std::string problemOfRow(DeviceOp row, int64_t index, int64_t replicas) {
  int64_t ordinal = int64_t(row.getOrdinal());
  std::string name = index == 0 ? kHostDevice.str() : acceleratorName(index - 1);
  if (row.getName() != name)
    return "is called '" + row.getName().str() + "'; the " + (index == 0 ? "host" : "next") + " is '" + name + "'";
  if (!isBackendName(row.getBackend()) || (row.getBackend() == kHostDevice) != (index == 0))
    return "cannot be of the backend '" + row.getBackend().str() + "'";
  if (ordinal < 0 || ordinal > kMostOrdinal)
    return "has the number " + std::to_string(ordinal) + "; devices are numbered from 0 to " +
           std::to_string(kMostOrdinal);
  ArrayRef<int64_t> others = row.getReplicas().value_or(ArrayRef<int64_t>());
  if (int64_t(others.size()) != (index == 0 || replicas == kReplicasOfLaunch ? 0 : replicas - 1))
    return "lists " + std::to_string(others.size()) + " more replicas, but there are " + std::to_string(replicas) +
           " in all";
  if (llvm::any_of(others, [](int64_t other) { return other < 0 || other > kMostOrdinal; }))
    return "has a number of a replica that is outside of 0 to " + std::to_string(kMostOrdinal);
  return "";
}

FailureOr<Target> Target::of(ModuleOp module) {
  Target target;
  auto rows = module.getOps<DeviceOp>();
  if (rows.empty()) {
    target.replicaCount = getReplicas(module);
    return target;
  }
  target.list.clear();
  target.replicaCount = getReplicas(module);
  for (DeviceOp row : rows) {
    if (std::string problem = problemOfRow(row, int64_t(target.list.size()), target.replicaCount); !problem.empty())
      return row.emitOpError(problem);
    if (row.getFirst() && target.firstIndex != 0)
      return row.emitOpError("is the second device that comes first");
    if (row.getFirst())
      target.firstIndex = target.list.size();
    target.list.push_back({row.getName().str(), row.getBackend().str(), int64_t(row.getOrdinal()),
                           llvm::to_vector(row.getReplicas().value_or(ArrayRef<int64_t>()))});
  }
  return target;
}

} // namespace sluice::ir
