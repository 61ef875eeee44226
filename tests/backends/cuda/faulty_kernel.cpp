// A kernel with a fault planted, run in emulated threads: `cuda_faulty_kernel FAULT`. Its test (sanitized_test.py) watches it
// with sanitizers. "none" plants nothing.
#include "tests/backends/cuda/GridRun.h"

#include <cstdio>
#include <gtest/gtest.h>
#include <regex>

using namespace sluice;
using namespace sluice::cuda;
using namespace sluice::cuda::test;

namespace {

/// A string in the kernel's text, and the replacement of its first occurrence.
struct Fault {
  const char *name, *pattern, *replacement;
};
constexpr Fault kFaults[] = {
    {"missing_barrier", "__syncthreads\\(\\);", ""},
    {"divergent_barrier", "__syncthreads\\(\\);", "if (threadIdx.x % 32 != 5) __syncthreads();"},
    {"copies_not_awaited", "awaitCopies<2>", "awaitCopies<3>"},
    {"stage_overwritten", "stage = \\(unsigned\\)\\(step \\+ 3\\) % 4", "stage = (unsigned)(step + 4) % 4"},
    {"small_shared_array", "(__shared__ float \\w+)\\[(\\d+)\\]", "$1[$2 - 1]"},
};

std::string plant(const std::string &fault, const std::string &text) {
  for (const Fault &known : kFaults) {
    if (fault != known.name)
      continue;
    std::string planted =
        std::regex_replace(text, std::regex(known.pattern), known.replacement, std::regex_constants::format_first_only);
    EXPECT_NE(planted, text) << "there is no place for " << fault;
    return planted;
  }
  return text;
}

std::string fault;

} // namespace

TEST(Faulty, Kernel) {
  GridRun product("product", {"tensor<?x70xf32>", "tensor<70x90xf32>"},
                  "%a = sluice.einsum \"ab,bc->ac\" %0, %1 : (tensor<?x70xf32>, tensor<70x90xf32>) -> tensor<?x90xf32>",
                  "%a : tensor<?x90xf32>");
  GridRun halves("halves", {"tensor<?x256xbf16>", "tensor<256x32xbf16>"},
                 "%a = sluice.einsum \"ab,bc->ac\" %0, %1 : (tensor<?x256xbf16>, tensor<256x32xbf16>) -> "
                 "tensor<?x32xbf16>",
                 "%a : tensor<?x32xbf16>");
  GridRun wide("wide", {"tensor<?x256xf32>"}, "%a = sluice.neg %0 : (tensor<?x256xf32>) -> tensor<?x256xf32>",
               "%a : tensor<?x256xf32>");
  sluice::test::EmulatedLibrary library;
  library.compile(kPrelude + plant(fault, product.kernel.text + halves.kernel.text) + wide.kernel.text +
                  product.callers() + halves.callers() + wide.callers());
  product.randomize(-2, 2), halves.randomize(-2, 2), wide.randomize(-2, 2);
  bool hasRowTooMany = fault == "row_too_many";
  product.runOn(library, kCapacity + hasRowTooMany, product.begin(kCapacity, 0));
  halves.run(library, kCapacity);
  std::vector<void *> buffers = wide.begin(/*rows=*/3, 0);
  if (fault == "misaligned_load")
    buffers[0] = static_cast<char *>(buffers[0]) + sizeof(float);
  wide.runOn(library, /*rows=*/3, buffers);
  std::printf("ran to its end\n");
}

int main(int argc, char **argv) {
  testing::InitGoogleTest(&argc, argv);
  fault = argc > 1 ? argv[1] : "none";
  return RUN_ALL_TESTS();
}
