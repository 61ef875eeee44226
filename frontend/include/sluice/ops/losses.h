// Losses and metrics.
#pragma once

#include "sluice/tensor.h"

#include <cstdint>
#include <optional>

namespace sluice {

/// Of the losses of all positions: a mean divides by how many there are, which is by the rows of the call and not by its
/// capacity. Of no rows, it is no number.
enum class Reduction { mean, sum, none };

struct CrossEntropyOptions {
  Tensor weight = {}; ///< [C]: of a position whose label is c, w[c]. No gradient reaches it.
  /// A label, such as PyTorch's default of -100, of positions that count in no loss; none: all count.
  std::optional<std::int64_t> ignore_index = {};
  double label_smoothing = 0; ///< of each position's share, what all classes have alike; from 0 to 1
  Reduction reduction = Reduction::mean;
};
/// Of logits [N, C, d1, ...], or [C], and integer labels [N, d1, ...], or [], each from 0 to C - 1 or `ignore_index`: a call
/// whose input has others is refused. With e for label_smoothing, the loss of a position is
///   -sum over c of w[c] * ((1 - e) * [c is the label] + e / C) * log_softmax(logits)[c],
/// and 0 where the label is ignored. A mean divides the sum of them by that of the weights w[label] of all labels that are not
/// ignored; if all are, it is no number.
/// Classes may also lie in another dimension: cross_entropy(logits.transpose(1, 2), label) reads logits [N, T, C] where they
/// lie. A float target of the logits' shape has each class's share, in place of [c is the label]; then no position is
/// ignored, and a mean divides by the number of positions.
///
/// The loss of an evaluation is the sum over all labels that are not ignored, in all calls, divided by their number.
/// Without such labels, the loss is null. Executables print the perplexity, exp(nll / words), of two metrics with these
/// names:
///   g.metric("nll", cross_entropy(logits, label, {.ignore_index = -100, .reduction = Reduction::none}).sum(1).mean());
///   g.metric("words", ne(label, -100).to(f32).sum(1).mean());
/// Without "words", nll is the mean per word.
Tensor cross_entropy(Arg logits, const Tensor &target, CrossEntropyOptions options);
Tensor cross_entropy(Arg logits, const Tensor &target, Reduction reduction = Reduction::mean);

struct NllLossOptions {
  Tensor weight = {};                            ///< as in CrossEntropyOptions
  std::optional<std::int64_t> ignore_index = {}; ///< likewise
  Reduction reduction = Reduction::mean;
};
/// Of log-probabilities [N, C, d1, ...] in place of logits: -w[label] * log_probabilities[label] of each position.
Tensor nll_loss(Arg log_probabilities, const Tensor &label, NllLossOptions options);
Tensor nll_loss(Arg log_probabilities, const Tensor &label, Reduction reduction = Reduction::mean);

struct BinaryCrossEntropyOptions {
  Tensor weight = {}; ///< of each loss; broadcasts to the logits' shape
  Tensor pos_weight =
      {}; ///< of what the target says is there, such as [C] for classes in the last dimension; broadcasts, too
  Reduction reduction = Reduction::mean;
};
/// -weight * (pos_weight * target * log(sigmoid(x)) + (1 - target) * log(1 - sigmoid(x))) for logits x and targets of their
/// shape from 0 to 1, computed as (1 - target) * x + (1 + (pos_weight - 1) * target) * softplus(-x), which no x overflows. A
/// mean divides by the number of losses, whatever their weights.
Tensor binary_cross_entropy_with_logits(Arg logits, const Tensor &target, BinaryCrossEntropyOptions options = {});

/// Of d = x - target, which have one shape: d^2.
Tensor mse_loss(Arg x, const Tensor &target, Reduction reduction = Reduction::mean);
/// |d|, with gradient 0 at 0.
Tensor l1_loss(Arg x, const Tensor &target, Reduction reduction = Reduction::mean);
/// d^2 / 2 where |d| < delta, delta * (|d| - delta / 2) elsewhere.
Tensor huber_loss(Arg x, const Tensor &target, Reduction reduction = Reduction::mean, double delta = 1.0);
/// d^2 / (2 beta) where |d| < beta, |d| - beta / 2 elsewhere; l1_loss where beta is 0.
Tensor smooth_l1_loss(Arg x, const Tensor &target, Reduction reduction = Reduction::mean, double beta = 1.0);

/// The share of positions whose largest logit is the label's, of those whose label is not ignored: logits and labels as in
/// cross_entropy. The first of equal logits is the largest.
Tensor accuracy(Arg logits, const Tensor &label, std::optional<std::int64_t> ignore_index = {});
/// Likewise of positions where the label's logit is among the k largest: at most k classes, its own among them, have one that is
/// not below it. Equal logits count against it, so that a network that says the same of all classes scores nothing.
Tensor top_k_accuracy(Arg logits, const Tensor &label, std::int64_t k, std::optional<std::int64_t> ignore_index = {});

} // namespace sluice
