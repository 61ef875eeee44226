// The NVRTC that tests compile kernels with: that of tests/requirements.txt if tools/scripts/make-venv has installed
// it, else the user's default.
#pragma once

#include "backends/cuda/compiler/nvrtc/Nvrtc.h"

namespace sluice::test {

llvm::Expected<cuda::Nvrtc> loadPinnedNvrtc();

} // namespace sluice::test
