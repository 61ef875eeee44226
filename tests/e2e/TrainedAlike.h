// Training checks for every model. Gradients are compared with finite differences and with the interpreter. Bits are
// compared with other thread counts, an accelerator, and unfused code; several replicas are compared with one device.
#pragma once

#include "tests/Worse.h"
#include "tests/e2e/Harness.h"
#include "tests/e2e/replicas/Replicated.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <numeric>

namespace sluice::test {

/// Compares gradients with central differences in generated f64 code. At a learning rate of 0, the gradient is the
/// initial momentum.
inline void expectGradientsOfDifferences(const std::string &text, const Values &inputs, int64_t rows,
                                         const std::vector<std::string> &parameters) {
  Compiled model(text);
  model.init(3);
  model.setState("lr", {0});
  model.run("train_step", inputs, rows);
  std::map<std::string, std::vector<double>> gradients;
  for (const std::string &name : parameters)
    gradients[name] = model.state(name + ".momentum_buffer");
  for (auto &[name, gradient] : gradients) {
    std::vector<double> value = model.state(name), differences;
    auto lossWith = [&, name = name](size_t i, double change) {
      std::vector<double> moved = value;
      moved[i] += change;
      model.setState(name, moved);
      return model.run("train_step", inputs, rows).at("loss")[0];
    };
    for (size_t i = 0; i < value.size(); ++i)
      differences.push_back((lossWith(i, 1e-5) - lossWith(i, -1e-5)) / 2e-5);
    model.setState(name, value);
    EXPECT_LT(largestDifference(gradient, differences), 1e-8) << name;
    EXPECT_GT(largestDifference(gradient, std::vector<double>(gradient.size())), 1e-5) << name;
  }
}

/// Two steps in f64.
inline void expectTrainsAsTheInterpreter(const std::string &text, const Values &inputs, int64_t rows) {
  Compiled model(text);
  Interpreted reference(text);
  model.init(3);
  for (auto &[name, value] : reference.states)
    value.data = model.state(name);
  for (int step = 0; step < 2; ++step) {
    Values actual = model.run("train_step", inputs, rows);
    for (const auto &[name, expected] : reference.run("train_step", inputs, rows))
      EXPECT_LT(largestDifference(actual.at(name), expected), 1e-11) << name;
  }
  for (auto &[name, value] : reference.states)
    EXPECT_LT(largestDifference(model.state(name), value.data), 1e-11) << name;
}

/// The first rows of a batch; inputs without rows are unchanged.
inline Values firstRows(Values inputs, int64_t rows, int64_t fewer) {
  for (auto &[name, values] : inputs)
    if (values.size() >= size_t(rows))
      values.resize(values.size() / size_t(rows) * size_t(fewer));
  return inputs;
}

/// All states after two steps; the second step has fewer rows.
inline std::vector<std::byte> bytesTrained(const std::string &text, const Values &inputs, int64_t rows,
                                           const sluice::CompileOptions &options, const RunOptions &run) {
  Compiled model(text, options, run);
  model.init(7);
  model.run("train_step", inputs, rows);
  model.run("train_step", firstRows(inputs, rows, rows / 2), rows / 2);
  return model.stateBytes();
}

/// `onSim` is the model's text for an accelerator.
inline void expectSameBits(const std::string &text, const std::string &onSim, const Values &inputs, int64_t rows) {
  std::vector<std::byte> one = bytesTrained(text, inputs, rows, {}, {.threads = 1});
  EXPECT_EQ(one, bytesTrained(text, inputs, rows, {}, {.threads = 2}));
  EXPECT_EQ(one, bytesTrained(text, inputs, rows, {}, {.threads = 4}));
  EXPECT_EQ(one, bytesTrained(onSim, inputs, rows, {}, {.sim = "seed=3"}));
  sluice::CompileOptions unfused;
  unfused.fuse = false;
  EXPECT_EQ(one, bytesTrained(text, inputs, rows, unfused, {}));
}

/// In the interpreter: two steps with each of these row shares, in this number of microbatches.
inline void expectSameOnReplicas(const std::string &text, const Values &inputs,
                                 const std::vector<std::vector<int64_t>> &allShares, int64_t microbatches = 1) {
  for (const std::vector<int64_t> &shares : allShares) {
    int64_t rows = std::accumulate(shares.begin(), shares.end(), int64_t(0));
    Interpreted one(text);
    Replicated several(text, shares.size(), /*syncBatchNorm=*/true, {}, "parallel", microbatches);
    one.init(3);
    several.run("init", {{"key", {0, 3}}}, std::vector<int64_t>(shares.size(), 1));
    for (auto &states : several.states)
      states.at("lr").data = one.state("lr");
    for (int step = 0; step < 2; ++step)
      for (const char *entry : {"predict", "eval_step", "train_step"}) {
        Values actual = several.run(entry, inputs, shares, shares.size() - 1);
        for (const auto &[name, values] : one.run(entry, inputs, rows))
          EXPECT_LT(largestDifference(actual.at(name), values), 1e-12)
              << entry << " " << name << " of " << shares.size();
      }
    for (const auto &[name, value] : one.states)
      for (auto &states : several.states)
        EXPECT_LT(largestDifference(states.at(name).data, value.data), 1e-12) << name << " of " << shares.size();
  }
}

} // namespace sluice::test
