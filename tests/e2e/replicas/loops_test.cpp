// Random models with scans and branches, trained on one device and with their rows shared out: over replicas, with
// microbatches, with logical shards, and with the optimizer's states shared out. What cannot be shared out is refused at
// the user's line. Runs a sample by default, and 120 models with SLUICE_TEST_FULL=1.
#include "sluice/sluice.h"
#include "tests/Worse.h"
#include "tests/e2e/Portable.h"
#include "tests/e2e/replicas/Replicated.h"

#include <cstdlib>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <random>

namespace sluice::test {

namespace {

constexpr int64_t kRows = 6, kSteps = 3, kWidth = 4;

/// Builds a model op by op; every value with rows is [batch, width].
class LoopGraph {
public:
  explicit LoopGraph(uint32_t seed) : random(seed) {
    graph.set_capacity(kRows);
    graph.set_dtype(f64);
    x = graph.input("x", f64, {Dim{"batch"}, kSteps, kWidth});
    flag = graph.input("flag", i32, {});
    for (int i = 0; i < 3; ++i)
      layers.push_back(std::make_unique<nn::Linear>(&net, fmt::format("fc{}", i), kWidth, kWidth));
    scale = net.parameter("scale", {kWidth}, init::uniform(0.3, 0.9));
    weights = net.parameter("weights", {kWidth, kSteps, kWidth}, init::uniform(-0.5, 0.5));
    values = {x.select(1, 0), x.mean(1)};
  }

  std::string run() {
    for (uint32_t i = 0, count = 2 + below(3); i < count; ++i)
      values.push_back(i == 0 ? loop() : grow());
    Tensor y = values.back();
    graph.output("y", y);
    Tensor loss = square(y).mean() + square(any() * scale + weights.mean({0, 1})).mean();
    below(2) ? graph.minimize(loss, optim::SGD{.lr = 0.1, .momentum = 0.9}) : graph.minimize(loss, optim::Adam{});
    return graph.str();
  }

  /// Whether an op in a loop needs all rows at once.
  bool needsAllRows() const { return needsAllRows_; }

private:
  uint32_t below(uint32_t limit) { return uint32_t(random() % limit); }
  Tensor any() { return values[below(uint32_t(values.size()))]; }
  Tensor linear(const Tensor &of) { return (*layers[below(uint32_t(layers.size()))])(of); }

  Tensor grow() {
    Tensor of = any();
    switch (below(10)) {
    case 0:
      return tanh(linear(of));
    case 1:
      return of * 0.5 + any();
    case 2:
      return sin(of * scale);
    case 3:
      return softmax(of + any(), 1) * double(kWidth);
    case 4:
    case 5:
      return meeting(of);
    default:
      return depth < 2 ? loop() : tanh(of + any());
    }
  }

  Tensor loop() { return below(2) ? steps(any()) : branches(any()); }

  /// A value for which rows meet. Few of them are within a loop, which then cannot be shared out.
  Tensor meeting(const Tensor &of) {
    if (depth > 0 && below(6) != 0)
      return of * scale;
    needsAllRows_ |= depth > 0;
    return below(2) ? of - any().mean({0}) : of / (1.0 + max(square(any()), {0}));
  }

  Tensor predicate() {
    if (depth > 0 && below(8) != 0)
      return flag == double(below(3));
    switch (below(3)) {
    case 0:
      return flag == double(below(3));
    case 1:
      needsAllRows_ |= depth > 0;
      return any().mean() > 0.05;
    default:
      needsAllRows_ |= depth > 0;
      return sluice::any(any() > 0.9);
    }
  }

  /// What `body` gives; its values are of no use outside.
  Tensor within(const std::vector<Tensor> &more, uint32_t ops) {
    size_t outside = values.size();
    values.insert(values.end(), more.begin(), more.end());
    ++depth;
    for (uint32_t i = 0; i < ops; ++i)
      values.push_back(grow());
    --depth;
    Tensor last = values.back();
    values.resize(outside);
    return last;
  }

  Tensor branches(const Tensor &of) {
    Tensor decides = predicate();
    uint32_t ops = below(3);
    bool isPlain = below(2);
    return cond(decides, [&] { return within({of}, 1 + ops); }, [&] { return isPlain ? of : within({of}, 1); });
  }

