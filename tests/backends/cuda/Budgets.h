// Resource limits of kernels: the registers of a multiprocessor hold the blocks that are meant to run at once, without
// spilling.
#pragma once

#include "backends/cuda/compiler/kernels/GridKernel.h"
#include "backends/cuda/compiler/nvrtc/Nvrtc.h"
#include <algorithm>
#include <gtest/gtest.h>
#include <map>

namespace sluice::cuda::test {

/// Of code that has these functions and no others. The largest tiles of products hold 64 sums in each of 256 threads, twice
/// where these have several chains: one block fills a multiprocessor, by their GridFunction::blocks.
inline void expectBudgets(const DeviceCode &code, const std::vector<GridFunction> &functions) {
  constexpr int64_t kRegisters = 64 << 10, kShared = 48 << 10;
  constexpr int64_t kGranule = 8,
                    kThreads = 128; // allocation granularity of a thread's registers; the minimum of a block
  constexpr int64_t kSharedOfAll = 163 << 10, kSharedOfNobody = 1 << 10; // sm_80's, and the bytes reserved per block
  std::map<std::string, GridFunction> known;
  for (const GridFunction &function : functions)
    known[function.name] = function;
  EXPECT_EQ(code.kernels.size(), functions.size());
  for (const KernelResources &kernel : code.kernels) {
    auto function = known.find(kernel.name);
    ASSERT_NE(function, known.end()) << kernel.name;
    auto [name, tasks, rowsPerTask, threads, blocks, sharedBytes, followsLibrary] = function->second;
    EXPECT_EQ(kernel.spillStores + kernel.spillLoads, 0) << name;
    int64_t given = (kernel.registers + kGranule - 1) / kGranule * kGranule;
    EXPECT_LE(given * std::max(threads, kThreads) * blocks, kRegisters) << name;
    EXPECT_LE(kernel.registers, threads > kWarp ? 255 : 128) << name;
    EXPECT_LE(kernel.shared, kShared) << name;
    EXPECT_LE((kernel.shared + sharedBytes + kSharedOfNobody) * blocks, kSharedOfAll + kSharedOfNobody) << name;
  }
}

} // namespace sluice::cuda::test
