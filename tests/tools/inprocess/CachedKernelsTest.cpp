// sluice::compile: programs of one process share the code of equal kernels.
#include "tests/TemporaryFolder.h"
#include "tools/compiler/CompilerContext.h"
#include <gmock/gmock.h>
#include <sluice/compile.h>
#include <sluice/sluice.h>
#include <thread>

using namespace sluice;
using sluice::test::TemporaryFolder;

namespace {

passes::KernelCache::Counts counts() { return compiler::CompilerContext::ofProcess().kernels().counts(); }

/// A product and a softmax; `extra` adds an op that other graphs lack. Names have the given prefix.
Graph graphOf(const std::string &prefix, int64_t width, bool extra) {
  Graph g{prefix};
  g.set_capacity(4);
  Tensor x = g.input(prefix + "_x", f32, {Dim{"batch"}, width});
  nn::Module root{g};
  nn::Linear fc{&root, prefix + "_fc", width, 6};
  Tensor y = softmax(fc(x), 1);
  g.output("y", y);
  if (extra)
    g.output("z", cumsum(y, 1));
  return g;
}

/// The bits of `y`.
std::vector<float> resultOf(Program &program, const std::string &prefix, int64_t width) {
  std::vector<float> weights, x;
  for (int64_t i = 0; i < 6 * width; ++i)
    weights.push_back(0.25F * float(i % 7) - 0.5F);
  for (int64_t i = 0; i < 4 * width; ++i)
    x.push_back(0.125F * float(i % 11));
  program.set_state(prefix + "_fc.weight", weights);
  program.set_state(prefix + "_fc.bias", std::vector<float>{0, 1, 2, 3, 4, 5});
  program.set_input(prefix + "_x", x);
  program.run("predict", 4);
  return program.output<float>("y");
}

} // namespace

TEST(CachedKernels, AreSharedByProgramsWithOtherNames) {
  Program first = compile(graphOf("a", 5, /*extra=*/false));
  size_t before = counts().hits, known = counts().kernels;
  Program second = compile(graphOf("b", 5, /*extra=*/true));
  EXPECT_GE(counts().hits, before + 1);
  EXPECT_GE(counts().kernels, known + 1) << "the other op has its own";
  EXPECT_EQ(resultOf(second, "b", 5), resultOf(first, "a", 5));
}

// Tests that the bits of cached kernels are those of kernels that are lowered together, without the cache.
TEST(CachedKernels, GiveTheSameBits) {
  TemporaryFolder folder;
  Program apart = compile(graphOf("c", 7, /*extra=*/true), {.dump_ir = folder / "dump"});
  size_t before = counts().hits;
  Program first = compile(graphOf("c", 7, /*extra=*/true));
  Program again = compile(graphOf("c", 7, /*extra=*/true));
  EXPECT_GE(counts().hits, before + 2);
  std::vector<float> expected = resultOf(apart, "c", 7);
  EXPECT_EQ(resultOf(first, "c", 7), expected);
  EXPECT_EQ(resultOf(again, "c", 7), expected);
}

TEST(CachedKernels, AreSharedByThreads) {
  constexpr int64_t kLeast = 20;
  std::vector<std::vector<float>> results(8);
  std::vector<std::thread> threads;
  for (size_t number = 0; number < results.size(); ++number)
    threads.emplace_back([&results, number] {
      int64_t width = kLeast + int64_t(number % 4);
      Program program = compile(graphOf("d", width, /*extra=*/false));
      results[number] = resultOf(program, "d", width);
    });
  for (std::thread &thread : threads)
    thread.join();
  for (size_t number = 0; number < 4; ++number) {
    EXPECT_EQ(results[number], results[number + 4]);
    int64_t width = kLeast + int64_t(number);
    Program program = compile(graphOf("d", width, /*extra=*/false));
    EXPECT_EQ(resultOf(program, "d", width), results[number]);
  }
}
