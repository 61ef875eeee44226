#include "backends/cpu/runtime/HostMemory.h"

#include <algorithm>
#include <cstdint>
#include <sys/mman.h>
#include <utility>

namespace sluice::cpu {

static constexpr size_t kHugePage = size_t(2) << 20;

HostMemory::HostMemory(size_t bytes) {
  // A huge page must be aligned to its size, so a large block is mapped with slack to align its start.
  bool huge = bytes >= kHugePage;
  mappedBytes_ = huge ? bytes + kHugePage : std::max<size_t>(bytes, 1);
  mapping_ = mmap(nullptr, mappedBytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapping_ == MAP_FAILED) {
    mapping_ = nullptr;
    return;
  }
  uintptr_t start = reinterpret_cast<uintptr_t>(mapping_);
  if (huge) {
    start = (start + kHugePage - 1) / kHugePage * kHugePage;
    madvise(reinterpret_cast<void *>(start), bytes, MADV_HUGEPAGE); // a hint: failure only costs speed
  }
  address_ = reinterpret_cast<void *>(start);
}

HostMemory::HostMemory(HostMemory &&other) noexcept
    : address_(std::exchange(other.address_, nullptr)), mapping_(std::exchange(other.mapping_, nullptr)),
      mappedBytes_(other.mappedBytes_) {}

HostMemory::~HostMemory() {
  if (mapping_)
    munmap(mapping_, mappedBytes_);
}

} // namespace sluice::cpu
