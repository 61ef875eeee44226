// Kinks of a network: a ReLU at 0, or a maximum or minimum at a tie. Rounding may place f32 and f64 on different sides
// of a kink, so that their gradients differ by more than rounding. Tests find such places and nudge the f64 values to
// the other side, so that both compute the gradient of the same function.
#pragma once

#include "tests/e2e/Harness.h"

namespace sluice::test {

/// A model in which `train_step` and `eval_step` also output the distance of every value from its kink, after adding a
/// nudge input.
class Kinks {
public:
  explicit Kinks(const std::string &text);

  /// The model's text with these outputs and inputs.
  const std::string &text() const { return modified; }

  /// Zero nudges for calls with `rows` rows.
  Values stillness(int64_t rows) const;

  /// A value on different sides of its kink in two runs.
  struct Flip {
    std::string place; // "relu of lenet.cpp:14:20 after conv1.bias at [3, 0, 5, 7]"
    double single, exact;
    std::string nudge; // the input that nudges it
    size_t element;
  };
  /// Compares the outputs of two runs. NaN counts as a third side.
  std::vector<Flip> findFlips(const Values &single, const Values &exact) const;
  /// Adjusts the nudges of the exact run so that it agrees with the single-precision run.
  static void nudge(Values &nudges, const std::vector<Flip> &flips);

private:
  struct Kink {
    std::string output, nudge, name;
    std::vector<int64_t> row; // shape of one row
    bool hasSides;            // a tie is on neither side; for a ReLU it is on the lower side

    int side(double distance) const;
  };

  std::string modified;
  std::vector<Kink> kinks;
};

} // namespace sluice::test
