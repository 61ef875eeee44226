// Checkpoints of training: one safetensors file each, holding every state and where in the data the run stands.
#pragma once

#include "runtime/instance/Instance.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace sluice::runtime {

/// Where a run stands. Together with the states it decides every bit of what follows.
struct TrainPosition {
  uint64_t seed = 0;
  int64_t batch = 0;            ///< rows per step
  int64_t rows = 0;             ///< size of the training set
  int64_t epoch = 0;            ///< epochs finished
  int64_t step = 0;             ///< steps since the start
  int64_t rowsDone = 0;         ///< rows of the epoch at hand
  std::optional<bool> shuffles; ///< whether the rows are shuffled; empty in checkpoints of earlier versions
  std::vector<double> sums;     ///< over those rows: each scalar output of train_step times its rows
};

/// Keeps a folder to this process as long as it lives, however it ends.
class FolderLock {
public:
  /// Fails, naming the folder and the process, if another one has it.
  explicit FolderLock(const std::string &path);
  FolderLock(const FolderLock &) = delete;
  FolderLock &operator=(const FolderLock &) = delete;
  ~FolderLock();

private:
  int descriptor_;
};

/// The checkpoints of one folder, named by their step. The folder has one trainer at a time.
class CheckpointFolder {
public:
  /// Creates the folder if it is missing, locks it, and removes what a killed process left half-written. A reader, beside a process
  /// that does all this, only loads.
  explicit CheckpointFolder(const std::string &path, bool isReader = false);

  bool empty() const { return files().empty(); }

  /// Writes a checkpoint and removes all but the newest three.
  void save(const Instance &instance, const TrainPosition &position) const;

  /// Loads the newest valid checkpoint into `instance`; damaged ones are skipped with a warning. One of another model
  /// is an error.
  std::optional<TrainPosition> load(Instance &instance) const;

private:
  /// Names of the checkpoints, newest first.
  std::vector<std::string> files() const;

  std::string path_;
  std::optional<FolderLock> lock_; ///< none of a reader
};

} // namespace sluice::runtime
