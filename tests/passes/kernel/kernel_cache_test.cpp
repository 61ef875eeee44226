// The cache of kernels: its bound, its order, and which kernels of several programs share an entry.
#include "backends/cpu/compiler/Plugin.h"
#include "ir/text/DiagnosticText.h"
#include "mlir/Parser/Parser.h"
#include "passes/driver/Pipeline.h"
#include "passes/kernel/KernelFolder.h"
#include "tests/TemporaryFolder.h"
#include "tests/ir/op_instance.h"
#include <gmock/gmock.h>

using namespace mlir;
using namespace sluice::passes;
using testing::HasSubstr;

namespace {

std::shared_ptr<const CachedKernel> kernelOf(size_t bytes) {
  sluice_launch_info info{};
  return std::make_shared<const CachedKernel>(CachedKernel{KernelLaunch(info, "kind"), std::string(bytes, 'x')});
}

} // namespace

TEST(KernelCache, CountsHitsMissesAndBytes) {
  KernelCache cache;
  EXPECT_EQ(cache.find("a"), nullptr);
  cache.add("a", kernelOf(100));
  ASSERT_NE(cache.find("a"), nullptr);
  EXPECT_EQ(cache.find("a")->object.size(), 100u);
  KernelCache::Counts counts = cache.counts();
  EXPECT_EQ(counts.hits, 2u);
  EXPECT_EQ(counts.misses, 1u);
  EXPECT_EQ(counts.kernels, 1u);
  EXPECT_EQ(counts.bytes, kernelOf(100)->bytes());
}

TEST(KernelCache, RemovesTheLeastRecentlyUsed) {
  KernelCache cache(2 * kernelOf(1000)->bytes());
  cache.add("a", kernelOf(1000));
  cache.add("b", kernelOf(1000));
  EXPECT_NE(cache.find("a"), nullptr);
  cache.add("c", kernelOf(1000));
  EXPECT_NE(cache.find("a"), nullptr);
  EXPECT_EQ(cache.find("b"), nullptr);
  EXPECT_NE(cache.find("c"), nullptr);
  EXPECT_EQ(cache.counts().kernels, 2u);
}

TEST(KernelCache, HoldsNoKernelThatExceedsItsBound) {
  KernelCache cache(1000);
  cache.add("a", kernelOf(2000));
  EXPECT_EQ(cache.find("a"), nullptr);
  EXPECT_EQ(cache.counts().bytes, 0u);
}

TEST(KernelCache, KeepsTheFirstOfEqualKernels) {
  KernelCache cache;
  std::shared_ptr<const CachedKernel> first = kernelOf(10);
  cache.add("a", first);
  cache.add("a", kernelOf(10));
  EXPECT_EQ(cache.find("a"), first);
  EXPECT_EQ(cache.counts().bytes, first->bytes());
}

namespace {

/// Compiles programs with a cache. Counts the kernels that the CPU backend prepares and lowers.
class CachedCompilation : public testing::Test {
protected:
  CachedCompilation() {
    prepared = lowered = 0;
    cpu = *sluice_cpu_backend_compile();
    cpu.prepare = [](sluice_session *session, const sluice_kernel_view *kernel, sluice_launch_info *launch) {
      ++prepared;
      return sluice_cpu_backend_compile()->prepare(session, kernel, launch);
    };
    cpu.lower_kernels = [](sluice_session *session, const char *const *symbols, size_t count,
                           sluice_blob *const *blobs) {
      lowered += count;
      return sluice_cpu_backend_compile()->lower_kernels(session, symbols, count, blobs);
    };
    inputs.kernels = &cache;
    inputs.backends = {&cpu};
  }

  /// The result for a program of one op, `op` of a value of this type.
  FailureOr<Lowered> compile(const std::string &op, const std::string &type, int64_t capacity = 4,
                             const std::string &name = "program") {
    std::string text = "module {\n  sluice.model \"" + name + "\" format 2 phase \"model\" capacity " +
                       std::to_string(capacity) + "\n" + devices + "  sluice.graph [\"x\"] (%x : " + type +
                       ") {\n    %y = " + op + " : (" + type + ") -> " + type + " loc(\"" + name +
                       ".cpp\":1:2)\n    sluice.output \"" + name + "\", %y : " + type + "\n  }\n}\n";
    module = parseSourceString<ModuleOp>(text, &sluice::test::getContext());
    if (!module)
      return failure();
    return runPipeline(*module, options, inputs);
  }

  static size_t prepared, lowered;
  sluice_backend_compile cpu;
  KernelCache cache;
  sluice::CompileOptions options;
  PipelineInputs inputs;
  std::string devices; // of the program, in the IR; empty: the host
  OwningOpRef<ModuleOp> module;
};

size_t CachedCompilation::prepared, CachedCompilation::lowered;

} // namespace

TEST_F(CachedCompilation, ReusesAKernelOfAnotherProgram) {
  FailureOr<Lowered> first = compile("sluice.tanh %x", "tensor<?x8xf32>");
  ASSERT_TRUE(succeeded(first));
  EXPECT_EQ(first->shared.reused, 0u);
  FailureOr<Lowered> second = compile("sluice.tanh %x", "tensor<?x8xf32>", 4, "other");
  ASSERT_TRUE(succeeded(second));
  EXPECT_EQ(second->shared.kernels, 1u);
  EXPECT_EQ(second->shared.reused, 1u);
  EXPECT_EQ(prepared, 1u);
  EXPECT_EQ(lowered, 1u);
  EXPECT_EQ(first->objects.front(), second->objects.front()) << "the kernel's, which precedes the plan";
}

