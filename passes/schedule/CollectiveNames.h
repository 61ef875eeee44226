// What messages, traces and reports call collectives that are done as one.
#pragma once

#include "ir/Dialect.h"
#include <string>

namespace sluice::passes {

/// "gradient of fc1.weight", "gradients of fc2.bias to conv1.weight (6)", "statistics of bn1 to bn7", "loss and
/// accuracy": by what each of them is of, in their order. One of which nobody has said that is called after the launch
/// that makes its value.
std::string nameOf(llvm::ArrayRef<ir::CollectiveOp> bucket);

} // namespace sluice::passes
