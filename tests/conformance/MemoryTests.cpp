// Devices and their memory.
#include "tests/conformance/RunHalf.h"

#include <algorithm>

namespace sluice::conformance {

static void devicesTellWhatTheyAre(const Subject &subject) {
  RunHalf half(subject);
  for (int32_t device = 0; device < half.devices(); ++device) {
    sluice_device_info info = half.info(device);
    expect(info.name && *info.name, "a device has no name");
    expect(info.memory_bytes > 0, "a device has no memory");
    expect(info.free_bytes >= 0 && info.free_bytes <= info.memory_bytes, "more memory is free than there is");
  }
}

static void isAlignedAndZero(const Subject &subject) {
  RunHalf half(subject);
  for (size_t bytes : {size_t(1), size_t(63), size_t(64), size_t(4097), size_t(1) << 20}) {
    void *address = half.allocate(bytes);
    expect(reinterpret_cast<uintptr_t>(address) % 64 == 0, "an address is no multiple of 64");
    Bytes found = half.read(address, bytes);
    expect(std::all_of(found.begin(), found.end(), [](unsigned char byte) { return byte == 0; }), "memory is not zero");
  }
}

static void isZeroAgainAfterRelease(const Subject &subject) {
  RunHalf half(subject);
  Bytes data = pattern(4096);
  for (int round = 0; round < 4; ++round) {
    void *address = half.allocate(data.size());
    expect(half.read(address, data.size()) == Bytes(data.size(), 0), "memory that was used before is not zero");
    sluice_queue *queue = half.queue();
    half.upload(queue, data, address);
    half.finish(queue);
    half.release(address);
  }
}

static void blocksAreApart(const Subject &subject) {
  RunHalf half(subject);
  sluice_queue *queue = half.queue();
  std::vector<void *> blocks;
  std::vector<Bytes> data;
  for (unsigned i = 0; i < 50; ++i)
    data.push_back(pattern(100 + 37 * i, i));
  for (const Bytes &bytes : data) {
    blocks.push_back(half.allocate(bytes.size()));
    half.upload(queue, bytes, blocks.back());
  }
  half.finish(queue);
  for (size_t i = 0; i < blocks.size(); ++i)
    expect(half.read(blocks[i], data[i].size()) == data[i], "a block does not hold what was written to it");
}

static void isCounted(const Subject &subject) {
  RunHalf half(subject);
  if (half.info().host_accessible)
    throw Skipped("the device's memory is the host's, which others use as well");
  int64_t before = half.info().free_bytes;
  void *address = half.allocate(size_t(1) << 20);
  expect(half.info().free_bytes <= before - (1 << 20), "free_bytes did not go down with an allocation");
  half.release(address);
  expect(half.info().free_bytes >= before - (1 << 16), "free_bytes did not come back with a release");
}

static void exhaustionIsSurvived(const Subject &subject) {
  RunHalf half(subject);
  size_t tooMuch = size_t(half.info().memory_bytes) + (size_t(1) << 30);
  void *address = nullptr;
  sluice_status status = half.table().allocate(half.get(), 0, tooMuch, &address);
  expect(status == SLUICE_EXHAUSTED, "allocating more than there is ends with status " + std::to_string(status));
  std::string error = half.lastError();
  expect(error.find(subject.name + ":0") != std::string::npos, "the error does not name the device: " + error);
  expect(error.find(std::to_string(tooMuch)) != std::string::npos,
         "the error does not name the bytes asked for: " + error);
  half.allocate(4096);
}

static void eachDeviceHasItsOwn(const Subject &subject) {
  RunHalf half(subject, 2);
  int64_t before = half.info(1).free_bytes;
  half.allocate(size_t(1) << 20, 0);
  expect(half.info(1).free_bytes == before, "an allocation on one device took memory of another");
}

std::vector<Test> memoryTests() {
  return {{"devices.info", devicesTellWhatTheyAre},
          {"memory.aligned_and_zero", isAlignedAndZero},
          {"memory.zero_after_release", isZeroAgainAfterRelease},
          {"memory.blocks_are_apart", blocksAreApart},
          {"memory.counted", isCounted},
          {"memory.exhaustion", exhaustionIsSurvived},
          {"memory.of_each_device", eachDeviceHasItsOwn}};
}

} // namespace sluice::conformance
