// Copies of every kind give the same bytes, and are counted.
#include "tests/conformance/RunHalf.h"

#include <algorithm>

namespace sluice::conformance {

static void toTheDeviceAndBack(const Subject &subject) {
  RunHalf half(subject);
  for (size_t bytes : {size_t(1), size_t(3), size_t(64), size_t(1000), size_t(4096), size_t(1000003)}) {
    Bytes data = pattern(bytes);
    void *address = half.allocate(bytes);
    sluice_queue *queue = half.queue();
    half.upload(queue, data, address);
    half.finish(queue);
    expect(half.read(address, bytes) == data, std::to_string(bytes) + " bytes came back changed");
  }
}

static void partsAtAnyOffset(const Subject &subject) {
  RunHalf half(subject);
  Bytes data = pattern(300), part = pattern(70, 2);
  auto *address = static_cast<unsigned char *>(half.allocate(300));
  sluice_queue *queue = half.queue();
  half.upload(queue, data, address);
  half.upload(queue, part, address + 33);
  half.finish(queue);
  std::copy(part.begin(), part.end(), data.begin() + 33);
  expect(half.read(address, 300) == data, "a part was not written to its place alone");
}

static void nothingIsFine(const Subject &subject) {
  RunHalf half(subject);
  void *address = half.allocate(64);
  sluice_queue *queue = half.queue();
  half.upload(queue, Bytes(), address);
  half.copy(queue, {sizeof(sluice_copy), SLUICE_HOST, 0, nullptr, nullptr, 0, "up"});
  half.copy(queue, {sizeof(sluice_copy), 0, 0, nullptr, nullptr, 0, "within"});
  half.copy(queue, {sizeof(sluice_copy), 0, SLUICE_HOST, nullptr, nullptr, 0, "down"});
  half.finish(queue);
}

static void withinADevice(const Subject &subject) {
  RunHalf half(subject);
  Bytes data = pattern(5000);
  void *from = half.allocate(5000), *to = half.allocate(5000);
  sluice_queue *queue = half.queue();
  half.upload(queue, data, from);
  half.copy(queue, {sizeof(sluice_copy), 0, 0, from, to, 5000, "within"});
  half.finish(queue);
  expect(half.read(to, 5000) == data, "a copy within a device changed the bytes");
  expect(half.read(from, 5000) == data, "a copy changed its source");
}

static void betweenDevices(const Subject &subject) {
  RunHalf half(subject, 2);
  Bytes data = pattern(5000);
  void *from = half.allocate(5000, 0), *to = half.allocate(5000, 1);
  sluice_queue *queue = half.queue(1);
  half.upload(queue, data, from, 0);
  half.copy(queue, {sizeof(sluice_copy), 0, 1, from, to, 5000, "across"});
  half.finish(queue);
  expect(half.read(to, 5000, 1) == data, "a copy between devices changed the bytes");
}

/// The copies and bytes counted from one device to another.
static std::pair<int64_t, int64_t> countOf(RunHalf &half, int32_t from, int32_t to) {
  std::vector<Larger<sluice_copy_count>> counts(64);
  size_t count = 0;
  half.check(half.table().copy_counts(half.get(), &counts.front().known, sizeof counts.front(), counts.size(), &count),
             "copy_counts");
  expect(std::all_of(counts.begin(), counts.end(), [](auto &item) { return item.isWhole(); }),
         "copy_counts writes where a later version has members that this one does not know");
  for (size_t i = 0; i < count; ++i)
    if (counts[i].known.from_device == from && counts[i].known.to_device == to)
      return {counts[i].known.copies, counts[i].known.bytes};
  return {0, 0};
}

static void areCounted(const Subject &subject) {
  RunHalf half(subject);
  if (!half.table().copy_counts)
    throw Skipped("it does not count copies");
  Bytes data = pattern(1000), small(200);
  void *from = half.allocate(1000), *to = half.allocate(1000);
  sluice_queue *queue = half.queue();
  half.upload(queue, data, from);
  half.upload(queue, data, from);
  half.copy(queue, {sizeof(sluice_copy), 0, 0, from, to, 300, "within"});
  half.download(queue, to, small);
  half.finish(queue);
  expect(countOf(half, SLUICE_HOST, 0) == std::pair<int64_t, int64_t>(2, 2000),
         "copies to the device were not counted right");
  expect(countOf(half, 0, 0) == std::pair<int64_t, int64_t>(1, 300), "copies within the device were not counted right");
  expect(countOf(half, 0, SLUICE_HOST) == std::pair<int64_t, int64_t>(1, 200),
         "copies to the host were not counted right");
}

std::vector<Test> copyTests() {
  return {{"copy.to_the_device_and_back", toTheDeviceAndBack},
          {"copy.parts_at_any_offset", partsAtAnyOffset},
          {"copy.nothing", nothingIsFine},
          {"copy.within_a_device", withinADevice},
          {"copy.between_devices", betweenDevices},
          {"copy.counted", areCounted}};
}

} // namespace sluice::conformance
