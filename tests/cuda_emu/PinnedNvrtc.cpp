#include "tests/cuda_emu/PinnedNvrtc.h"

#include <cstdlib>
#include <filesystem>

namespace sluice::test {

/// Of the wheel in the tests' Python; empty if there is none.
static std::string findInVenv() {
  std::error_code error;
  for (std::filesystem::directory_iterator python(SLUICE_VENV "/lib", error), end; !error && python != end;
       python.increment(error)) {
    std::filesystem::path library = python->path() / "site-packages/nvidia/cu13/lib/libnvrtc.so.13";
    if (std::filesystem::exists(library))
      return library.string();
  }
  return "";
}

llvm::Expected<cuda::Nvrtc> loadPinnedNvrtc() {
  if (std::string path = findInVenv(); !path.empty())
    setenv("SLUICE_NVRTC", path.c_str(), /*replace=*/0);
  return cuda::Nvrtc::load();
}

} // namespace sluice::test
