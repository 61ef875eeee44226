// Losses and metrics, of floats. A position is one place of the label: scores [N, C, d1, ...] have N * d1 * ...
// positions. Losses and metrics accept merged rows, such as [batch*16, C].
#pragma once

#include "sluice/tensor.h"

#include <cstdint>
#include <optional>

namespace sluice {

/// How a loss combines the losses of its positions. `mean` divides by the number of positions in the rows of the call,
/// not in the capacity, and is NaN without rows. `none` returns the loss of each position.
enum class Reduction { mean, sum, none };

/// Options of cross_entropy.
struct CrossEntropyOptions {
  Tensor weight = {}; ///< [C]: a position with label c counts w[c]; no gradient reaches it
  /// Positions with this label, a 32-bit number, do not count. By default, all positions count (PyTorch ignores the
  /// label -100).
  std::optional<std::int64_t> ignore_index = {};
  double label_smoothing = 0; ///< the share of each position that all classes divide equally, from 0 to 1
  Reduction reduction = Reduction::mean;
};
/// The cross-entropy of logits [N, C, d1, ...] or [C] and a target, as torch.nn.functional.cross_entropy.
///
/// Labels of i32 or i64, [N, d1, ...] or [], are from 0 to C - 1 or `ignore_index`; a call whose input holds others is
/// refused (code 3). With e = label_smoothing, the loss of a position is
///   -sum over c of w[c] * ((1 - e) * [c is the label] + e / C) * log_softmax(logits)[c],
/// and 0 if the label is ignored. The mean divides by the sum of w[label] over all labels that are not ignored, and is
/// NaN if all are. A float target of the logits' shape holds the probability of each class instead; it excludes
/// ignore_index, and the mean divides by the number of positions.
///
/// Classes in another dimension are read in place: cross_entropy(logits.transpose(1, 2), label) for logits [N, T, C].
///
/// An evaluation reports the loss over all labels of all its calls that are not ignored, and null if there are none.
/// Executables print the perplexity, exp(nll / words), of two metrics with these names:
///   g.metric("nll", cross_entropy(logits, label, {.ignore_index = -100, .reduction = Reduction::none}).sum(1).mean());
///   g.metric("words", ne(label, -100).to(f32).sum(1).mean());
/// Without "words", nll is the mean per word.
Tensor cross_entropy(Arg logits, const Tensor &target, CrossEntropyOptions options);
Tensor cross_entropy(Arg logits, const Tensor &target, Reduction reduction = Reduction::mean);

/// Options of nll_loss: as in CrossEntropyOptions.
struct NllLossOptions {
  Tensor weight = {};
  std::optional<std::int64_t> ignore_index = {};
  Reduction reduction = Reduction::mean;
};
/// cross_entropy of labels with log-probabilities [N, C, d1, ...] instead of logits: -w[label] *
/// log_probabilities[label].
Tensor nll_loss(Arg log_probabilities, const Tensor &label, NllLossOptions options);
Tensor nll_loss(Arg log_probabilities, const Tensor &label, Reduction reduction = Reduction::mean);

/// Options of binary_cross_entropy_with_logits. Both weights broadcast to the shape of the logits.
struct BinaryCrossEntropyOptions {
  Tensor weight = {};     ///< of each loss
  Tensor pos_weight = {}; ///< of the positive part of each target, such as [C] for classes in the last dimension
  Reduction reduction = Reduction::mean;
};
/// -weight * (pos_weight * target * log(sigmoid(x)) + (1 - target) * log(1 - sigmoid(x))), without overflow, for logits
/// x and targets from 0 to 1 of their shape and dtype. The mean divides by the number of losses.
Tensor binary_cross_entropy_with_logits(Arg logits, const Tensor &target, BinaryCrossEntropyOptions options = {});

/// d^2 for d = x - target. In this and the next three losses, x and target have one shape and dtype; PyTorch
/// broadcasts.
Tensor mse_loss(Arg x, const Tensor &target, Reduction reduction = Reduction::mean);
/// |d|, with gradient 0 at 0.
Tensor l1_loss(Arg x, const Tensor &target, Reduction reduction = Reduction::mean);
/// d^2 / 2 where |d| < delta, delta * (|d| - delta / 2) elsewhere. delta is above 0.
Tensor huber_loss(Arg x, const Tensor &target, Reduction reduction = Reduction::mean, double delta = 1.0);
/// d^2 / (2 beta) where |d| < beta, |d| - beta / 2 elsewhere; l1_loss if beta is 0. beta is not negative.
Tensor smooth_l1_loss(Arg x, const Tensor &target, Reduction reduction = Reduction::mean, double beta = 1.0);

/// The share of positions whose largest logit is that of the label, among the positions whose label is not ignored.
/// Logits and labels are those of cross_entropy. The first of equal logits is the largest. PyTorch has no equivalent.
Tensor accuracy(Arg logits, const Tensor &label, std::optional<std::int64_t> ignore_index = {});
/// The share of positions whose label is among the k classes with the largest logits. Equal logits count against the
/// label, so that a network that outputs one value for all classes scores 0 (k < C). 1 <= k <= C.
Tensor top_k_accuracy(Arg logits, const Tensor &label, std::int64_t k, std::optional<std::int64_t> ignore_index = {});

} // namespace sluice
