// The NVRTC that tests compile kernels with: that of tests/requirements.txt where tools/scripts/make-venv has put it,
// else what a user's would be.
#pragma once

#include "backends/cuda/compiler/nvrtc/Nvrtc.h"

namespace sluice::test {

llvm::Expected<cuda::Nvrtc> loadPinnedNvrtc();

} // namespace sluice::test
