// Targets as text and as a table of the module.
#include "ir/Target.h"
#include "ir/Dialect.h"
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

//===- the module's table -----------------------------------------------------------------------------------------===//

void Target::record(ModuleOp module) const {
  Builder builder(module.getContext());
  SmallVector<Attribute> table;
  for (const TargetDevice &device : list)
    table.push_back(builder.getDictionaryAttr({
        builder.getNamedAttr("name", builder.getStringAttr(device.name)),
        builder.getNamedAttr("backend", builder.getStringAttr(device.backend)),
        builder.getNamedAttr("ordinal", builder.getI64IntegerAttr(device.ordinal)),
    }));
  module->setAttr(kDevicesAttr, builder.getArrayAttr(table));
  module->setAttr(kFirstDeviceAttr, builder.getStringAttr(first().name));
}

/// The device in row `index` of a table, or nothing if it is malformed.
static std::optional<TargetDevice> readRow(Attribute row, int64_t index) {
  auto fields = dyn_cast<DictionaryAttr>(row);
  auto name = fields ? fields.getAs<StringAttr>("name") : StringAttr();
  auto backend = fields ? fields.getAs<StringAttr>("backend") : StringAttr();
  auto ordinal = fields ? fields.getAs<IntegerAttr>("ordinal") : IntegerAttr();
  if (!name || !backend || !ordinal || !ordinal.getType().isInteger(64) || !isBackendName(backend))
    return std::nullopt;
  if (ordinal.getInt() < 0 || ordinal.getInt() > kMostOrdinal || (backend == kHostDevice) != (index == 0))
    return std::nullopt;
  if (name.getValue() != (index == 0 ? kHostDevice.str() : acceleratorName(index - 1)))
    return std::nullopt;
  return TargetDevice{name.str(), backend.str(), ordinal.getInt()};
}

FailureOr<Target> Target::of(ModuleOp module) {
  Target target;
  Attribute written = module->getAttr(kDevicesAttr);
  if (!written)
    return target;
  auto table = dyn_cast<ArrayAttr>(written);
  target.list.clear();
  for (auto [i, row] : llvm::enumerate(table ? table.getValue() : ArrayRef<Attribute>())) {
    std::optional<TargetDevice> device = readRow(row, int64_t(i));
    if (!device)
      return module.emitError("row ") << i << " of " << kDevicesAttr << " is malformed: " << row;
    target.list.push_back(*device);
  }
  if (target.list.empty())
    return module.emitError() << kDevicesAttr << " is no list of devices: " << written;
  Attribute first = module->getAttr(kFirstDeviceAttr);
  auto name = dyn_cast_or_null<StringAttr>(first);
  const TargetDevice *device = name ? target.find(name) : first ? nullptr : &target.list.front();
  if (!device)
    return module.emitError() << kFirstDeviceAttr << " names no device of the target: " << first;
  target.firstIndex = device - target.list.begin();
  return target;
}

} // namespace sluice::ir
