// Memory of buffers as devices and plans give it: at a multiple of 64 bytes, which kernels rely on.
#pragma once

#include <cstddef>
#include <new>
#include <vector>

namespace sluice::test {

template <typename T> struct AlignedAllocator {
  using value_type = T;
  static constexpr std::align_val_t kAlignment{64};

  AlignedAllocator() = default;
  template <typename Other> AlignedAllocator(const AlignedAllocator<Other> &) {}
  T *allocate(std::size_t count) { return static_cast<T *>(::operator new(count * sizeof(T), kAlignment)); }
  void deallocate(T *memory, std::size_t) { ::operator delete(memory, kAlignment); }
  bool operator==(const AlignedAllocator &) const = default;
};

using Bytes = std::vector<char, AlignedAllocator<char>>;

} // namespace sluice::test
