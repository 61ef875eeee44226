// Launches: when arguments are read, and the valid sizes.
#include "tools/gpu_check/contracts/Machine.h"

namespace sluice::gpu_check {

using namespace cuda;

static constexpr int kInvalidValue = 1;
static constexpr int kFirstLost = 700, kLastLost = 719;

static void argumentsAreReadAtOnce(Machine &machine) {
  DriverStream stream = machine.stream();
  std::vector<DeviceAddress> numbers;
  int value = 0;
  DeviceAddress to = 0;
  std::vector<void *> arguments = {&to, &value};
  for (value = 0; value < 20; ++value) {
    numbers.push_back(to = machine.allocate(4));
    machine.launch(stream, "store", 1, 1, arguments);
  }
  to = machine.allocate(4);
  value = -1;
  for (int i = 0; i < 20; ++i)
    expect(machine.read<int>(stream, numbers[size_t(i)], 1)[0] == i, "arguments were read after the launch");
}

static int launchSized(Machine &machine, unsigned blocks, unsigned threads) {
  DriverStream stream = machine.stream();
  DeviceAddress to = machine.allocate(size_t(blocks + 1) * (threads + 1) * 4);
  void *arguments[] = {&to};
  int status =
      machine.driver.launch(machine.function("places"), blocks, 1, 1, threads, 1, 1, 0, stream, arguments, nullptr);
  machine.finish(stream);
  return status;
}

static void blocksHave1024Threads(Machine &machine) {
  machine.check(launchSized(machine, 1, 1024), "cuLaunchKernel with 1024 threads");
  expect(launchSized(machine, 1, 1025) != 0, "a block has 1025 threads");
}

static void gridsHaveABlock(Machine &machine) {
  expect(launchSized(machine, 0, 32) == kInvalidValue, "a grid of nothing is no CUDA_ERROR_INVALID_VALUE");
}

static void gridsMayBeLarge(Machine &machine) {
  machine.check(launchSized(machine, machine.isEmulated() ? 1000 : 100'000, 32), "cuLaunchKernel with many blocks");
}

/// More than 48 KB require a function attribute; 227 KB is the maximum.
static void sharedMemoryIsAskedFor(Machine &machine) {
  constexpr int kCount = 20 << 10, kBytes = kCount * int(sizeof(int));
  DriverStream stream = machine.stream();
  DeviceAddress to = machine.allocate(kBytes);
  DriverFunction function = machine.function("count_in_shared");
  int count = kCount;
  void *arguments[] = {&to, &count};
  auto launch = [&] { return machine.driver.launch(function, 1, 1, 1, 128, 1, 1, kBytes, stream, arguments, nullptr); };
  auto allow = [&](int bytes) {
    return machine.driver.setAttribute(function, FunctionAttribute::MostSharedBytes, bytes);
  };
  expect(launch() == kInvalidValue, "80 KB of shared memory are there unasked");
  expect(allow(228 << 10) == kInvalidValue, "there are 228 KB of shared memory");
  machine.check(allow(kBytes), "cuFuncSetAttribute with 80 KB of shared memory");
  machine.check(launch(), "cuLaunchKernel with 80 KB of shared memory");
  std::vector<int> found = machine.read<int>(stream, to, kCount);
  for (int i = 0; i < kCount; ++i)
    expect(found[size_t(i)] == i, "shared memory beyond 48 KB does not hold what was stored");
}

static void everyThreadHasItsPlace(Machine &machine) {
  DriverStream stream = machine.stream();
  DeviceAddress to = machine.allocate(7 * 96 * 4);
  machine.launch(stream, "places", 7, 96, {&to});
  std::vector<int> found = machine.read<int>(stream, to, 7 * 96);
  for (int block = 0; block < 7; ++block)
    for (int thread = 0; thread < 96; ++thread)
      expect(found[size_t(96 * block + thread)] == 70000 + 100 * block + thread, "a thread has another place");
}

/// A kernel that writes to unmapped memory: the wait returns the error, it is one of those that lose a device, and it
/// is permanent.
static void faultsLoseTheDevice(Machine &machine) {
  if (machine.isEmulated())
    throw NotTried("the emulated device ends the process");
  DriverStream stream = machine.stream();
  DeviceAddress nowhere = 16;
  machine.launch(stream, "fault", 1, 1, {&nowhere});
  int status = machine.driver.streamSynchronize(stream);
  expect(status >= kFirstLost && status <= kLastLost, "a fault gives " + machine.driver.textOf(status));
  DeviceAddress address = 0;
  int later = machine.driver.allocate(&address, 64);
  expect(later >= kFirstLost && later <= kLastLost, "after a fault memory gives " + machine.driver.textOf(later));
}

std::vector<Contract> launchContracts() {
  return {{"launch.arguments_are_read_at_once", argumentsAreReadAtOnce},
          {"launch.threads_of_a_block", blocksHave1024Threads},
          {"launch.no_blocks", gridsHaveABlock},
          {"launch.many_blocks", gridsMayBeLarge},
          {"launch.places", everyThreadHasItsPlace},
          {"launch.shared_bytes", sharedMemoryIsAskedFor},
          {"launch.faults_lose_the_device", faultsLoseTheDevice}};
}

} // namespace sluice::gpu_check
