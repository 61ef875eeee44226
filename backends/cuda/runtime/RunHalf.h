// The class of the run half's table: a Context with devices by number, timed work, and exchanges.
#pragma once

#include "backends/cuda/runtime/Context.h"
#include "backends/cuda/runtime/NcclGroup.h"
#include "sluice/backend/adapter.h"

#include <memory>
#include <string_view>
#include <utility>
#include <vector>

namespace sluice::cuda {

class Communicator;

/// A class for adapter/run.h.
class RunHalf : public Context {
public:
  static constexpr const char *name = "cuda";

  /// All CUDA contexts share each device's primary context, and with it memory and events. Ranks, the clock and the
  /// timed choices of algorithms belong to a group.
  struct Group {
    std::shared_ptr<RankRegistry> ranks = std::make_shared<RankRegistry>();
    std::shared_ptr<Clock> clock = std::make_shared<Clock>();
    std::shared_ptr<FastestAlgorithms> fastest = std::make_shared<FastestAlgorithms>();
  };
  using Queue = cuda::Queue;
  using Event = cuda::Event;
  using Module = LoadedModule;
  using Sequence = cuda::Sequence;
  using Communicator = cuda::Communicator;

  RunHalf(const sluice_run_options &options, const Group *group)
      : RunHalf(options.settings ? options.settings : "", group ? *group : Group()) {}

  void describe(int32_t ordinal, sluice_device_info &info) { Context::describe(device(ordinal), info); }
  void *allocate(int32_t ordinal, size_t bytes) { return Context::allocate(device(ordinal), bytes); }
  void release(int32_t ordinal, void *address) { Context::release(device(ordinal), address); }
  void clear(int32_t ordinal, void *address) { Context::clear(device(ordinal), address); }
  Module load(int32_t ordinal, std::string_view image) { return Context::load(device(ordinal), image); }
  Queue addQueue(int32_t ordinal, sluice_queue_kind, const char *) { return Context::addQueue(device(ordinal)); }
  void peerLink(int32_t from, int32_t to, sluice_peer_link &link);
  std::vector<sluice_copy_count> copyCounts() const;
  void synchronizeUntil(const Event &event, const backend::Deadline &deadline);
  using Context::remove;
  void remove(const Module &module) { unload(module); }

  void copy(Queue &queue, const sluice_copy &copy) {
    work(queue, [&] { Context::copy(queue, copy); });
  }
  void launch(Queue &queue, const sluice_launch &launch, const Module *module);
  void replay(Queue &queue, const Sequence &sequence) {
    work(queue, [&] { Context::replay(queue, sequence); });
  }
  /// Enqueues work with `put`, and records its start.
  template <typename Put> void work(Queue &queue, Put put) {
    std::shared_ptr<const WorkBegin> begin = beginWork(queue);
    put();
    if (!queue.captures)
      queue.begin = std::move(begin);
  }

  sluice_unique_id uniqueId();
  void beginExchanges() { ncclGroup_.begin(); }
  void endExchanges() { ncclGroup_.end(driver()); }
  /// Submits a request to NCCL now or, between begin and end, at the end.
  void request(Request request) { ncclGroup_.add(driver(), std::move(request)); }
  RankRegistry &ranks() { return *ranks_; }

private:
  RunHalf(const std::string &settings, const Group &group);

  std::shared_ptr<RankRegistry> ranks_; // the group's, or a private one
  NcclGroup ncclGroup_;
};

} // namespace sluice::cuda
