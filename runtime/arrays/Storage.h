// The memory of an array, with the work that writes and reads it.
#pragma once

#include "runtime/arrays/ArrayDevices.h"

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

/// How others than arrays use the memory of an array.
enum class Sharing {
  none,
  readOnly, ///< work must not write it
  readWrite
};

/// Several threads may read one storage.
class Storage {
public:
  /// A block of the device's array memory, for work of `stream` of this thread; `what` names it in the out-of-memory
  /// error.
  Storage(ArrayDevice &device, size_t bytes, Stream &stream, const std::string &what);
  /// Memory of others on the device, which `release` gives back after all work that uses it.
  Storage(ArrayDevice &device, std::byte *address, size_t bytes, Sharing sharing, std::function<void()> release);
  Storage(const Storage &) = delete;
  ~Storage();

  ArrayDevice &device() const { return *device_; }
  std::byte *address() const { return block_.address; }
  size_t bytes() const { return bytes_; }
  Sharing sharing() const { return sharing_; }
  /// Others read and write the memory from now on, if it is not shared yet.
  void share();
  /// The number of writes so far.
  int64_t writes() const { return writes_; }

  /// Orders the work of `stream` that follows after the writes of this storage, or also after its reads.
  void waitToRead(Stream &stream);
  void waitToWrite(Stream &stream);
  /// Records work, which may be null, that reads or writes it.
  void noteRead(const WorkPointer &work);
  void noteWrite(const WorkPointer &work);
  /// Makes the host wait for the writes. Throws the error of the work that wrote it.
  void synchronize();
  /// The same for all work that uses it.
  void finish();

private:
  /// Fails if the device was lost.
  void requirePresence() const;

  ArrayDevice *device_;
  ArrayMemory::Block block_;
  size_t bytes_;
  ArrayMemory *memory_ = nullptr; ///< of the block; null for memory of others
  std::function<void()> release_;
  std::atomic<Sharing> sharing_ = Sharing::none;
  std::atomic<int64_t> writes_ = 0;
  std::mutex mutex_; ///< guards the members below
  WorkPointer written_;
  std::vector<WorkPointer> uses_; ///< the last work of each stream that uses it
};

using StoragePointer = std::shared_ptr<Storage>;

/// Copies the bytes of one storage to another, on any two devices, and counts the copy. `label` names it in traces.
void copyStorage(Storage &from, size_t fromOffset, Storage &to, size_t toOffset, size_t bytes, const CallSite &site,
                 StoragePointer keepFrom);
/// Puts a copy between two devices into a stream of one of them, and counts it.
void copyBetween(Stream &stream, ArrayDevice &from, const std::byte *source, ArrayDevice &to, std::byte *target,
                 size_t bytes, const CallSite &site);
/// Copies bytes from a storage to host memory, and waits. Counts a copy if the storage is on an accelerator.
void readStorage(Storage &from, size_t offset, std::span<std::byte> to, const CallSite &site);

} // namespace sluice::runtime
