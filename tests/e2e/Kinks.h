// Where a network has a kink: a ReLU at 0, a maximum or minimum at a tie. Rounding may put f32 on one side of it and
// f64 on the other, and then their gradients differ by more than rounding; tests name such places.
#pragma once

#include "tests/e2e/Harness.h"
#include <set>

namespace sluice::test {

/// A model in which `train_step` and `eval_step` also give the distance of every value from its kink.
class Kinks {
public:
  explicit Kinks(const std::string &text);

  /// The model's text with these outputs.
  const std::string &text() const { return modified; }

  /// A value that is on one side in one run and on the other in the other.
  struct Flip {
    std::string place; // "relu of lenet.cpp:14:20 after conv1.bias at [3, 0, 5, 7]"
    double single, exact;
    std::set<std::string> upstream; // parameters that are read before it, whose gradients it changes
  };
  /// From the outputs of two runs.
  std::vector<Flip> findFlips(const Values &single, const Values &exact) const;

private:
  struct Kink {
    std::string output, name;
    std::vector<int64_t> row; // shape of one row
    bool hasSides;            // a tie is neither side; of a ReLU it is the lower one
    std::set<std::string> upstream;
  };

  std::string modified;
  std::vector<Kink> kinks;
};

} // namespace sluice::test
