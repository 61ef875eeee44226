// Names of merged collectives in messages, traces and reports.
#pragma once

#include "ir/Dialect.h"
#include <string>

namespace sluice::passes {

/// "gradient of fc1.weight", "gradients of fc2.bias to conv1.weight (6)", "statistics of bn1 to bn7", "loss and
/// accuracy": the subjects, in order. A collective without a subject is named after the launch that produces its value.
std::string nameOf(llvm::ArrayRef<ir::CollectiveOp> bucket);

} // namespace sluice::passes
