// Buffer memory as devices and plans allocate it: aligned to 64 bytes, which kernels rely on. It ends at a page
// boundary, and an access beyond its end kills the process. A sanitizer of kernels (tests/cuda_emu/HostCompiler.h)
// detects an access to the first byte beyond.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <new>
#include <sys/mman.h>
#include <vector>

namespace sluice::test {

inline const bool kSanitizerGuards = std::getenv("CUDA_EMU_SANITIZE") != nullptr;

template <typename T> struct GuardedAllocator {
  using value_type = T;
  static constexpr std::size_t kAlignment = 64, kPage = 4096;
  static constexpr std::size_t padded(std::size_t bytes, std::size_t to) { return (bytes + to - 1) / to * to; }

  GuardedAllocator() = default;
  template <typename Other> GuardedAllocator(const GuardedAllocator<Other> &) {}
  T *allocate(std::size_t count) {
    std::size_t bytes = count * sizeof(T), inside = padded(bytes, kPage);
    if (kSanitizerGuards)
      return static_cast<T *>(::operator new(bytes, std::align_val_t(kAlignment)));
    void *pages = mmap(nullptr, inside + kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED || mprotect(static_cast<char *>(pages) + inside, kPage, PROT_NONE) != 0)
      throw std::bad_alloc();
    return reinterpret_cast<T *>(static_cast<char *>(pages) + inside - padded(bytes, kAlignment));
  }
  void deallocate(T *memory, std::size_t count) {
    std::size_t bytes = count * sizeof(T), inside = padded(bytes, kPage);
    if (kSanitizerGuards)
      return ::operator delete(memory, std::align_val_t(kAlignment));
    munmap(reinterpret_cast<char *>(memory) + padded(bytes, kAlignment) - inside, inside + kPage);
  }
  bool operator==(const GuardedAllocator &) const = default;
};

using Bytes = std::vector<char, GuardedAllocator<char>>;

} // namespace sluice::test
