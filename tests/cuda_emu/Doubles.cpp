#include "tests/cuda_emu/Doubles.h"

#include <cstdlib>
#include <string>

namespace sluice::test {

void useCudaDoubles(int devices, int seed) {
  setenv("SLUICE_NVRTC", SLUICE_CUDA_EMU_NVRTC, 1);
  setenv("SLUICE_CUDA_DRIVER", SLUICE_CUDA_EMU_DRIVER, 1);
  setenv("SLUICE_CUBLASLT", SLUICE_CUDA_EMU_DRIVER, 1);
  setenv("SLUICE_NCCL", SLUICE_CUDA_EMU_DRIVER, 1);
  setenv("CUDA_EMU_DEVICES", std::to_string(devices).c_str(), 1);
  setenv("CUDA_EMU_SEED", std::to_string(seed).c_str(), 1);
}

} // namespace sluice::test
