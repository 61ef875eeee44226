// What the device can do: multiply-adds in f32 a second by a kernel of nothing else, and bytes a second by a copy within it
// and by copies from and to the host's pinned memory.
#include "tools/gpu_check/contracts/Machine.h"
#include "tools/gpu_check/runner/Parts.h"

#include <algorithm>
#include <chrono>
#include <functional>

namespace sluice::gpu_check {

using namespace cuda;

/// The seconds of one run, the best of those that fit into `limit`.
static double bestOf(Machine &machine, DriverStream stream, double limit, const std::function<void()> &begin) {
  using Clock = std::chrono::steady_clock;
  auto since = [](Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); };
  begin();
  machine.finish(stream);
  double best = 1e9;
  for (auto start = Clock::now(); since(start) < limit;) {
    auto run = Clock::now();
    begin();
    machine.finish(stream);
    best = std::min(best, since(run));
  }
  return best;
}

int measurePeaks(const PartOptions &options) {
  Machine machine(options.folder);
  if (machine.isEmulated()) {
    print({{"name", "peak"}, {"result", "not tried"}, {"detail", "emulated: no figures"}});
    return 0;
  }
  int cores = 0;
  machine.check(machine.driver.deviceAttribute(&cores, DeviceAttribute::Multiprocessors, 0), "cuDeviceGetAttribute");
  DriverStream stream = machine.stream();
  unsigned blocks = unsigned(cores) * 8;
  constexpr unsigned kThreads = 256;
  int turns = 20'000;
  float by = 0.999f;
  DeviceAddress sums = machine.allocate(size_t(blocks) * kThreads * sizeof(float));
  double seconds = bestOf(machine, stream, options.seconds,
                          [&] { machine.launch(stream, "multiply_adds", blocks, kThreads, {&sums, &by, &turns}); });
  double flops = 2.0 * 8 * turns * double(blocks) * kThreads / seconds;
  constexpr size_t kBytes = size_t(1) << 30;
  long long packs = kBytes / 16;
  DeviceAddress from = machine.allocate(kBytes), to = machine.allocate(kBytes);
  machine.check(machine.driver.fill(from, 1, kBytes, stream), "cuMemsetD8Async");
  double copy = bestOf(machine, stream, options.seconds,
                       [&] { machine.launch(stream, "copy_packs", blocks, kThreads, {&to, &from, &packs}); });
  void *pinned = nullptr;
  machine.check(machine.driver.hostAllocate(&pinned, kBytes, kHostMemoryOfAllContexts), "cuMemHostAlloc");
  double up = bestOf(machine, stream, options.seconds, [&] { machine.upload(stream, to, pinned, kBytes); });
  double down = bestOf(machine, stream, options.seconds, [&] { machine.download(stream, pinned, to, kBytes); });
  print({{"name", "peak"},
         {"result", "measured"},
         {"flops", flops},
         {"bandwidth", 2.0 * kBytes / copy},
         {"upload", kBytes / up},
         {"download", kBytes / down}});
  return 0;
}

} // namespace sluice::gpu_check
