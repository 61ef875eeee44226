// Shared code of the language models gpt2, lstm and lstm_lm.
#pragma once

#include "Options.h"
#include <sluice/sluice.h>

#include <string>

namespace models {

/// A graph that learns the next word at each position of a row, with its inputs. The default data set is the shipped
/// text, `kjv`.
struct NextWord {
  NextWord(const std::string &name, const Options &options);

  /// Trains on the mean loss per word. The graph outputs `logits` [batch, length, words], and has the metric `nll`, the
  /// mean loss per word.
  sluice::Graph minimize(const sluice::Tensor &logits, const sluice::optim::Optimizer &optimizer);
  /// Trains on the mean over rows of the sum of each row's losses, with the gradient norm clipped to 5. Outputs and
  /// metrics are those of `minimize`.
  sluice::Graph minimize_sums(const sluice::Tensor &logits, const sluice::optim::Optimizer &optimizer);

  sluice::Graph graph;
  sluice::Tensor tokens; ///< i32 [batch, length]
  sluice::Tensor label;  ///< i32, the following words
};

} // namespace models
