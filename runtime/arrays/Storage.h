// The memory of an array, with the work that writes and reads it.
#pragma once

#include "runtime/arrays/ArrayDevices.h"
#include "runtime/plan/Layout.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

namespace sluice::runtime {

/// How another library uses the memory of an array (dlpack.h).
enum class Sharing {
  none,
  readOnly, ///< work must not write it
  readWrite
};

/// The elements of an array in another order than row-major, with padding: the layout of an input or output of a program.
struct Packing {
  DType dtype;
  Shape shape;
  Layout layout;
  size_t bytes; ///< with padding

  size_t rowMajorBytes() const { return static_cast<size_t>(elementsOf(shape)) * sizeOf(dtype); }
  bool operator==(const Packing &) const = default;
};
using PackingPointer = std::shared_ptr<const Packing>;

/// The memory of an array: row-major, packed, or both. Each form is made from the other when it is asked for. Several
/// threads may read it.
class Storage {
public:
  /// Allocates a block from the device's memory. `stream` belongs to this thread. `what` names the array in the
  /// out-of-memory error.
  Storage(ArrayDevice &device, size_t bytes, Stream &stream, const std::string &what);
  /// The same for packed elements, on the host. A program writes them at `packedAddress`.
  Storage(ArrayDevice &device, PackingPointer packing, Stream &stream, const std::string &what);
  /// Memory of another library. `release` is called after all work that uses it.
  Storage(ArrayDevice &device, std::byte *address, size_t bytes, Sharing sharing, std::function<void()> release);
  Storage(const Storage &) = delete;
  ~Storage();

  ArrayDevice &device() const { return *device_; }
  /// The row-major elements. If there are only packed ones, waits for them and unpacks them.
  std::byte *address() {
    std::byte *known = rowMajor_.load(std::memory_order_acquire);
    return known ? known : unpacked();
  }
  /// The elements in another order. If there are none in this order, waits for the row-major ones and packs them. They
  /// are valid until the next write; another library must not share the memory.
  std::byte *packedAddress(const PackingPointer &packing);
  /// The bytes of the row-major elements.
  size_t bytes() const { return bytes_; }
  Sharing sharing() const { return sharing_; }
  /// Marks the memory as read and written by another library, if it is not shared yet.
  void share();
  /// The number of writes so far.
  int64_t writes() const { return writes_; }

  /// Makes later work of `stream` wait for the writes of this storage.
  void waitToRead(Stream &stream);
  /// Makes later work of `stream` wait for the reads and writes of this storage.
  void waitToWrite(Stream &stream);
  /// Records work that reads or writes the storage; null if the work is complete.
  void noteRead(const WorkPointer &work);
  void noteWrite(const WorkPointer &work);
  /// Waits on the host for the writes, and throws their error.
  void synchronize();
  /// Waits for reads and writes. Throws only the errors of writes.
  void finish();

private:
  struct Packed {
    PackingPointer packing;
    ArrayMemory::Block block;
  };

  /// Throws (exhausted) if the device was lost.
  void requirePresence() const;
  std::byte *unpacked();
  void dropPacked();

  ArrayDevice *device_;
  ArrayMemory::Block block_; ///< row-major
  size_t bytes_;
  std::atomic<std::byte *> rowMajor_ = nullptr; ///< the address of `block_`, once its elements are there
  ArrayMemory *memory_ = nullptr;               ///< of the block; null for memory of others
  std::function<void()> release_;
  std::atomic<Sharing> sharing_ = Sharing::none;
  std::atomic<int64_t> writes_ = 0;
  std::mutex mutex_;           ///< guards the members below
  std::vector<Packed> packed_; ///< at most one of each order
  WorkPointer written_;
  std::vector<WorkPointer> uses_; ///< the last work of each stream that uses it
};

using StoragePointer = std::shared_ptr<Storage>;

/// Copies bytes between storages on any two devices, and counts the copy. `site` names it in errors and traces.
/// `keepFrom` is the owner of `from`, or null: if another library shares its memory, it is kept alive until the copy is
/// complete.
void copyStorage(Storage &from, size_t fromOffset, Storage &to, size_t toOffset, size_t bytes, const CallSite &site,
                 StoragePointer keepFrom);
/// Enqueues a copy between two devices in a stream of one of them, and counts it.
void copyBetween(Stream &stream, ArrayDevice &from, const std::byte *source, ArrayDevice &to, std::byte *target,
                 size_t bytes, const CallSite &site);
/// Copies bytes from a storage to host memory, and waits. Counts a copy if the storage is on an accelerator.
void readStorage(Storage &from, size_t offset, std::span<std::byte> to, const CallSite &site);

} // namespace sluice::runtime
