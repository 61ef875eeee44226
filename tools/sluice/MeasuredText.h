// Prints the measurements of devices, for people and scripts.
#pragma once

#include "tools/compiler/placement/costs/Calibration.h"
#include "llvm/Support/raw_ostream.h"

namespace sluice::tool {

/// With the cost of kernels on each device; kinds without measurements are listed separately.
void printMeasured(llvm::raw_ostream &out, const compiler::ClockCalibration &clock,
                   llvm::ArrayRef<passes::DeviceCosts> costs);
llvm::json::Value toJson(const compiler::ClockCalibration &clock, llvm::ArrayRef<passes::DeviceCosts> costs);

} // namespace sluice::tool
