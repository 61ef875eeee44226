// What the verbs share: an instance made as the command line says, the data folder, and means over rows.
#ifndef SLUICE_RUNTIME_RUNNER_SESSION_H
#define SLUICE_RUNTIME_RUNNER_SESSION_H

#include "runtime/Instance.h"
#include "runtime/runner/Options.h"

#include <string>
#include <vector>

namespace sluice::runtime {

/// The artifact that this executable contains, as an instance.
Instance startInstance(const Options &options);

/// Runs the entry `init`, if there is one, with the key that the seed gives.
void initialise(Instance &instance, uint64_t seed);

/// A hyperparameter and its new value.
struct Setting {
  const State *state = nullptr;
  double value = 0;
};

/// Checks `--set` against the plan; an unknown name is a usage error that lists the names.
std::vector<Setting> checkSettings(const Plan &plan, const std::vector<NamedText> &settings);
void applySettings(Instance &instance, const std::vector<Setting> &settings);

/// The folder of `--data`, else of SLUICE_DATA, else what the plan names, else the images installed beside the
/// executable.
std::string dataFolder(const Options &options, const Plan &plan);

/// Rows per step: `--batch`, at most the capacity, or the capacity.
int64_t batchRows(const Options &options, const Plan &plan);

/// Means over rows of an entry's scalar outputs. A step's output is itself the mean over its rows, so it counts as
/// often.
class Means {
public:
  explicit Means(const Entry &entry);

  void add(const Instance &instance, int64_t rows);
  void reset();

  int64_t rows() const { return rows_; }
  const std::vector<const Value *> &outputs() const { return outputs_; }
  /// The mean of the output called `name`; nothing if there is none.
  std::optional<double> mean(std::string_view name) const;
  double mean(size_t output) const { return sums_[output] / static_cast<double>(rows_); }

  /// For checkpoints.
  const std::vector<double> &sums() const { return sums_; }
  void restore(const std::vector<double> &sums, int64_t rows);

private:
  std::vector<const Value *> outputs_;
  std::vector<double> sums_;
  int64_t rows_ = 0;
};

} // namespace sluice::runtime

#endif
