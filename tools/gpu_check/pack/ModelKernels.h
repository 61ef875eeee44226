// Packs the kernels of a model: every distinct one that the compiler makes of its training and inference for a device,
// with what the reference interpreter, in double precision, makes of drawn operands, and the error that `sluice verify`
// allows of each element.
#pragma once

#include "passes/backend/Backend.h"
#include "llvm/Support/Error.h"
#include <string>

namespace sluice::gpu_check {

struct PackOptions {
  std::string name;                 ///< of the pack
  std::string device = "cuda:0";    ///< that the kernels are made for
  passes::BackendSettings settings; ///< of the backends
};

/// Compiles the model in the file `graph` and writes `<folder>/<name>.json` and `.bin`; gives the number of kernels.
llvm::Expected<size_t> packModel(const std::string &graph, const std::string &folder, const PackOptions &options);

} // namespace sluice::gpu_check
