// How far off training in f32 may be: three times as far as f32 on the host is from the interpreter in f64, or 1e-6 where that is
// smaller.
#pragma once

#include "tests/e2e/Harness.h"

#include <functional>

namespace sluice::test {

/// The loss of each step, and by how much all of them moved each parameter and running statistic.
struct TrainingResult {
  std::vector<double> losses;
  Values changes;

  bool operator==(const TrainingResult &) const = default;
};

class Yardstick {
public:
  using Batch = std::function<Values(int step, int64_t rows)>;

  /// Trains the model of this text, which is for the host alone: on a batch of so many rows in each step.
  Yardstick(const std::string &text, std::vector<int64_t> rows, Batch batch);

  /// The same with another compilation of the model.
  TrainingResult train(Compiled &model) const;
  void expectWithin(const TrainingResult &result) const;
  /// Of a model for devices: its training replays what was captured, is within, and has the same bits without.
  void expectReplaysWithin(Compiled &model) const;

private:
  template <typename Model> TrainingResult trainFromHere(Model &model) const;

  std::vector<int64_t> rows;
  Batch batch;
  std::vector<std::string> names; // of what training moves
  TrainingResult truth, host;
};

} // namespace sluice::test
