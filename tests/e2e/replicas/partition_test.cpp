// The program of one of several replicas, interpreted on all replicas together, compared with the model on one device.
#include "tests/Worse.h"
#include "tests/e2e/replicas/BatchGraph.h"
#include "tests/e2e/replicas/Replicated.h"

#include <cstdlib>
#include <gtest/gtest.h>
#include <random>

namespace sluice::test {

static double relativeError(double actual, double expected) {
  return std::abs(actual - expected) / std::max(1.0, std::abs(expected));
}

static double greatestError(const std::vector<double> &actual, const std::vector<double> &expected) {
  if (actual.size() != expected.size())
    return INFINITY;
  double worst = 0;
  for (size_t i = 0; i < actual.size(); ++i)
    worst = worse(worst, relativeError(actual[i], expected[i]));
  return worst;
}

/// Random row counts for the replicas; some are zero.
static std::vector<int64_t> drawShares(std::mt19937_64 &random, size_t replicas, int64_t rows) {
  std::vector<int64_t> shares(replicas, 0);
  for (int64_t row = 0; row < rows; ++row)
    ++shares[random() % replicas];
  return shares;
}

class BatchGraphs : public testing::TestWithParam<uint64_t> {
protected:
  static constexpr int64_t kCapacity = 12;

  void SetUp() override {
    if (GetParam() % 5 != 0 && !std::getenv("SLUICE_TEST_FULL"))
      GTEST_SKIP() << "a fifth of the graphs runs unless SLUICE_TEST_FULL is set";
  }

  /// Trains on one device and on replicas with this many microbatches each.
  void expectEqual(size_t replicas, int64_t microbatches, std::mt19937_64 &random) {
    BatchGraph graph(GetParam(), kCapacity);
    SCOPED_TRACE(graph.text);
    Interpreted one(graph.text);
    Replicated several(graph.text, replicas, /*syncBatchNorm=*/true, {}, "parallel", microbatches);
    one.init(GetParam());
    several.run("init", {{"key", {0, double(GetParam())}}}, std::vector<int64_t>(replicas, 1));
    for (size_t replica = 0; replica < replicas; ++replica) {
      several.states[replica].at("lr").data = {0.05};
      for (const std::string &state : graph.states)
        EXPECT_EQ(several.states[replica].at(state).data, one.state(state)) << "initial values are one device's";
    }
    one.setState("lr", {0.05});
    for (uint64_t step = 0; step < 4; ++step) {
      int64_t rows = 1 + int64_t(random() % kCapacity);
      Values batch = BatchGraph::batch(100 * GetParam() + step, rows);
      std::vector<int64_t> shares = drawShares(random, replicas, rows);
      for (const char *entry : {"predict", "eval_step", "train_step"}) {
        Values expected = one.run(entry, batch, rows), actual = several.run(entry, batch, shares, random() % replicas);
        for (const auto &[name, values] : expected)
          EXPECT_TRUE(greatestError(actual.at(name), values) <= 1e-11)
              << entry << " " << name << " of " << replicas << " replicas, up to " << microbatches
              << " microbatches, with " << rows << " rows";
      }
      for (size_t replica = 0; replica < replicas; ++replica)
        for (const std::string &state : graph.states) {
          EXPECT_TRUE(greatestError(several.states[replica].at(state).data, one.state(state)) <= 1e-11) << state;
          EXPECT_EQ(several.states[replica].at(state).data, several.states[0].at(state).data)
              << state << " of replica " << replica << " has other bits than the first one's";
        }
    }
  }
};

TEST_P(BatchGraphs, AreEqualOnReplicas) {
  std::mt19937_64 random(GetParam());
  for (size_t replicas = 1; replicas <= 5; ++replicas)
    expectEqual(replicas, /*microbatches=*/1, random);
}

TEST_P(BatchGraphs, AreEqualInMicrobatches) {
  std::mt19937_64 random(GetParam());
  for (size_t replicas = 1; replicas <= 5; ++replicas)
    expectEqual(replicas, 2 + int64_t(random() % 5), random);
}

INSTANTIATE_TEST_SUITE_P(Replicas, BatchGraphs, testing::Range<uint64_t>(0, 100));

static const char kNormed[] = R"(module {
  sluice.model "normed" format 2 phase "model" capacity 8
  sluice.state parameter @w : tensor<2xf32> = <"constant", 1.0 : f64>
  sluice.state parameter @b : tensor<2xf32> = <"constant", 0.5 : f64>
  sluice.state statistic @mean : tensor<2xf32> = <"constant", 0.0 : f64>
  sluice.state statistic @var : tensor<2xf32> = <"constant", 1.0 : f64>
  sluice.state hyperparameter @lr : tensor<f32> = <"constant", 1.0 : f64>
  sluice.graph ["x"] (%x: tensor<?x2xf32>) {
    %w = sluice.get @w : tensor<2xf32>
    %b = sluice.get @b : tensor<2xf32>
    %mean = sluice.get @mean : tensor<2xf32>
    %var = sluice.get @var : tensor<2xf32>
    %n:3 = sluice.batch_norm %x, %w, %b, %mean, %var : (tensor<?x2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) -> (tensor<?x2xf32>, tensor<2xf32>, tensor<2xf32>)
    sluice.set @mean, %n#1 : tensor<2xf32>
    sluice.set @var, %n#2 : tensor<2xf32>
    %c = sluice.mul %n#0, %n#0 : (tensor<?x2xf32>, tensor<?x2xf32>) -> tensor<?x2xf32>
    %l = sluice.mul %c, %n#0 : (tensor<?x2xf32>, tensor<?x2xf32>) -> tensor<?x2xf32>
    %m = sluice.mean %l {axes = array<i64: 0, 1>} : (tensor<?x2xf32>) -> tensor<f32>
    sluice.output "y", %n#0 : tensor<?x2xf32>
    sluice.minimize %m, #sluice.sgd<momentum = 0.0 : f64, dampening = 0.0 : f64, weight_decay = 0.0 : f64, nesterov = false> lr @lr [@w, @b] : tensor<f32>
  }
}
)";

