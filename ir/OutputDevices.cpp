#include "ir/OutputDevices.h"

using namespace mlir;

namespace sluice::ir {

StringAttr getOutputDevice(ReturnOp results, unsigned number) {
  if (auto devices = results->getAttrOfType<ArrayAttr>(kOutputDevicesAttr))
    return cast<StringAttr>(devices[number]);
  return StringAttr::get(results.getContext(), kHostDevice);
}

static bool isOnAccelerator(StringAttr device) { return device && device != kHostDevice; }

std::string describeResident(EntryOp entry) {
  for (auto [name, input] : llvm::zip_equal(entry.getInputs().getAsValueRange<StringAttr>(), entry.getInputArguments()))
    if (isOnAccelerator(getDevice(input.getType())))
      return ("the input '" + name + "'").str();
  for (auto [number, name] : llvm::enumerate(entry.getOutputs().getAsValueRange<StringAttr>()))
    if (isOnAccelerator(getOutputDevice(entry.getReturn(), number)))
      return ("the output '" + name + "'").str();
  return "";
}

} // namespace sluice::ir
