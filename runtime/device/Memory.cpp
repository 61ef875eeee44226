#include "runtime/device/Memory.h"

#include "runtime/base/Status.h"
#include "runtime/base/Text.h"

#include <cstdint>
#include <sys/mman.h>
#include <utility>

namespace sluice::runtime {

static constexpr size_t hugePage = size_t(2) << 20;

Memory::Memory(size_t bytes, const std::string &what) : size_(bytes) {
  if (bytes == 0)
    return;
  // A huge page must start at its own size, so a large block is mapped with room to move its start up.
  bool huge = bytes >= hugePage;
  mappedBytes_ = huge ? bytes + hugePage : bytes;
  mapping_ = mmap(nullptr, mappedBytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapping_ == MAP_FAILED) {
    mapping_ = nullptr;
    failExhausted(concat("out of memory: ", what, " needs ", bytesText(bytes)));
  }
  uintptr_t start = reinterpret_cast<uintptr_t>(mapping_);
  if (huge) {
    start = (start + hugePage - 1) / hugePage * hugePage;
    madvise(reinterpret_cast<void *>(start), bytes, MADV_HUGEPAGE); // a wish: its failure costs speed only
  }
  data_ = reinterpret_cast<std::byte *>(start);
}

Memory::Memory(Memory &&other) noexcept { *this = std::move(other); }

Memory &Memory::operator=(Memory &&other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  std::swap(mapping_, other.mapping_);
  std::swap(mappedBytes_, other.mappedBytes_);
  return *this;
}

Memory::~Memory() {
  if (mapping_)
    munmap(mapping_, mappedBytes_);
}

} // namespace sluice::runtime
