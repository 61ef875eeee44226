// One block of memory for an arena: zeroed, 64-byte aligned, on huge pages where the system has them.
#ifndef SLUICE_RUNTIME_MEMORY_H
#define SLUICE_RUNTIME_MEMORY_H

#include <cstddef>
#include <string>

namespace sluice::runtime {

class Memory {
public:
  Memory() = default;
  /// `what` names the block in the error message.
  Memory(size_t bytes, const std::string &what);
  Memory(Memory &&other) noexcept;
  Memory &operator=(Memory &&other) noexcept;
  ~Memory();

  std::byte *data() const { return data_; }
  size_t size() const { return size_; }

private:
  std::byte *data_ = nullptr;
  size_t size_ = 0;
  void *mapping_ = nullptr;
  size_t mappedBytes_ = 0;
};

} // namespace sluice::runtime

#endif