TEST_F(CachedCompilation, MakesAKernelForEachContentAndTarget) {
  const char *matrix = "tensor<?x8xf32>";
  ASSERT_TRUE(succeeded(compile("sluice.tanh %x", matrix)));
  ASSERT_TRUE(succeeded(compile("sluice.exp %x", matrix))) << "another op";
  ASSERT_TRUE(succeeded(compile("sluice.tanh %x", "tensor<?x9xf32>"))) << "another type";
  ASSERT_TRUE(succeeded(compile("sluice.tanh %x", matrix, 8))) << "another capacity";
  options.target_cpu = "haswell";
  ASSERT_TRUE(succeeded(compile("sluice.tanh %x", matrix))) << "another CPU";
  EXPECT_EQ(lowered, 5u);
  const char *cube = "tensor<?x8x8xf32>";
  ASSERT_TRUE(succeeded(compile("sluice.cumsum %x {axis = 1 : i64}", cube)));
  ASSERT_TRUE(succeeded(compile("sluice.cumsum %x {axis = 2 : i64}", cube))) << "another attribute";
  EXPECT_EQ(lowered, 7u);
  cpu.describe = [](sluice_session *session, sluice_target_info *info) {
    sluice_status status = sluice_cpu_backend_compile()->describe(session, info);
    info->tuning = "l1=1M";
    return status;
  };
  ASSERT_TRUE(succeeded(compile("sluice.cumsum %x {axis = 2 : i64}", cube))) << "other caches";
  EXPECT_EQ(lowered, 8u);
  EXPECT_EQ(cache.counts().hits, 0u);
}

TEST_F(CachedCompilation, OfAnotherProcessReusesAKernel) {
  sluice::test::TemporaryFolder folder;
  KernelFolder kernels(folder.path(), "compiler");
  inputs.kernelFolder = &kernels;
  FailureOr<Lowered> first = compile("sluice.tanh %x", "tensor<?x8xf32>");
  ASSERT_TRUE(succeeded(first));
  EXPECT_EQ(first->shared.fromFolder, 0u);
  KernelCache empty;
  inputs.kernels = &empty;
  FailureOr<Lowered> second = compile("sluice.tanh %x", "tensor<?x8xf32>");
  ASSERT_TRUE(succeeded(second));
  EXPECT_EQ(second->shared.fromFolder, 1u);
  EXPECT_EQ(second->shared.reused, 0u);
  EXPECT_EQ(prepared, 1u);
  EXPECT_EQ(first->objects, second->objects);
  FailureOr<Lowered> third = compile("sluice.tanh %x", "tensor<?x8xf32>");
  ASSERT_TRUE(succeeded(third));
  EXPECT_EQ(third->shared.reused, 1u) << "it is in memory now";
}

// Tests that kernels of a plugin, whose version the folder does not know, are not kept in files.
TEST_F(CachedCompilation, KeepsNoFilesForOtherBackends) {
  sluice::test::TemporaryFolder folder;
  KernelFolder kernels(folder.path(), "compiler");
  inputs.kernelFolder = &kernels;
  sluice_backend_compile plugin = cpu;
  plugin.name = "plugin";
  inputs.backends.push_back(&plugin);
  devices = "  sluice.device \"cpu\" = \"cpu\" 0\n  sluice.device \"acc0\" = \"plugin\" 0 first\n";
  ASSERT_TRUE(succeeded(compile("sluice.tanh %x", "tensor<?x8xf32>")));
  EXPECT_EQ(lowered, 1u);
  EXPECT_TRUE(folder.names().empty());
}

TEST_F(CachedCompilation, TakesNothingIfTextsAreWritten) {
  FailureOr<Lowered> first = compile("sluice.tanh %x", "tensor<?x8xf32>");
  ASSERT_TRUE(succeeded(first));
  inputs.kernelTexts = testing::TempDir() + "kernel_texts";
  FailureOr<Lowered> result = compile("sluice.tanh %x", "tensor<?x8xf32>");
  ASSERT_TRUE(succeeded(result));
  EXPECT_EQ(result->shared.reused, 0u);
  EXPECT_EQ(prepared, 2u);
  EXPECT_EQ(lowered, 2u);
  EXPECT_EQ(result->objects, first->objects);
}

TEST_F(CachedCompilation, RefusesStagesWithoutTheSymbol) {
  cpu.prepare = [](sluice_session *session, const sluice_kernel_view *kernel, sluice_launch_info *launch) {
    sluice_kernel_view view = *kernel;
    view.symbol = "mine";
    return sluice_cpu_backend_compile()->prepare(session, &view, launch);
  };
  sluice::ir::DiagnosticText diagnostics(&sluice::test::getContext());
  EXPECT_TRUE(failed(compile("sluice.tanh %x", "tensor<?x8xf32>")));
  EXPECT_THAT(diagnostics.errors(), HasSubstr("backend 'cpu' returned a stage of the kernel 'elementwise_"));
}

TEST_F(CachedCompilation, RefusesCodeOfADevice) {
  cpu.lower_kernels = [](sluice_session *, const char *const *, size_t, sluice_blob *const *blobs) {
    blobs[0]->kind = SLUICE_BLOB_DEVICE;
    return SLUICE_OK;
  };
  sluice::ir::DiagnosticText diagnostics(&sluice::test::getContext());
  EXPECT_TRUE(failed(compile("sluice.tanh %x", "tensor<?x8xf32>")));
  EXPECT_THAT(diagnostics.errors(), HasSubstr("lower_kernels returned device code, not an object for the host"));
}
