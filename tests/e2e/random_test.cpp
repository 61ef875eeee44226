// Random numbers have the same bits for any number of threads, on the host and on accelerators. torch.draws compares them
// with another implementation.
#include "tests/cuda_emu/Doubles.h"
#include "tests/e2e/Harness.h"
#include "tests/e2e/torch/DrawModel.h"

#include <gtest/gtest.h>

using namespace sluice::test;

static Values valuesOf(const std::string &devices, const int32_t (&key)[2], int threads) {
  Compiled model(DrawModel(devices).text, {}, {.threads = threads});
  return model.run("predict", {{"key", {double(key[0]), double(key[1])}}}, 1);
}

TEST(Random, HasTheSameBitsForAnyNumberOfThreadsAndOnAccelerators) {
  useCudaDoubles(/*devices=*/1, /*seed=*/3);
  Values host = valuesOf("cpu", kDrawKeys[2], 1);
  EXPECT_EQ(valuesOf("cpu", kDrawKeys[2], 3), host);
  EXPECT_EQ(valuesOf("sim:0", kDrawKeys[2], 2), host);
  EXPECT_EQ(valuesOf("cuda:0", kDrawKeys[2], 2), host);
}
