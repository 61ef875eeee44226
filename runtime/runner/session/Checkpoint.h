// Training checkpoints: one safetensors file each, with every state and the position in the data.
#pragma once

#include "runtime/instance/Instance.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace sluice::runtime {

/// The position of a run. Together with the states it determines every bit of the rest of the run.
struct TrainPosition {
  uint64_t seed = 0;
  int64_t batch = 0;            ///< rows per step
  int64_t rows = 0;             ///< size of the training set
  int64_t epoch = 0;            ///< epochs finished
  int64_t step = 0;             ///< steps since the start
  int64_t rowsDone = 0;         ///< rows done in the current epoch
  std::optional<bool> shuffles; ///< whether the rows are shuffled; empty in checkpoints of earlier versions
  std::vector<double> sums;     ///< Means::sums of train_step over those rows
};

/// Locks a folder for this process. The lock also ends if the process crashes.
class FolderLock {
public:
  /// Fails with the names of the folder and the process if another process holds the lock.
  explicit FolderLock(const std::string &path);
  FolderLock(const FolderLock &) = delete;
  FolderLock &operator=(const FolderLock &) = delete;
  ~FolderLock();

private:
  int descriptor_;
};

/// The checkpoints of one folder, named by step. A folder has one trainer at a time.
class CheckpointFolder {
public:
  /// Creates the folder if missing, locks it, and removes partial files of killed processes. A reader does none of
  /// this, and may only load: the first process of the run holds the lock.
  explicit CheckpointFolder(const std::string &path, bool isReader = false);

  bool empty() const { return files().empty(); }

  /// Writes a checkpoint and removes all but the newest three.
  void save(const Instance &instance, const TrainPosition &position) const;

  /// Loads the newest valid checkpoint into `instance`; skips damaged checkpoints with a warning. A checkpoint of
  /// another model is an error.
  std::optional<TrainPosition> load(Instance &instance) const;

private:
  /// Names of the checkpoints, newest first.
  std::vector<std::string> files() const;

  std::string path_;
  std::optional<FolderLock> lock_; ///< none for a reader
};

} // namespace sluice::runtime