/// As in PyTorch's DistributedDataParallel, each replica's loss uses its own statistics. The gradient is the mean over
/// all rows, and the first replica's running statistics are kept.
TEST(BatchNormOfReplicas, IsOfTheirOwnRows) {
  const std::vector<double> x = {0.3, -1, 2, 0.5, -0.7, 1.5, 1, 1, -2, 0.25, 0.4, 3, -0.1, -0.2};
  const std::vector<int64_t> shares = {4, 2, 1, 0};
  Replicated several(kNormed, shares.size(), /*syncBatchNorm=*/false);
  for (ir::StateMap &states : several.states) {
    states.at("w").data = {1, 1};
    states.at("b").data = {0.5, 0.5};
    states.at("var").data = {1, 1};
    states.at("lr").data = {1};
  }
  Values outputs = several.run("train_step", {{"x", x}}, shares, /*replica=*/3);
  // Computed by hand in double.
  double loss = 0, dW[2] = {}, dB[2] = {}, mean0[2] = {}, var0[2] = {};
  int64_t first = 0, rows = 7;
  for (int64_t share : shares) {
    for (int c = 0; c < 2 && share > 0; ++c) {
      double mean = 0, var = 0;
      for (int64_t r = first; r < first + share; ++r)
        mean += x[size_t(2 * r + c)] / double(share);
      for (int64_t r = first; r < first + share; ++r)
        var += std::pow(x[size_t(2 * r + c)] - mean, 2) / double(share);
      for (int64_t r = first; r < first + share; ++r) {
        double xHat = (x[size_t(2 * r + c)] - mean) / std::sqrt(var + 1e-5), y = xHat + 0.5,
               dY = 3 * y * y / double(2 * rows);
        loss += y * y * y / double(2 * rows);
        dW[c] += dY * xHat;
        dB[c] += dY;
      }
      if (first == 0) {
        mean0[c] = 0.1 * mean;
        var0[c] = 0.9 + 0.1 * var * double(share) / double(share - 1);
      }
    }
    first += share;
  }
  EXPECT_TRUE(relativeError(outputs.at("loss")[0], loss) <= 1e-12);
  for (const ir::StateMap &states : several.states)
    for (size_t c = 0; c < 2; ++c) {
      EXPECT_TRUE(relativeError(states.at("w").data[c], 1 - dW[c]) <= 1e-12);
      EXPECT_TRUE(relativeError(states.at("b").data[c], 0.5 - dB[c]) <= 1e-12);
      EXPECT_TRUE(relativeError(states.at("mean").data[c], mean0[c]) <= 1e-12);
      EXPECT_TRUE(relativeError(states.at("var").data[c], var0[c]) <= 1e-12);
    }
}

} // namespace sluice::test
