// Figures of an entry's scalar outputs over many calls.
#pragma once

#include "runtime/exec/Instance.h"

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sluice::runtime {

/// One element, of all rows: such as a loss.
bool isScalar(const Value &value);

/// What several calls make of an output, or of a formula of outputs.
struct NamedFigure {
  std::string name;
  double value;
  bool isOverCalls = false; ///< a mean over calls, which depends on how rows are cut into calls
  bool isUndefined = false; ///< a formula that is no number, of numbers: such as 0 / 0 where no label counts
};

/// A call's output is the mean over its rows, so it counts as often, or a sum over them, where its name ends in `/sum`. Formulas of
/// such figures are computed by the entry point `metrics`, in f64 (runtime/plan/PLAN.md). Outputs stay where they are made until a
/// figure is asked for.
class Means {
public:
  /// From now on `instance`, which must outlive this, keeps the scalar outputs of `entry`.
  Means(Instance &instance, const Entry &entry);

  /// Counts the call that was just made.
  void add(int64_t rows);
  void reset();

  int64_t rows() const { return rows_; }
  const std::vector<const Value *> &outputs() const { return outputs_; }
  /// All figures. Where one is called `nll`, a sum of -log of what words were given, there is `perplexity`, too: exp of it,
  /// of each of `words`, if that is another one. This is that of all words, of which exp of each call's is not the mean.
  /// It may run `metrics`: of several processes, all call it.
  std::vector<NamedFigure> results();
  /// The figure of the output called `name` over the calls whose outputs are known; nothing if there are none. With
  /// accelerators those are the calls before the last time that a figure was asked for: progress is not worth a wait.
  std::optional<double> meanSoFar(std::string_view name);

  /// A call, numbered from 0 since this was made, and what it gave.
  struct Call {
    int64_t number;
    double value;
  };
  /// The first call whose `loss` was not finite, of those whose outputs are known; nothing if there is none.
  const std::optional<Call> &firstNonFinite() const { return firstNonFinite_; }

  /// For checkpoints.
  const std::vector<double> &sums();
  void restore(const std::vector<double> &sums, int64_t rows);

private:
  void collect();
  double figure(const Value &output, int64_t rows) const;
  /// The output called so, or null.
  const Value *find(std::string_view name) const;
  std::map<std::string, NamedFigure> formulas();

  Instance *instance_;
  const Entry *entry_;
  std::vector<const Value *> outputs_;
  std::vector<double> sums_;     ///< of the outputs, those that are means weighted by rows
  std::optional<size_t> loss_;   ///< among the outputs
  std::vector<int64_t> pending_; ///< rows of the calls whose outputs are not in the sums
  int64_t callsKnown_ = 0;       ///< that ever were in them
  std::optional<Call> firstNonFinite_;
  int64_t rows_ = 0, rowsKnown_ = 0;
};

} // namespace sluice::runtime