  Tensor steps(const Tensor &first) {
    bool weighs = below(2), sums = depth == 0 && below(2), stacks = below(2);
    ScanOptions options{.reverse = below(2) != 0, .recompute = below(3) == 0};
    std::vector<Tensor> begin{first}, slices{x};
    if (sums)
      begin.push_back(zeros_like(scale));
    if (weighs)
      slices.push_back(weights);
    ScanStep all = scan(
        begin, slices, 1,
        [&](const std::vector<Tensor> &carried, const std::vector<Tensor> &now) {
          Tensor h = weighs ? matmul(carried[0], now[1]) + now[0] : carried[0] * 0.7 + now[0];
          h = tanh(within({carried[0], now[0], h}, 1 + below(2)) + h);
          ScanStep step{{h}, {}};
          if (sums)
            step.carried.push_back(carried[1] * 0.5 + square(h).sum({0}) * scale);
          if (stacks)
            step.stacked.push_back(h);
          return step;
        },
        options);
    Tensor last = stacks ? all.stacked[0].mean(1) : all.carried[0];
    return sums ? last + all.carried[1] * 0.1 : last;
  }

  std::mt19937 random;
  Graph graph{"loops"};
  nn::Module net{graph};
  std::vector<std::unique_ptr<nn::Linear>> layers;
  Tensor x, flag, scale, weights;
  std::vector<Tensor> values;
  int depth = 0; // of loops
  bool needsAllRows_ = false;
};

/// How rows are shared out.
struct Shares {
  const char *name;
  int64_t replicas, microbatches, shards;
  bool zero;
};
constexpr Shares kShares[] = {{"Replicas", 2, 1, 0, false},
                              {"Microbatches", 1, 3, 0, false},
                              {"ReplicasAndMicrobatches", 2, 2, 0, false},
                              {"LogicalShards", 2, 1, 4, false},
                              {"Zero", 2, 1, 0, true}};

using Case = std::tuple<uint32_t, Shares>;
class LoopGraphs : public testing::TestWithParam<Case> {};

} // namespace

static Values batch(int step, int64_t rows) {
  std::vector<float> x = portableUniform("loops/" + std::to_string(step), size_t(rows * kSteps * kWidth), -1, 1);
  return {{"x", {x.begin(), x.end()}}, {"flag", {double(step % 3)}}};
}

static std::string shared(const std::string &text, const Shares &shares) {
  std::string devices = fmt::format("sim:0-{}", shares.replicas - 1),
              result = onReplicas(text, shares.replicas, devices, /*syncBatchNorm=*/false, shares.microbatches,
                                  shares.shards);
  return shares.zero ? withShards(result) : result;
}

TEST_P(LoopGraphs, TrainAsOnOneDevice) {
  auto [seed, shares] = GetParam();
  if (seed >= 6 && !std::getenv("SLUICE_TEST_FULL"))
    GTEST_SKIP() << "some of the models run unless SLUICE_TEST_FULL is set";
  LoopGraph graph(seed);
  std::string text = graph.run(), several = shared(text, shares);
  if (std::string error = compileError(several); !error.empty()) {
    EXPECT_TRUE(graph.needsAllRows()) << error << "\n" << text;
    EXPECT_THAT(error, testing::ContainsRegex("loops_test\\.cpp:[0-9]+"));
    EXPECT_THAT(error, testing::HasSubstr("outside"));
    GTEST_SKIP() << error;
  }
  sluice::CompileOptions options;
  options.dtype = sluice::f64;
  Compiled one(text, options), apart(several, options, {.sim = "devices=2,seed=3"});
  one.init(seed);
  apart.init(seed);
  for (int step = 0; step < 4; ++step) {
    int64_t rows = step == 1 ? 1 : step == 2 ? kRows - 1 : kRows;
    Values inputs = batch(step, rows);
    for (const char *entry : {"predict", "train_step"}) {
      Values actual = apart.run(entry, inputs, rows);
      for (const auto &[name, expected] : one.run(entry, inputs, rows))
        EXPECT_LT(largestDifference(actual.at(name), expected), 1e-11) << entry << " " << name << "\n" << text;
    }
    expectStatesOf(apart, one);
  }
}

INSTANTIATE_TEST_SUITE_P(Replicas, LoopGraphs,
                         testing::Combine(testing::Range<uint32_t>(0, 120), testing::ValuesIn(kShares)),
                         [](const auto &info) {
                           return std::get<1>(info.param).name + std::to_string(std::get<0>(info.param));
                         });

} // namespace sluice::test
