// The peaks of the device: f32 multiply-adds per second in a kernel of nothing else, and bytes per second of copies
// within it and from and to the host's pinned memory. An emulated device runs each once, on little data.
#include "tools/gpu_check/contracts/Machine.h"
#include "tools/gpu_check/runner/Parts.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <limits>

namespace sluice::gpu_check {

using namespace cuda;

/// The seconds of the fastest run within `limit`; if that is 0, it runs once and returns nothing.
static double bestOf(Machine &machine, DriverStream stream, double limit, const std::function<void()> &begin) {
  using Clock = std::chrono::steady_clock;
  auto since = [](Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); };
  begin();
  machine.finish(stream);
  double best = std::numeric_limits<double>::infinity();
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
  bool isEmulated = machine.isEmulated();
  double limit = isEmulated ? 0 : options.seconds;
  int cores = 0;
  machine.check(machine.driver.deviceAttribute(&cores, DeviceAttribute::Multiprocessors, 0), "cuDeviceGetAttribute");
  DriverStream stream = machine.stream();
  unsigned blocks = isEmulated ? 1 : unsigned(cores) * 8;
  constexpr unsigned kThreads = 256;
  int turns = isEmulated ? 1 : 20'000;
  float by = 0.999f;
  DeviceAddress sums = machine.allocate(size_t(blocks) * kThreads * sizeof(float));
  double seconds = bestOf(machine, stream, limit,
                          [&] { machine.launch(stream, "multiply_adds", blocks, kThreads, {&sums, &by, &turns}); });
  double flops = 2.0 * 8 * turns * double(blocks) * kThreads / seconds;
  size_t bytes = isEmulated ? 4096 : size_t(1) << 30;
  long long packs = static_cast<long long>(bytes / 16);
  DeviceAddress from = machine.allocate(bytes), to = machine.allocate(bytes);
  machine.check(machine.driver.fill(from, 1, bytes, stream), "cuMemsetD8Async");
  double copy = bestOf(machine, stream, limit,
                       [&] { machine.launch(stream, "copy_packs", blocks, kThreads, {&to, &from, &packs}); });
  void *pinned = nullptr;
  machine.check(machine.driver.hostAllocate(&pinned, bytes, kHostMemoryOfAllContexts), "cuMemHostAlloc");
  double down = bestOf(machine, stream, limit, [&] { machine.download(stream, pinned, to, bytes); });
  double up = bestOf(machine, stream, limit, [&] { machine.upload(stream, from, pinned, bytes); });
  std::vector<unsigned char> copied = machine.read<unsigned char>(stream, from, bytes);
  expect(std::all_of(copied.begin(), copied.end(), [](unsigned char byte) { return byte == 1; }),
         "a copy brings something else");
  if (isEmulated) {
    print({{"name", "peak"},
           {"result", "passed"},
           {"detail", "emulated: kernels and copies run, and there are no figures"}});
    return 0;
  }
  print({{"name", "peak"},
         {"result", "measured"},
         {"flops", flops},
         {"bandwidth", 2.0 * double(bytes) / copy},
         {"upload", double(bytes) / up},
         {"download", double(bytes) / down}});
  return 0;
}

} // namespace sluice::gpu_check
