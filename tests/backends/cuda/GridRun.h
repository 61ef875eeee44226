// A kernel as CUDA C++, and what runs it in emulated threads of several blocks.
#pragma once

#include "backends/cuda/compiler/GridKernel.h"
#include "tests/backends/KernelCase.h"
#include "tests/cuda_emu/EmulatedLibrary.h"

namespace sluice::cuda {

class GridRun : public test::KernelCase {
public:
  static constexpr int64_t kCapacity = 7;

  /// Of a kernel whose functions' names begin with `name`; types may have the layouts #nhwc, and #panels of 32 columns. A
  /// text that is wrong is a test's failure.
  GridRun(const std::string &name, const std::vector<std::string> &operands, const std::string &body,
          const std::string &yields);

  /// The text of what launches the functions, to stand behind theirs.
  std::string callers();
  /// Launches those of a library made of both, on new buffers.
  void run(const test::EmulatedLibrary &library, int64_t rows);
  void runOn(const test::EmulatedLibrary &library, int64_t rows, std::vector<void *> buffers);
  using KernelCase::begin;

  GridKernel kernel;
};

} // namespace sluice::cuda
