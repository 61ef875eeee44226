// Where a network has a kink: a ReLU at 0, a maximum or minimum at a tie. Rounding may put f32 on one side of it and
// f64 on the other, and then their gradients differ by more than rounding. Tests name such places, and nudge the f64
// values there over to the other side, so that both take the gradient of the same function.
#pragma once

#include "tests/e2e/Harness.h"

namespace sluice::test {

/// A model in which `train_step` and `eval_step` also give the distance of every value from its kink, and add a nudge
/// to it before.
class Kinks {
public:
  explicit Kinks(const std::string &text);

  /// The model's text with these outputs and inputs.
  const std::string &text() const { return modified; }

  /// Nudges that move nothing, for calls with `rows` rows.
  Values stillness(int64_t rows) const;

  /// A value that is on one side in one run and on the other in the other.
  struct Flip {
    std::string place; // "relu of lenet.cpp:14:20 after conv1.bias at [3, 0, 5, 7]"
    double single, exact;
    std::string nudge; // the input that moves it
    size_t element;
  };
  /// From the outputs of two runs. What is not a number is on a side of its own.
  std::vector<Flip> findFlips(const Values &single, const Values &exact) const;
  /// Changes the nudges of the exact run so that it comes to where the single one is.
  static void nudge(Values &nudges, const std::vector<Flip> &flips);

private:
  struct Kink {
    std::string output, nudge, name;
    std::vector<int64_t> row; // shape of one row
    bool hasSides;            // a tie is neither side; of a ReLU it is the lower one

    int side(double distance) const;
  };

  std::string modified;
  std::vector<Kink> kinks;
};

} // namespace sluice::test
