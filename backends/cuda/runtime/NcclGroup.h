// The NCCL calls of a thread in one group: one call, or all between begin and end.
#pragma once

#include "backends/cuda/runtime/Ranks.h"

#include <functional>
#include <vector>

namespace sluice::cuda {

/// The NCCL calls of a rank. They run with its device's context current and the ranks' mutex held.
struct Request {
  std::shared_ptr<Rank> rank;
  std::function<NcclResult(const Nccl &nccl)> call;
  std::string what; ///< "all-reduce of dw1"
};

class NcclGroup {
public:
  void begin() { ++depth_; }
  /// Submits all calls if this is the outermost end. Throws the first error after all have completed.
  void end(const Driver &driver);
  /// Submits now, or at the end.
  void add(const Driver &driver, Request request);

private:
  int depth_ = 0;
  std::vector<Request> requests_;
};

} // namespace sluice::cuda
