// The device on which an output of the program stays. By default outputs are on the host.
#pragma once

#include "ir/Dialect.h"

namespace sluice::ir {

/// On `sluice.output`: the name of the device.
inline constexpr llvm::StringLiteral kOutputDeviceAttr = "sluice.on";
/// On `sluice.return`: the devices of all outputs, in their order. Absent: all are on the host.
inline constexpr llvm::StringLiteral kOutputDevicesAttr = "sluice.on";

/// The device of output `number`.
mlir::StringAttr getOutputDevice(ReturnOp results, unsigned number);

/// The first input or output of an entry point that is on an accelerator, for example "the input 'x'"; empty if there
/// is none. Before placement, other inputs have no device.
std::string describeResident(EntryOp entry);

} // namespace sluice::ir
