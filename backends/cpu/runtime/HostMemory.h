// One block of the host's memory: zeroed, 64-byte aligned, on huge pages where the system has them.
#pragma once

#include <cstddef>

namespace sluice::cpu {

class HostMemory {
public:
  /// If the system has no memory, the block has a null address.
  explicit HostMemory(size_t bytes);
  HostMemory(HostMemory &&other) noexcept;
  HostMemory &operator=(HostMemory &&) = delete;
  ~HostMemory();

  void *address() const { return address_; }

private:
  void *address_ = nullptr, *mapping_ = nullptr;
  size_t mappedBytes_ = 0;
};

} // namespace sluice::cpu
