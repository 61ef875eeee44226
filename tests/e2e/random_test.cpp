// Random numbers have the same bits for any number of threads, on the host and on accelerators. torch.draws compares them
// with another implementation.
#include "tests/cuda_emu/Doubles.h"
#include "tests/e2e/Harness.h"
#include "tests/e2e/torch/DrawModel.h"

#include <cmath>
#include <gtest/gtest.h>

using namespace sluice::test;

static Values valuesOf(const std::string &devices, const int32_t (&key)[2], int threads) {
  Compiled model(DrawModel(devices).text, {}, {.threads = threads});
  return model.run("predict", {{"key", {double(key[0]), double(key[1])}}}, 1);
}

/// Normal numbers are computed by functions that CUDA rounds in another way.
static void expectAlike(const Values &values, const Values &wanted) {
  for (const auto &draw : DrawModel().draws) {
    const std::vector<double> &got = values.at(draw["name"]), &others = wanted.at(draw["name"]);
    if (draw["function"] != "normal") {
      EXPECT_EQ(got, others) << draw;
      continue;
    }
    ASSERT_EQ(got.size(), others.size());
    double tolerance = draw["dtype"] == "f64" ? 1e-14 : 4e-6; // of two polynomials, relative to 1 and the number
    for (size_t i = 0; i < got.size(); ++i)
      EXPECT_NEAR(got[i], others[i], tolerance * (1 + std::fabs(others[i]))) << draw;
  }
}

TEST(Random, HasTheSameBitsForAnyNumberOfThreadsAndOnAccelerators) {
  useCudaDoubles(/*devices=*/1, /*seed=*/3);
  Values host = valuesOf("cpu", kDrawKeys[2], 1);
  EXPECT_EQ(valuesOf("cpu", kDrawKeys[2], 3), host);
  EXPECT_EQ(valuesOf("sim:0", kDrawKeys[2], 2), host);
  expectAlike(valuesOf("cuda:0", kDrawKeys[2], 2), host);
}
