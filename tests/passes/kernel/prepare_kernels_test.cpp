// Tests that a prepared kernel is not prepared again.
#include "backends/cpu/compiler/Plugin.h"
#include "ir/Dialect.h"
#include "mlir/Parser/Parser.h"
#include "passes/Passes.h"
#include "passes/backend/DeviceBackends.h"
#include "passes/kernel/PreparedKernels.h"
#include "tests/ir/op_instance.h"
#include <gtest/gtest.h>

using namespace mlir;
using namespace sluice::ir;
using namespace sluice::passes;

namespace {

constexpr const char *kSameOnBoth = R"(module @both {
  sluice.device "cpu" = "cpu" 0
  sluice.device "acc0" = "sim" 0
  sluice.entry @predict ["x"] -> ["y", "z"] (%x: tensor<2xf32>) {
    %y = sluice.exp %x : (tensor<2xf32>) -> tensor<2xf32>
    %z = sluice.exp %x {sluice.pin = "acc0"} : (tensor<2xf32>) -> tensor<2xf32>
    sluice.return %y, %z : tensor<2xf32>, tensor<2xf32>
  }
})";

int prepared = 0;

/// A variant of the CPU backend that counts the kernels that it prepares.
sluice_backend_compile counting(const char *name) {
  sluice_backend_compile table = *sluice_cpu_backend_compile();
  table.name = name;
  table.prepare = [](sluice_session *session, const sluice_kernel_view *kernel, sluice_launch_info *launch) {
    ++prepared;
    return sluice_cpu_backend_compile()->prepare(session, kernel, launch);
  };
  return table;
}

/// The backends of the functions of two equal kernels, one of them on the host; `prepared` counts the preparations.
std::vector<std::string> prepareBoth(const sluice_backend_compile &sim) {
  prepared = 0;
  auto module = parseSourceString<ModuleOp>(kSameOnBoth, &sluice::test::getContext());
  EXPECT_TRUE(succeeded(placeValues(*module)) && succeeded(insertCopies(*module)));
  deduplicateCopies(*module);
  sluice_backend_compile cpu = counting("cpu");
  auto backends = DeviceBackends::create(*module, {&cpu, &sim}, {});
  fuseKernels(*module, *backends, /*fuse=*/false);
  PreparedKernels kept;
  EXPECT_TRUE(succeeded(prepareKernels(*module, *backends, &kept)));
  std::vector<std::string> names;
  for (auto function : module->getOps<FunctionOp>())
    names.push_back(function.getBackend().str());
  return names;
}

} // namespace

TEST(PrepareKernels, WhatTheHostMakesIsMadeOnceForAll) {
  sluice_backend_compile sim = counting("sim");
  sim.describe = [](sluice_session *session, sluice_target_info *info) {
    info->host_kernels = 1;
    return sluice_cpu_backend_compile()->describe(session, info);
  };
  EXPECT_EQ(prepareBoth(sim), (std::vector<std::string>{"cpu", "sim"}));
  EXPECT_EQ(prepared, 1);
}

TEST(PrepareKernels, OthersMakeTheirOwn) {
  EXPECT_EQ(prepareBoth(counting("sim")), (std::vector<std::string>{"cpu", "sim"}));
  EXPECT_EQ(prepared, 2);
}
