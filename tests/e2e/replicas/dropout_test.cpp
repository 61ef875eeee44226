// The elements that dropout drops, observed in the gradient of a table whose rows are the rows of a call. For any
// device, number of threads, replicas and microbatches they are the bits of Threefry on the seed, step and element,
// which the test recomputes.
#include "runtime/instance/Weights.h"
#include "runtime/io/Safetensors.h"
#include "tests/e2e/replicas/Replicated.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <numeric>
#include <sluice/sluice.h>

namespace sluice::test {

namespace {

constexpr int64_t kRows = 12, kWidth = 7;

/// The upper 23 of an element's random bits.
uint32_t drawnFor(uint64_t seed, uint32_t step, uint32_t stream, uint32_t row, uint32_t place) {
  uint32_t k[3] = {uint32_t(seed >> 32) + step * 0x9E3779B9u + stream * 0x85EBCA77u,
                   uint32_t(seed) + step * 0x9E3779B9u, 0x1BD11BDA};
  k[2] ^= k[0] ^ k[1];
  const int turns[8] = {13, 15, 26, 6, 17, 29, 16, 24};
  uint32_t x = row + k[0], y = place + k[1];
  for (int round = 0; round < 20; ++round) {
    int turn = turns[round % 8];
    x += y;
    y = (y << turn | y >> (32 - turn)) ^ x;
    if (round % 4 == 3) {
      uint32_t group = uint32_t(round) / 4 + 1;
      x += k[group % 3];
      y += k[(group + 1) % 3] + group;
    }
  }
  return (x ^ y) >> 9;
}

bool isDropped(uint64_t seed, uint32_t step, uint32_t stream, uint32_t row, uint32_t place, double p) {
  return drawnFor(seed, step, stream, row, place) < p * 8388608;
}

/// A table dropped twice by one layer; the second result has three times the weight in the loss.
std::string twiceDropped(double p, int64_t width = kWidth, int64_t rows = kRows) {
  Graph graph("dropped");
  graph.set_capacity(rows);
  nn::Module root{graph};
  Tensor table = root.parameter("table", {rows, width}, init::zeros());
  nn::Dropout drop{&root, "drop", p};
  Tensor chosen = embedding(graph.input("row", i32, {Dim{"batch"}}), table);
  Tensor y = drop(chosen) + drop(chosen) * 3;
  graph.output("y", y);
  graph.minimize(sum(y), optim::SGD{.lr = 1});
  return graph.str();
}

Values rowsUpTo(int64_t rows) {
  Values batch;
  for (int64_t row = 0; row < rows; ++row)
    batch["row"].push_back(double(row));
  return batch;
}

/// The change of the table in a step with `rows` rows.
std::vector<double> dropsOf(uint64_t seed, uint32_t step, int64_t rows, double p, int64_t width = kWidth,
                            int64_t capacity = kRows) {
  std::vector<double> gradient(size_t(capacity * width), 0);
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t i = 0; i < width; ++i)
      for (uint32_t stream = 0; stream < 2; ++stream)
        if (!isDropped(seed, step, stream, uint32_t(row), uint32_t(i), p))
          gradient[size_t(row * width + i)] += (stream ? 3 : 1) / (1 - p);
  return gradient;
}

void expectDrops(Compiled &program, uint64_t seed, uint32_t firstStep = 1) {
  for (uint32_t step = firstStep; step < firstStep + 3; ++step) {
    int64_t rows = step == 1 ? kRows : step == 2 ? 7 : step == 3 ? 1 : 10;
    program.setState("table", std::vector<double>(size_t(kRows * kWidth), 1));
    double loss = program.run("train_step", rowsUpTo(rows), rows).at("loss")[0];
    std::vector<double> expected = dropsOf(seed, step, rows, 0.5), gradient = program.state("table");
    for (double &element : gradient)
      element = 1 - element;
    EXPECT_EQ(gradient, expected) << "step " << step;
    EXPECT_EQ(loss, std::accumulate(expected.begin(), expected.end(), 0.0)) << "step " << step;
  }
}

} // namespace

class DropoutOn : public testing::TestWithParam<std::tuple<std::string, int64_t, int64_t>> {};

