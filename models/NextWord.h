// What the language models share: words in, the score of every word as the next one out.
#pragma once

#include "Options.h"
#include <sluice/sluice.h>

#include <string>

namespace models {

/// A graph that learns which word follows each of a row, and its inputs: the shipped text, unless other data are named.
struct NextWord {
  NextWord(const std::string &name, const Options &options);

  /// Trains on the mean loss of a word; reports logits [batch, length, words].
  sluice::Graph minimize(const sluice::Tensor &logits, const sluice::optim::Optimizer &optimizer);
  /// Trains on the sum of a row's losses, with gradients of a norm of 5 at most.
  sluice::Graph minimize_sums(const sluice::Tensor &logits, const sluice::optim::Optimizer &optimizer);

  sluice::Graph graph;
  sluice::Tensor tokens; ///< i32 [batch, length]
  sluice::Tensor label;  ///< those that follow
};

} // namespace models
