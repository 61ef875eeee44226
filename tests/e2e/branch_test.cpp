// Branches: values and costs, gradients by finite differences, and the same bits for any number of threads and on an
// accelerator. Replicas take the same branch.
#include "sluice/sluice.h"
#include "tests/cuda_emu/Doubles.h"
#include "tests/e2e/Portable.h"
#include "tests/e2e/TrainedAlike.h"

#include <array>
#include <cmath>
#include <gmock/gmock.h>

using namespace sluice::test;

namespace {

constexpr int64_t kRows = 6, kWidth = 5, kHidden = 4, kSteps = 3;

/// Branches with conditions from an input and from all rows. They contain parameters and a scan, and a scan contains
/// one.
std::string network(sluice::DType dtype, const std::string &devices = "cpu") {
  using namespace sluice;
  Graph g("branches");
  g.set_devices(devices);
  g.set_capacity(kRows);
  g.set_dtype(dtype);
  Tensor x = g.input("x", dtype, {Dim{"batch"}, kSteps, kWidth}), flag = g.input("flag", i32, {});
  nn::Module root{g};
  nn::Linear wide{&root, "wide", kWidth, kHidden}, narrow{&root, "narrow", kWidth, kHidden};
  Tensor decay = root.parameter("decay", {kHidden}, init::uniform(0.3, 0.9));
  Tensor y = cond(
      flag == 1.0,
      [&] {
        Tensor all = wide(x);
        return scan({zeros_like(all.select(1, 0))}, {all}, 1,
                    [&](const std::vector<Tensor> &carried, const std::vector<Tensor> &slices) {
                      Tensor h = tanh(carried[0] * decay + slices[0]);
                      return ScanStep{{h}, {}};
                    })
            .carried[0];
      },
      [&] { return narrow(x).mean(1); });
  g.output("y", y);
  std::vector<Tensor> both = cond(
      y.mean() > 0.05, [&] { return std::vector<Tensor>{square(y).mean(), y * 0.5}; },
      [&] { return std::vector<Tensor>{(y * decay).mean() * 2.0, y}; });
  Tensor last =
      scan({both[1]}, {x}, 1, [&](const std::vector<Tensor> &carried, const std::vector<Tensor> &slices) {
        Tensor h = cond(
            flag > 0.0, [&] { return sin(carried[0] * decay); }, [&] { return carried[0] + slices[0].mean(1, true); });
        return ScanStep{{h}, {}};
      }).carried[0];
  g.output("last", last);
  g.minimize(both[0] + square(last).mean(), optim::SGD{.lr = 0.1, .momentum = 0.9});
  return g.str();
}

Values batch(double flag, double shift = 0) {
  std::vector<float> x = portableUniform("x", size_t(kRows * kSteps * kWidth), -1, 1);
  Values inputs{{"x", {x.begin(), x.end()}}, {"flag", {flag}}};
  for (double &value : inputs["x"])
    value += shift;
  return inputs;
}

constexpr double kFlags[] = {0, 1, 2};

} // namespace

TEST(Branch, HasTheGradientsOfDifferences) {
  expectGradientsOfDifferences(network(sluice::f64), batch(1), kRows, {"wide.weight", "wide.bias", "decay"});
  expectGradientsOfDifferences(network(sluice::f64), batch(0, 0.5), kRows, {"narrow.weight", "narrow.bias"});
  expectGradientsOfDifferences(network(sluice::f64), batch(2, -0.5), kRows, {"narrow.weight", "decay"});
}

TEST(Branch, LeavesTheParametersOfTheOtherOne) {
  Compiled model(network(sluice::f64));
  model.init(3);
  std::vector<double> wide = model.state("wide.weight"), narrow = model.state("narrow.weight");
  model.run("train_step", batch(0), kRows);
  EXPECT_EQ(model.state("wide.weight"), wide);
  EXPECT_NE(model.state("narrow.weight"), narrow);
}

TEST(Branch, TrainsAsTheInterpreter) {
  for (double flag : kFlags)
    for (double shift : {-0.5, 0.5})
      expectTrainsAsTheInterpreter(network(sluice::f64), batch(flag, shift), kRows);
}

TEST(Branch, HasTheSameBitsOnAnyNumberOfThreadsAndOnAnAccelerator) {
  for (double flag : kFlags)
    expectSameBits(network(sluice::f32), network(sluice::f32, "sim:0"), batch(flag), kRows);
}

TEST(Branch, IsDecidedByAllReplicas) {
  for (double flag : kFlags)
    for (double shift : {-0.5, 0.5}) {
      expectSameOnReplicas(network(sluice::f64), batch(flag, shift), {{4, 2}, {1, 0, 5}});
      expectSameOnReplicas(network(sluice::f64), batch(flag, shift), {{6}, {4, 2}}, /*microbatches=*/2);
    }
}

