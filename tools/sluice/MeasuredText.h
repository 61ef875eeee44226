// What was measured of devices, for people and scripts.
#pragma once

#include "tools/compiler/placement/costs/Calibration.h"
#include "llvm/Support/raw_ostream.h"

namespace sluice::tool {

/// With what kernels cost on each of its devices; kinds that were not measured are told apart.
void printMeasured(llvm::raw_ostream &out, const compiler::ClockCalibration &clock,
                   llvm::ArrayRef<passes::DeviceCosts> costs);
llvm::json::Value toJson(const compiler::ClockCalibration &clock, llvm::ArrayRef<passes::DeviceCosts> costs);

} // namespace sluice::tool
