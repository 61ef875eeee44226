// The file of `--log`: one JSON object per epoch, without duplicates even if a run was killed and resumed.
#pragma once

#include "runtime/base/Json.h"

#include <string>

namespace sluice::runtime {

class EpochLog {
public:
  /// Keeps the lines of the first `epochsDone` epochs that the file has, and drops the rest. An empty path logs
  /// nothing.
  EpochLog(const std::string &path, int64_t epochsDone);
  EpochLog(const EpochLog &) = delete;
  EpochLog &operator=(const EpochLog &) = delete;
  ~EpochLog();

  void append(const Json &line);

private:
  std::string path_;
  int descriptor_ = -1;
};

} // namespace sluice::runtime
