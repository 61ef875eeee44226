// Packs the kernels of a model: every distinct one of its training and inference on a device.
#pragma once

#include "passes/backend/Backend.h"
#include "llvm/Support/Error.h"
#include <string>

namespace sluice::gpu_check {

/// Compiles the model in the file `graph` in a precision ("": its own), packs it under a name, and returns the number
/// of kernels.
llvm::Expected<size_t> packModel(const std::string &graph, const std::string &precision, const std::string &name,
                                 const std::string &folder, const passes::BackendSettings &settings);

} // namespace sluice::gpu_check
