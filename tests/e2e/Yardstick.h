// Tolerance for f32 training: three times the host's f32 error relative to the interpreter in f64, or 1e-6 if that
// error is smaller.
#pragma once

#include "tests/e2e/Harness.h"

#include <functional>

namespace sluice::test {

/// The loss of each step, and the total change of each parameter and running statistic.
struct TrainingResult {
  std::vector<double> losses;
  Values changes;

  bool operator==(const TrainingResult &) const = default;
};

class Yardstick {
public:
  using Batch = std::function<Values(int step, int64_t rows)>;

  /// Trains the model of this text, which is host-only, on a batch with the given number of rows in each step.
  Yardstick(const std::string &text, std::vector<int64_t> rows, Batch batch);

  /// The same with another compilation of the model.
  TrainingResult train(Compiled &model) const;
  void expectWithin(const TrainingResult &result) const;
  /// For a device model: training must replay captured work, stay within the tolerance, and have the same bits without
  /// replays.
  void expectReplaysWithin(Compiled &model) const;

private:
  template <typename Model> TrainingResult trainFromHere(Model &model) const;

  std::vector<int64_t> rows;
  Batch batch;
  std::vector<std::string> names; // states that training changes
  TrainingResult truth, host;
};

} // namespace sluice::test
