// Packs the kernels of a model: every distinct one of its training and inference on a device.
#pragma once

#include "sluice/compile_options.h"
#include "llvm/Support/Error.h"
#include <string>

namespace sluice::gpu_check {

/// Compiles the model in the file `graph`, packs it under a name, and returns the number of kernels.
llvm::Expected<size_t> packModel(const std::string &graph, const std::string &name, const std::string &folder,
                                 CompileOptions options);

} // namespace sluice::gpu_check
