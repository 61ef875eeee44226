// Devices and their memory.
#include "tests/conformance/Group.h"
#include "tests/conformance/RunHalf.h"

#include <algorithm>
#include <cstddef>
#include <set>
#include <string>

namespace sluice::conformance {

static void devicesTellWhatTheyAre(const Subject &subject) {
  RunHalf half(subject);
  for (int32_t device = 0; device < half.devices(); ++device) {
    sluice_device_info info = half.info(device);
    expect(info.name && *info.name, "a device has no name");
    expect(info.memory_bytes > 0, "a device has no memory");
    expect(info.free_bytes >= 0 && info.free_bytes <= info.memory_bytes, "more memory is free than there is");
    expect(info.compute_major >= 0 && info.compute_minor >= 0 && (info.compute_major > 0 || info.compute_minor == 0),
           "a device has compute capability " + std::to_string(info.compute_major) + "." +
               std::to_string(info.compute_minor));
  }
}

static std::string identityOf(const RunHalf &half, int32_t device) {
  const char *identity = half.info(device).identity;
  return identity ? identity : "";
}

static void devicesAreToldApart(const Subject &subject) {
  RunHalf half(subject);
  if (!half.info().identity)
    throw Skipped("it does not tell which device is which");
  std::set<std::string> identities;
  for (int32_t device = 0; device < half.devices(); ++device) {
    std::string identity = identityOf(half, device);
    expect(!identity.empty(), "a device has no identity, and others have");
    expect(identities.insert(identity).second, "two devices are both " + identity);
    expect(identityOf(half, device) == identity, "a device is another one when it is asked again");
  }
}

static void contextsOfAGroupSeeTheSameDevices(const Subject &subject) {
  Group group(subject);
  RunHalf one(subject, 1, group.get()), other(subject, 1, group.get());
  if (!one.info().identity)
    throw Skipped("it does not tell which device is which");
  for (int32_t device = 0; device < one.devices(); ++device)
    expect(identityOf(one, device) == identityOf(other, device),
           "a device is " + identityOf(one, device) + " to one context of a group, and another one to the next");
}

static bool isPowerOfTwo(size_t number) { return number > 0 && (number & (number - 1)) == 0; }

static void memoryIsAsDevicesLikeIt(const Subject &subject) {
  RunHalf half(subject);
  size_t alignment = half.info().alignment;
  if (alignment == 0)
    throw Skipped("it says nothing of alignment: multiples of 64 bytes");
  expect(isPowerOfTwo(alignment), std::to_string(alignment) + " bytes are no alignment");
  for (size_t bytes : {size_t(1), size_t(65), size_t(4097)})
    expect(reinterpret_cast<uintptr_t>(half.allocate(bytes)) % alignment == 0,
           "an address is no multiple of the " + std::to_string(alignment) + " bytes that the device likes");
}

/// A struct of version 2.0 ends before what 2.1 appended.
static void olderInfosAreFilledToTheirEnd(const Subject &subject) {
  RunHalf half(subject);
  sluice_device_info info = {};
  info.struct_size = offsetof(sluice_device_info, alignment);
  info.alignment = 12345;
  info.compute_major = info.compute_minor = -5;
  info.identity = "another";
  half.check(half.table().device_info(half.get(), 0, &info), "device_info");
  expect(info.memory_bytes > 0, "an info of version 2.0 is not filled in");
  expect(info.alignment == 12345 && info.compute_major == -5 && info.compute_minor == -5 &&
             info.identity == std::string("another"),
         "device_info writes beyond the size of the struct that it was given");
}

static void peersTellTheirLinks(const Subject &subject) {
  RunHalf half(subject);
  if (!half.table().peer_link)
    throw Skipped("it does not tell how its devices are linked");
  for (int32_t from = 0; from < half.devices(); ++from)
    for (int32_t to = 0; to < half.devices(); ++to) {
      Larger<sluice_peer_link> link{{sizeof(sluice_peer_link), 0, 0, 0}};
      half.check(half.table().peer_link(half.get(), from, to, &link.known), "peer_link");
      expect(link.isWhole(), "peer_link writes beyond the size of the struct that it was given");
      expect(link.known.bandwidth >= 0 && link.known.latency >= 0, "a link takes less than no time");
    }
  sluice_peer_link link{sizeof(link), 0, 0, 0};
  sluice_status status = half.table().peer_link(half.get(), 0, half.devices(), &link);
  expect(status == SLUICE_UNSUPPORTED, "the link to an absent device ends with status " + std::to_string(status));
}

static void hostMemoryIsCopiedFromAndTo(const Subject &subject) {
  RunHalf half(subject);
  if (!half.table().host_allocate)
    throw Skipped("it gives no host memory");
  for (size_t bytes : {size_t(1), size_t(4097), size_t(1) << 20}) {
    void *memory = nullptr;
    half.check(half.table().host_allocate(half.get(), bytes, &memory), "host_allocate");
    auto *host = static_cast<unsigned char *>(memory);
    expect(reinterpret_cast<uintptr_t>(host) % 64 == 0, "an address of host memory is no multiple of 64");
    expect(std::all_of(host, host + bytes, [](unsigned char byte) { return byte == 0; }), "host memory is not zero");
    Bytes data = pattern(bytes);
    void *address = half.allocate(bytes);
    sluice_queue *queue = half.queue();
    std::copy(data.begin(), data.end(), host);
    half.copy(queue, {sizeof(sluice_copy), SLUICE_HOST, 0, host, address, bytes, "up"});
    half.finish(queue);
    std::fill(host, host + bytes, 0);
    half.copy(queue, {sizeof(sluice_copy), 0, SLUICE_HOST, address, host, bytes, "down"});
    half.finish(queue);
    expect(std::equal(data.begin(), data.end(), host), "host memory of the backend does not hold what was copied");
    half.check(half.table().host_release(half.get(), memory), "host_release");
  }
  alignas(64) static unsigned char foreign[64];
  expect(half.table().host_release(half.get(), foreign) != SLUICE_OK, "host memory was released that it never gave");
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

static void isZeroAgainAfterClear(const Subject &subject) {
  RunHalf half(subject);
  if (!half.table().clear)
    throw Skipped("it does not clear memory");
  Bytes data = pattern(10000);
  void *address = half.allocate(data.size());
  sluice_queue *queue = half.queue();
  for (int round = 0; round < 3; ++round) {
    half.upload(queue, data, address);
    half.finish(queue);
    half.check(half.table().clear(half.get(), 0, address), "clear");
    expect(half.read(address, data.size()) == Bytes(data.size(), 0), "cleared memory is not zero");
  }
  alignas(64) static unsigned char foreign[64];
  expect(half.table().clear(half.get(), 0, foreign) != SLUICE_OK, "memory was cleared that it never gave");
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
          {"devices.identity", devicesAreToldApart},
          {"devices.identity_in_a_group", contextsOfAGroupSeeTheSameDevices},
          {"devices.older_info", olderInfosAreFilledToTheirEnd},
          {"devices.peer_link", peersTellTheirLinks},
          {"memory.alignment", memoryIsAsDevicesLikeIt},
          {"memory.of_the_host", hostMemoryIsCopiedFromAndTo},
          {"memory.aligned_and_zero", isAlignedAndZero},
          {"memory.zero_after_release", isZeroAgainAfterRelease},
          {"memory.clear", isZeroAgainAfterClear},
          {"memory.blocks_are_apart", blocksAreApart},
          {"memory.counted", isCounted},
          {"memory.exhaustion", exhaustionIsSurvived},
          {"memory.of_each_device", eachDeviceHasItsOwn}};
}

} // namespace sluice::conformance
