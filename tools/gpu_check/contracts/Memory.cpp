// Memory: alignment and addresses, the work that frees wait for, and when copies read the host's memory.
#include "tools/gpu_check/contracts/Machine.h"

#include <algorithm>

namespace sluice::gpu_check {

using namespace cuda;

/// Adds a delayed copy of one number to a stream.
static void copyLate(Machine &machine, DriverStream stream, DeviceAddress to, DeviceAddress from) {
  int turns = machine.turns(), zero = 0;
  machine.launch(stream, "copy_late", 1, 1, {&to, &from, &turns, &zero});
}

static void aligned(Machine &machine) {
  for (size_t bytes : {size_t(1), size_t(3), size_t(100), size_t(257), size_t(4097), size_t(1) << 21})
    expect(machine.allocate(bytes) % 256 == 0, std::to_string(bytes) + " bytes lie at no multiple of 256");
}

static void noneOfNothing(Machine &machine) {
  DeviceAddress address = 0;
  expect(machine.driver.allocate(&address, 0) == 1, "an allocation of nothing is no CUDA_ERROR_INVALID_VALUE");
}

static void exhaustion(Machine &machine) {
  size_t free = 0, total = 0;
  machine.check(machine.driver.memoryInfo(&free, &total), "cuMemGetInfo");
  expect(free <= total && total > 0, "more memory is free than there is");
  DeviceAddress address = 0;
  int status = machine.driver.allocate(&address, total + (size_t(1) << 30));
  expect(status == 2, "too much gives " + machine.driver.textOf(status) + ", no CUDA_ERROR_OUT_OF_MEMORY");
  machine.allocate(4096);
}

static void foreignIsNotFreed(Machine &machine) {
  DeviceAddress address = machine.allocate(4096);
  expect(machine.driver.release(address + 256) != 0, "an address within an allocation is freed");
  machine.check(machine.driver.release(address), "cuMemFree");
}

/// Memory that a kernel still reads is freed, allocated again and written by another stream.
static void freeWaits(Machine &machine) {
  DriverStream working = machine.stream(), other = machine.stream();
  std::vector<int> first(1 << 18, 7), second(1 << 18, 9);
  DeviceAddress to = machine.allocate(sizeof(int)), from = machine.place(working, first);
  copyLate(machine, working, to, from);
  machine.check(machine.driver.release(from), "cuMemFree");
  machine.place(other, second);
  expect(machine.read<int>(working, to, 1)[0] == 7, "memory was freed before the work that reads it was done");
}

static void fillIsOrdered(Machine &machine) {
  DriverStream stream = machine.stream();
  DeviceAddress to = machine.allocate(4), from = machine.place(stream, std::vector<int>{5});
  copyLate(machine, stream, to, from);
  machine.check(machine.driver.fill(from, 0xff, 4, stream), "cuMemsetD8Async");
  copyLate(machine, stream, to, from);
  expect(machine.read<int>(stream, to, 1)[0] == -1, "a fill is not done in its place in the stream");
}

/// Pageable memory: a copy to the device completes in the stream's order, whenever the host's memory is read.
static void uploadIsOrdered(Machine &machine) {
  DriverStream stream = machine.stream();
  DeviceAddress first = machine.allocate(4), second = machine.allocate(4),
                from = machine.place(stream, std::vector<int>{1});
  int later = 2;
  copyLate(machine, stream, first, from);
  machine.upload(stream, from, &later, sizeof later);
  copyLate(machine, stream, second, from);
  expect(machine.read<int>(stream, first, 1)[0] == 1, "a copy to the device overtook the kernel before it");
  expect(machine.read<int>(stream, second, 1)[0] == 2, "a kernel overtook the copy to the device before it");
}

static void downloadIsDoneWhenWaitedFor(Machine &machine) {
  DriverStream stream = machine.stream();
  for (size_t count : {size_t(1), size_t(1) << 16, size_t(1) << 22}) {
    std::vector<int> values(count), found(count, -1);
    for (size_t i = 0; i < count; ++i)
      values[i] = int(i * 7);
    DeviceAddress from = machine.place(stream, values);
    machine.download(stream, found.data(), from, count * sizeof(int));
    machine.finish(stream);
    expect(found == values, "the host's memory does not hold what was copied when the stream is done");
  }
}

static void copiesWithin(Machine &machine) {
  DriverStream stream = machine.stream();
  std::vector<int> values(1000, 3);
  DeviceAddress from = machine.place(stream, values), to = machine.allocate(4000);
  machine.check(machine.driver.copyWithin(to, from, 4000, stream), "cuMemcpyDtoDAsync");
  expect(machine.read<int>(stream, to, 1000) == values, "a copy within the device is wrong");
}

static void copiesAcross(Machine &machine) {
  machine.needDevices(2);
  DriverStream stream = machine.stream();
  std::vector<int> values(1000, 3);
  DeviceAddress from = machine.place(stream, values);
  machine.makeCurrent(1);
  DriverStream there = machine.stream();
  DeviceAddress to = machine.allocate(4000);
  machine.check(machine.driver.copyAcross(to, machine.context(1), from, machine.context(0), 4000, there),
                "cuMemcpyPeerAsync");
  expect(machine.read<int>(there, to, 1000) == values, "a copy between devices is wrong");
}

static void hostCopiesInAnyStream(Machine &machine) {
  machine.needDevices(2);
  DeviceAddress to = machine.allocate(4);
  int value = 11;
  machine.makeCurrent(1);
  DriverStream there = machine.stream();
  machine.upload(there, to, &value, sizeof value);
  expect(machine.read<int>(there, to, 1)[0] == 11, "another device's stream does not copy to this one");
}

std::vector<Contract> memoryContracts() {
  return {{"memory.aligned", aligned},
          {"memory.none_of_nothing", noneOfNothing},
          {"memory.exhaustion", exhaustion},
          {"memory.foreign_is_not_freed", foreignIsNotFreed},
          {"memory.free_waits", freeWaits},
          {"memory.fill_is_ordered", fillIsOrdered},
          {"copy.up_is_ordered", uploadIsOrdered},
          {"copy.down_is_done_when_waited_for", downloadIsDoneWhenWaitedFor},
          {"copy.within", copiesWithin},
          {"copy.across", copiesAcross},
          {"copy.in_any_stream", hostCopiesInAnyStream}};
}

} // namespace sluice::gpu_check