/// A network with the values that replicas share in branches and steps. These are rows that a branch returns unchanged,
/// a layer after a sum, weights of each step, and a value without rows that all rows read. Steps also stack sums over
/// rows, and accumulate and scale them.
static std::string shared() {
  using namespace sluice;
  Graph g("shared");
  g.set_capacity(kRows);
  g.set_dtype(f64);
  Tensor x = g.input("x", f64, {Dim{"batch"}, kSteps, kWidth}), flag = g.input("flag", i32, {});
  nn::Module root{g};
  nn::Linear linear{&root, "linear", kWidth, kHidden};
  Tensor p = root.parameter("p", {kWidth}, init::uniform(0.3, 0.9)),
         weights = root.parameter("weights", {kSteps, kWidth, kWidth}, init::uniform(-0.5, 0.5));
  Tensor first = x.select(1, 0);
  Tensor same = cond(flag == 1.0, [&] { return first; }, [&] { return first * p; });
  Tensor summed = cond(flag == 2.0, [&] { return same; }, [&] { return same + linear(same).sum(1, true); });
  ScanStep last = scan({summed, zeros_like(p), p}, {weights.transpose(0, 1), x}, 1,
                       [&](const std::vector<Tensor> &carried, const std::vector<Tensor> &slices) {
                         Tensor h = tanh(matmul(carried[0], slices[0]) + slices[1] * p + carried[2]);
                         Tensor sum = square(h).sum(0) * p;
                         return ScanStep{{h, carried[1] * 0.5 + sum, carried[2] * p}, {sum}};
                       });
  g.output("y", last.carried[0]);
  g.minimize(square(last.carried[0]).mean() + square(last.carried[1]).mean() + last.stacked[0].square().mean(),
             optim::SGD{.lr = 0.1, .momentum = 0.9});
  return g.str();
}

TEST(Branch, SharesRowsAsTheCallDoes) {
  for (double flag : kFlags) {
    expectSameOnReplicas(shared(), batch(flag), {{4, 2}, {1, 0, 5}});
    expectSameOnReplicas(shared(), batch(flag), {{6}, {4, 2}}, /*microbatches=*/2);
  }
}

TEST(Branch, IsCompiledForReplicasMicrobatchesAndShards) {
  for (auto [replicas, microbatches, shards] : {std::array{2, 1, 0}, {1, 3, 0}, {2, 1, 4}}) {
    Compiled one = onSimulators(shared(), 1), several = onSimulators(shared(), replicas, microbatches, shards);
    one.init(3);
    several.init(3);
    for (double flag : kFlags) {
      Values inputs = batch(flag);
      double loss = one.run("train_step", inputs, kRows).at("loss")[0];
      EXPECT_NEAR(several.run("train_step", inputs, kRows).at("loss")[0], loss, 1e-12);
      expectStatesOf(several, one);
    }
  }
}

TEST(Branch, HasTheGradientsOfDifferencesWhereRowsAreSummed) {
  for (double flag : kFlags)
    expectGradientsOfDifferences(shared(), batch(flag), kRows, {"p", "weights"});
}

// One condition is true if any row is, another if all rows are.
TEST(Branch, IsDecidedByAnyRowOfAllReplicas) {
  using namespace sluice;
  Graph g("rows");
  g.set_capacity(kRows);
  g.set_dtype(f64);
  Tensor x = g.input("x", f64, {Dim{"batch"}, kWidth});
  nn::Module root{g};
  Tensor w = root.parameter("w", {kWidth}, init::uniform(0.3, 0.9));
  Tensor y = cond(any(x > 0.9), [&] { return x * w; }, [&] { return x - w; });
  y = cond(all(x > -0.9), [&] { return y * 2.0; }, [&] { return y + 1.0; });
  g.output("y", y);
  g.minimize(square(y).mean(), optim::SGD{.lr = 0.1});
  for (double last : {0.0, 1.0, -1.0}) {
    Values inputs{{"x", std::vector<double>(size_t(kRows * kWidth), 0.5)}};
    inputs["x"].back() = last;
    expectSameOnReplicas(g.str(), inputs, {{4, 2}, {1, 0, 5}});
  }
}

/// Branches within branches and within steps. Conditions are computed before the outer branch, in it, and in each step of
/// a scan in it.
static std::string nested(const std::string &devices) {
  using namespace sluice;
  Graph g("nested");
  g.set_devices(devices);
  g.set_capacity(kRows);
  g.set_dtype(f64);
  Tensor x = g.input("x", f64, {Dim{"batch"}, kSteps, kWidth}), flag = g.input("flag", i32, {});
  nn::Module root{g};
  nn::Linear wide{&root, "wide", kWidth, kHidden};
  Tensor decay = root.parameter("decay", {kHidden}, init::uniform(0.3, 0.9)), first = flag == 1.0;
  Tensor h = wide(x);
  auto step = [&](const std::vector<Tensor> &carried, const std::vector<Tensor> &slices) {
    Tensor sum = carried[0] * decay + slices[0];
    Tensor next = cond(
        sum.mean() > 0.0, [&] { return cond(first, [&] { return tanh(sum); }, [&] { return sum * 0.5; }); },
        [&] { return cond(max(sum) > 0.5, [&] { return sin(sum); }, [&] { return square(sum) * decay; }); });
    return ScanStep{{next}, {}};
  };
  Tensor y = cond(
      flag > 0.0,
      [&] {
        Tensor begin = cond(first, [&] { return h.select(1, 0); }, [&] { return h.mean(1) * decay; });
        return scan({begin}, {h}, 1, step).carried[0];
      },
      [&] { return cond(h.mean() > 0.0, [&] { return h.mean(1); }, [&] { return h.select(1, 1) * decay; }); });
  g.output("y", y);
  g.minimize(square(y).mean(), optim::SGD{.lr = 0.1, .momentum = 0.9});
  return g.str();
}

