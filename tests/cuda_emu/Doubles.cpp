#include "tests/cuda_emu/Doubles.h"

#include <cstdlib>
#include <dlfcn.h>
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

int64_t cudaCopies(const char *kind) {
  void *driver = dlopen(SLUICE_CUDA_EMU_DRIVER, RTLD_NOW | RTLD_LOCAL);
  return reinterpret_cast<int64_t (*)(const char *)>(dlsym(driver, "cuda_emu_copies"))(kind);
}

} // namespace sluice::test