TEST_P(DropoutOn, HasTheBitsOfItsFormula) {
  auto [devices, replicas, microbatches] = GetParam();
  std::string text = twiceDropped(0.5);
  if (replicas > 1 || microbatches > 1 || !devices.empty())
    text = onReplicas(text, replicas, devices, /*syncBatchNorm=*/false, microbatches);
  Compiled program(text, {}, {.threads = 1, .sim = "devices=8,seed=3"});
  for (int threads : {1, 2, 4}) {
    program.restart({.threads = threads, .sim = fmt::format("devices=8,seed={}", threads)});
    uint64_t seed = 0x500000007 + uint64_t(threads);
    program.init(seed);
    expectDrops(program, seed);
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, DropoutOn,
                         testing::Values(std::tuple("", 1, 1), std::tuple("", 1, 3), std::tuple("", 2, 3),
                                         std::tuple("sim:0", 1, 1), std::tuple("sim:0", 1, 3),
                                         std::tuple("sim:0-1", 2, 1), std::tuple("sim:0-1", 2, 3),
                                         std::tuple("sim:0-2", 3, 1), std::tuple("sim:0-2", 3, 3)));

/// Later steps depend only on the contents of a checkpoint.
TEST(Dropout, GoesOnFromACheckpoint) {
  Compiled program(twiceDropped(0.5)), other(twiceDropped(0.5));
  program.init(9);
  expectDrops(program, 9);
  TemporaryFolder folder;
  std::string file = folder.path() + "/states.safetensors";
  runtime::saveStates(program.program(), file, {});
  other.init(10);
  runtime::loadStates(other.program(), runtime::SafetensorsFile(file), file);
  expectDrops(other, 9, /*firstStep=*/4);
}

class DropoutWith : public testing::TestWithParam<double> {};

/// In f32: the scale 1 / (1 - p) is rounded.
TEST_P(DropoutWith, KeepsAShareAndItsMean) {
  constexpr int64_t rows = 256, width = 64;
  double p = GetParam(), count = 2 * double(rows * width);
  Compiled program(twiceDropped(p, width, rows));
  program.init(4);
  program.run("train_step", rowsUpTo(rows), rows);
  std::vector<double> table = program.state("table"), expected = dropsOf(4, 1, rows, p, width, rows);
  double kept = 0, total = 0;
  for (size_t i = 0; i < table.size(); ++i) {
    ASSERT_TRUE(std::abs(table[i] + expected[i]) <= 1e-6 * expected[i]) << i << ": " << table[i];
    int parts = int(std::lround(-table[i] * (1 - p))); // 0, 1, 3 or both
    kept += parts == 4 ? 2 : parts > 0 ? 1 : 0;
    total -= table[i];
  }
  EXPECT_TRUE(std::abs(kept / count - (1 - p)) <= 4 * std::sqrt(p * (1 - p) / count)) << kept / count;
  // The mean is preserved: the weights 1 and 3, with standard deviations sqrt(p / (1 - p)) times as large.
  EXPECT_TRUE(std::abs(total / double(rows * width) - 4) <= 4 * std::sqrt(10 * p / (1 - p) / double(rows * width)));
}

INSTANTIATE_TEST_SUITE_P(Probabilities, DropoutWith, testing::Values(0.1, 0.5, 0.9));

TEST(Dropout, OfAllGivesZeros) {
  Compiled program(twiceDropped(1));
  program.init(4);
  program.setState("table", std::vector<double>(size_t(kRows * kWidth), 2));
  EXPECT_EQ(program.run("train_step", rowsUpTo(kRows), kRows).at("loss")[0], 0);
  EXPECT_EQ(program.state("table"), std::vector<double>(size_t(kRows * kWidth), 2));
}

static size_t countDrawn(Interpreted &program, llvm::StringRef entry) {
  size_t count = 0;
  program.module().lookupSymbol<ir::EntryOp>(entry).walk([&](ir::BernoulliOp) { ++count; });
  return count;
}

TEST(Dropout, IsNothingOutsideOfTraining) {
  Interpreted program(twiceDropped(0.5));
  EXPECT_EQ(countDrawn(program, "train_step"), 2u) << "the gradient draws what is drawn already";
  for (const char *entry : {"predict", "eval_step"}) {
    EXPECT_EQ(countDrawn(program, entry), 0u) << entry;
    auto body = program.module().lookupSymbol<ir::EntryOp>(entry);
    body.walk([&](ir::GetOp get) { EXPECT_EQ(get.getState(), "table") << entry; });
    body.walk([&](ir::DropoutOp) { ADD_FAILURE() << entry; });
  }
  EXPECT_EQ(twiceDropped(0).find("sluice.dropout"), std::string::npos) << "with p = 0 there is none at all";
}

/// Dropout is an elementwise formula that its consumers recompute: no kernel stores it.
TEST(Dropout, IsNotStored) {
  Interpreted program(twiceDropped(0.5), "fused");
  program.module().walk([](ir::KernelOp kernel) {
    for (mlir::Type type : kernel.getResultTypes())
      EXPECT_FALSE(llvm::cast<mlir::RankedTensorType>(type).getElementType().isInteger(1)) << kernel.getName().str();
  });
}

} // namespace sluice::test
