#include "backends/sim/runtime/DeviceMemory.h"

#include "backends/sim/runtime/Error.h"

#include <cerrno>
#include <cstring>
#include <sys/mman.h>
#include <unistd.h>

namespace sluice::sim {

std::string deviceText(int32_t device) { return device == SLUICE_HOST ? "the host" : "sim:" + std::to_string(device); }

static size_t pageBytes() {
  static const auto bytes = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

static size_t roundUp(size_t bytes, size_t multiple) { return (bytes + multiple - 1) / multiple * multiple; }

/// The bytes of an allocation's mapping: its pages between two guard pages. It has at least one page, so that each
/// allocation has a distinct address.
static size_t mappedBytes(size_t bytes) { return roundUp(bytes == 0 ? 1 : bytes, pageBytes()) + 2 * pageBytes(); }

static void unmap(uintptr_t address, size_t bytes) {
  munmap(reinterpret_cast<void *>(address - pageBytes()), mappedBytes(bytes));
}

static void protect(const Buffer &buffer, int protection) {
  if (buffer.bytes == 0)
    return;
  uintptr_t address = reinterpret_cast<uintptr_t>(buffer.address);
  uintptr_t begin = address / pageBytes() * pageBytes(), end = roundUp(address + buffer.bytes, pageBytes());
  if (mprotect(reinterpret_cast<void *>(begin), end - begin, protection) != 0)
    throw Error(SLUICE_INTERNAL, std::string("sim: mprotect failed: ") + std::strerror(errno));
}

DeviceMemory::~DeviceMemory() {
  for (const auto &[address, block] : blocks_)
    unmap(address, block.bytes);
}

void *DeviceMemory::allocate(size_t bytes) {
  if (bytes > static_cast<size_t>(free_))
    throw Error(SLUICE_EXHAUSTED, deviceText(device_) + " is out of memory: " + std::to_string(bytes) +
                                      " bytes were asked for, " + std::to_string(free_) + " of " +
                                      std::to_string(capacity_) + " are free");
  // NORESERVE: a virtual device may have more memory than the machine, as long as not all of it is touched.
  void *mapping = mmap(nullptr, mappedBytes(bytes), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping == MAP_FAILED)
    throw Error(SLUICE_EXHAUSTED, "the machine has no memory for " + deviceText(device_) + ": " +
                                      std::to_string(bytes) + " bytes were asked for");
  void *address = static_cast<char *>(mapping) + pageBytes();
  blocks_[reinterpret_cast<uintptr_t>(address)] = {allocations_++, bytes};
  free_ -= static_cast<int64_t>(bytes);
  return address;
}

size_t DeviceMemory::sizeOf(void *address) const {
  auto block = blocks_.find(reinterpret_cast<uintptr_t>(address));
  if (block == blocks_.end())
    throw Error(SLUICE_USAGE, "no allocation of " + deviceText(device_) + " begins at this address");
  return block->second.bytes;
}

void DeviceMemory::release(void *address) {
  size_t bytes = sizeOf(address);
  unmap(reinterpret_cast<uintptr_t>(address), bytes);
  free_ += static_cast<int64_t>(bytes);
  blocks_.erase(reinterpret_cast<uintptr_t>(address));
}

/// The system frees the pages. New pages are zero, and cost nothing until they are touched.
void DeviceMemory::clear(void *address) {
  if (madvise(address, roundUp(sizeOf(address), pageBytes()), MADV_DONTNEED) != 0)
    throw Error(SLUICE_INTERNAL, std::string("sim: madvise failed: ") + std::strerror(errno));
}

DeviceMemory::Blocks::const_iterator DeviceMemory::find(const void *address, size_t bytes) const {
  uintptr_t begin = reinterpret_cast<uintptr_t>(address);
  auto next = blocks_.upper_bound(begin);
  if (next == blocks_.begin())
    return blocks_.end();
  auto block = std::prev(next);
  size_t offset = begin - block->first;
  return offset <= block->second.bytes && bytes <= block->second.bytes - offset ? block : blocks_.end();
}

DeviceMemory::Address DeviceMemory::locate(const void *address) const {
  auto block = find(address, 0);
  return {block->second.number, reinterpret_cast<uintptr_t>(address) - block->first};
}

Unlocked::Unlocked(std::vector<Buffer> buffers) : buffers_(std::move(buffers)) {
  // Writable buffers last: a buffer that shares a page with a read-only one must be able to write it.
  for (const Buffer &buffer : buffers_)
    if (buffer.access == SLUICE_READ)
      protect(buffer, PROT_READ);
  for (const Buffer &buffer : buffers_)
    if (buffer.access != SLUICE_READ)
      protect(buffer, PROT_READ | PROT_WRITE);
}

Unlocked::~Unlocked() {
  for (const Buffer &buffer : buffers_)
    protect(buffer, PROT_NONE);
}

} // namespace sluice::sim
