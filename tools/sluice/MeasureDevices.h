// `sluice devices --measure`
#pragma once

#include "tools/compiler/placement/costs/Measure.h"
#include "tools/sluice/Commands.h"

namespace sluice::tool {

void addMeasureFlags(CLI::App &command, compiler::MeasureRequest &request);

/// Measures, saves the measurements for this machine, and prints the rates.
llvm::Error measureAndKeep(compiler::MeasureRequest request, const Talk &talk);

} // namespace sluice::tool