TEST(Branch, IsInABranchOnAnAccelerator) {
  for (const char *devices : {"cpu", "sim:0"}) {
    Compiled model(nested(devices));
    Interpreted reference(nested("cpu"));
    model.init(3);
    for (auto &[name, value] : reference.states)
      value.data = model.state(name);
    for (double flag : kFlags)
      for (double shift : {-0.5, 0.5}) {
        double loss = reference.run("train_step", batch(flag, shift), kRows).at("loss")[0];
        EXPECT_NEAR(model.run("train_step", batch(flag, shift), kRows).at("loss")[0], loss, 1e-11) << devices << flag;
      }
    for (auto &[name, value] : reference.states)
      EXPECT_LT(largestDifference(model.state(name), value.data), 1e-11) << name << " " << devices;
  }
}

// Each call evaluates the condition, independently of earlier calls.
TEST(Branch, IsDecidedInEachCall) {
  Compiled model(network(sluice::f64)), onSim(network(sluice::f64, "sim:0"), {}, {.sim = "seed=5"});
  Interpreted reference(network(sluice::f64));
  model.init(3);
  onSim.init(3);
  for (auto &[name, value] : reference.states)
    value.data = model.state(name);
  for (double flag : {0.0, 1.0, 0.0, 2.0, 1.0}) {
    Values expected = reference.run("predict", batch(flag), kRows);
    for (const char *name : {"y", "last"}) {
      EXPECT_LT(largestDifference(model.run("predict", batch(flag), kRows).at(name), expected.at(name)), 1e-12) << flag;
      EXPECT_LT(largestDifference(onSim.run("predict", batch(flag), kRows).at(name), expected.at(name)), 1e-12) << flag;
    }
  }
}

// In consecutive calls without reads of outputs.
TEST(Branch, IsDecidedWhileCallsAreInFlight) {
  for (const char *devices : {"cpu", "sim:0"}) {
    Compiled model(network(sluice::f64, devices), {}, {.sim = "seed=7"});
    Interpreted reference(network(sluice::f64));
    model.init(3);
    for (auto &[name, value] : reference.states)
      value.data = model.state(name);
    for (double flag : {0.0, 1.0, 1.0, 2.0, 0.0, 1.0}) {
      model.submit("train_step", batch(flag), kRows);
      reference.run("train_step", batch(flag), kRows);
    }
    for (auto &[name, value] : reference.states)
      EXPECT_LT(largestDifference(model.state(name), value.data), 1e-11) << name << " " << devices;
  }
}

// Work before, in and after a branch is captured separately: each call evaluates the condition.
TEST(Branch, IsCutOutOfWhatIsReplayed) {
  useCudaDoubles(/*devices=*/1, /*seed=*/7);
  for (const char *devices : {"sim:0", "cuda:0"}) {
    Compiled model(network(sluice::f32, devices), {}, {.threads = 1, .sim = "seed=3", .replays = false});
    auto trained = [&] {
      model.init(3);
      for (int step = 0; step < 24; ++step)
        model.submit("train_step", batch(kFlags[step % 5 % 3], step % 2 ? 0.5 : -0.5), kRows);
      return model.stateBytes();
    };
    std::vector<std::byte> expected = trained();
    model.restart({.threads = 1, .sim = "seed=3"});
    EXPECT_EQ(trained(), expected) << devices;
    EXPECT_GT(model.program().executor().replayCount().replays, 24) << devices;
  }
}

// A device with another summation order than the host.
TEST(Branch, TrainsOnCudaAsOnTheHost) {
  useCudaDoubles(/*devices=*/1, /*seed=*/5);
  Compiled host(network(sluice::f32)), device(network(sluice::f32, "cuda:0"));
  host.init(3);
  device.init(3);
  for (double flag : {0.0, 1.0, 2.0, 1.0}) {
    double loss = host.run("train_step", batch(flag), kRows).at("loss")[0];
    EXPECT_NEAR(device.run("train_step", batch(flag), kRows).at("loss")[0], loss, 1e-5 * std::abs(loss)) << flag;
  }
  for (const char *name : {"wide.weight", "narrow.weight", "decay"})
    EXPECT_LT(relativeError(device.state(name), host.state(name)), 1e-5) << name;
}
