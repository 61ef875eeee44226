// Figures of an entry's scalar outputs over many calls.
#pragma once

#include "runtime/instance/Instance.h"

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sluice::runtime {

/// Whether a value has one element for all rows, for example a loss.
bool isScalar(const Value &value);

/// The figure of an output, or of a formula of outputs, over several calls.
struct NamedFigure {
  std::string name;
  double value;
  bool isOverCalls = false; ///< a mean over calls, which depends on how rows are divided into calls
  bool isUndefined = false; ///< a formula of finite values with a result that is not finite, for example 0 / 0 if no
                            ///< label counts
};

/// Combines the outputs of many calls. An output is the mean over the rows of its call and is weighted by their number.
/// If its name ends in `/sum`, it is a sum over the rows instead. The entry point `metrics` computes formulas of such
/// figures in f64 (runtime/plan/PLAN.md). Outputs stay where they are produced until a figure is requested.
class Means {
public:
  /// From now on `instance`, which must outlive this, keeps the scalar outputs of `entry`.
  Means(Instance &instance, const Entry &entry);

  /// Records a call that was just made.
  void add(int64_t rows);
  void reset();

  int64_t rows() const { return rows_; }
  const std::vector<const Value *> &outputs() const { return outputs_; }
  /// All figures. If one is `nll`, the sum of -log of the words' probabilities, `perplexity` is added:
  /// exp(nll / words), or exp(nll) if there is no figure `words`. This is the perplexity over all words, which is not
  /// the mean of the calls' perplexities. With several processes, all must call this, because it may run `metrics`.
  std::vector<NamedFigure> results();
  /// The figure of the output `name` over the calls whose outputs are known; empty if there are none. With accelerators
  /// these are the calls before the last request for a figure, because progress reports do not wait for devices.
  std::optional<double> meanSoFar(std::string_view name);

  /// A call, numbered from 0 since construction, and its loss.
  struct Call {
    int64_t number;
    double value;
  };
  /// The first call whose `loss` was not finite, among the calls whose outputs are known; empty if there is none.
  const std::optional<Call> &firstNonFinite() const { return firstNonFinite_; }

  /// For checkpoints: for each output, the sum over all calls, weighted by rows unless its name ends in `/sum`.
  const std::vector<double> &sums();
  void restore(const std::vector<double> &sums, int64_t rows);

private:
  /// Adds the outputs of the pending calls to the sums; waits for them.
  void collect();
  double figure(const Value &output, int64_t rows) const;
  /// The output with this name, or null.
  const Value *find(std::string_view name) const;
  std::map<std::string, NamedFigure> formulas();

  Instance *instance_;
  const Entry *entry_;
  std::vector<const Value *> outputs_;
  std::vector<double> sums_;     ///< as returned by `sums`
  std::optional<size_t> loss_;   ///< index of the loss in `outputs_`
  std::vector<int64_t> pending_; ///< rows of the calls whose outputs are not in the sums
  int64_t callsKnown_ = 0;       ///< calls whose outputs were ever added to the sums
  std::optional<Call> firstNonFinite_;
  int64_t rows_ = 0, rowsKnown_ = 0;
};

} // namespace sluice::runtime
