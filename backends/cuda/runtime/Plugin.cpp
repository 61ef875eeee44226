// The run half of the CUDA backend: devices, streams and kernels through the backend ABI.
#include "backends/cuda/runtime/Communicator.h"

#include <string>
#include <thread>

namespace sluice::cuda {

/// The setting of a context: "products=own", "products=library", or nothing.
static Products productsIn(const std::string &settings) {
  if (settings.empty())
    return Products::LibraryIfThere;
  if (settings == "products=own")
    return Products::Own;
  if (settings == "products=library")
    return Products::Library;
  throw Error(SLUICE_USAGE, "cuda has no setting '" + settings + "'; it has products=own and products=library");
}

RunHalf::RunHalf(const std::string &settings, const Group &group)
    : Context(productsIn(settings), group.clock, group.fastest), ranks_(group.ranks) {}

void RunHalf::peerLink(int32_t from, int32_t to, sluice_peer_link &link) {
  link.direct = reaches(device(from), device(to));
  link.bandwidth = link.latency = 0;
}

std::vector<sluice_copy_count> RunHalf::copyCounts() const {
  std::vector<sluice_copy_count> found;
  for (const auto &[ends, total] : counts())
    found.push_back({ends.first, ends.second, total.first, total.second});
  return found;
}

/// The driver has no wait with a deadline, so the event is polled.
void RunHalf::synchronizeUntil(const Event &event, const backend::Deadline &deadline) {
  constexpr std::chrono::microseconds kPause{20};
  while (!isDone(event)) {
    if (backend::Deadline::Clock::now() >= deadline.time)
      throw Error(SLUICE_DEADLINE, "cuda: work was not done within " + std::to_string(deadline.seconds) + " s");
    std::this_thread::sleep_for(kPause);
  }
}

void RunHalf::launch(Queue &queue, const sluice_launch &launch, const Module *module) {
  work(queue, [&] {
    if (!module || !launch.function)
      throw Error(SLUICE_UNSUPPORTED, std::string("cuda runs kernels of its modules, and ") + launch.name + " is none" +
                                          (launch.function ? std::string(": ") + launch.function : ""));
    Context::launch(queue, *module, launch);
  });
}

} // namespace sluice::cuda

extern "C" const sluice_backend *sluice_backend_query(void) {
  static constexpr sluice_backend backend = sluice::backend::backendTable(
      "cuda", "NVIDIA's devices", nullptr, &sluice::backend::runTable<sluice::cuda::RunHalf>);
  return &backend;
}
