#include "runtime/arrays/Storage.h"

#include "runtime/base/Status.h"
#include "runtime/base/Text.h"

#include <algorithm>
#include <cstring>

namespace sluice::runtime {

Storage::Storage(ArrayDevice &device, size_t bytes, Stream &stream, const std::string &what)
    : device_(&device), bytes_(bytes), memory_(&device.memory()) {
  block_ = memory_->take(bytes, stream, what);
  rowMajor_ = block_.address;
}

Storage::Storage(ArrayDevice &device, PackingPointer packing, Stream &stream, const std::string &what)
    : device_(&device), bytes_(packing->rowMajorBytes()), memory_(&device.memory()) {
  ArrayMemory::Block block = memory_->take(packing->bytes, stream, what);
  packed_.push_back({std::move(packing), block});
}

Storage::Storage(ArrayDevice &device, std::byte *address, size_t bytes, Sharing sharing, std::function<void()> release)
    : device_(&device), block_{address, bytes}, bytes_(bytes), rowMajor_(address), release_(std::move(release)),
      sharing_(sharing) {}

Storage::~Storage() {
  dropPacked();
  if (memory_) {
    if (block_.address)
      memory_->give(block_, std::move(uses_));
    return;
  }
  for (const WorkPointer &use : uses_)
    guarded([&] { Stream::synchronize(use); });
  release_();
}

std::byte *Storage::unpacked() {
  synchronize();
  std::lock_guard lock(mutex_);
  if (rowMajor_ || packed_.empty()) // by another thread, or there are no elements
    return rowMajor_;
  const auto &[packing, from] = packed_.front();
  block_ = memory_->take(bytes_, device_->streamOfThread(), "an array");
  unpack(packing->shape, packing->layout, sizeOf(packing->dtype), from.address, block_.address);
  rowMajor_.store(block_.address, std::memory_order_release);
  return block_.address;
}

std::byte *Storage::packedAddress(const PackingPointer &packing) {
  auto find = [&]() -> std::byte * {
    for (const auto &[known, block] : packed_)
      if (known == packing || *known == *packing)
        return block.address;
    return nullptr;
  };
  {
    std::lock_guard lock(mutex_);
    if (std::byte *known = find())
      return known;
  }
  const std::byte *elements = address();
  synchronize();
  std::lock_guard lock(mutex_);
  if (std::byte *known = find()) // by another thread
    return known;
  ArrayMemory::Block block = device_->memory().take(packing->bytes, device_->streamOfThread(), "an array");
  std::memset(block.address, 0, packing->bytes);
  pack(packing->shape, packing->layout, sizeOf(packing->dtype), elements, block.address);
  packed_.push_back({packing, block});
  return block.address;
}

void Storage::dropPacked() {
  std::lock_guard lock(mutex_);
  for (const Packed &each : packed_)
    device_->memory().give(each.block, uses_);
  packed_.clear();
}

void Storage::waitToRead(Stream &stream) {
  requirePresence();
  WorkPointer written;
  {
    std::lock_guard lock(mutex_);
    written = written_;
  }
  stream.waitFor(written);
}

void Storage::waitToWrite(Stream &stream) {
  std::vector<WorkPointer> uses;
  {
    std::lock_guard lock(mutex_);
    uses = uses_;
  }
  for (const WorkPointer &use : uses)
    guarded([&] { stream.waitFor(use); }); // the new value does not depend on the old one
}

void Storage::noteRead(const WorkPointer &work) {
  if (!work)
    return;
  std::lock_guard lock(mutex_);
  std::erase_if(uses_, [&](const WorkPointer &use) { return &use->stream() == &work->stream(); });
  uses_.push_back(work);
}

void Storage::share() {
  Sharing none = Sharing::none;
  sharing_.compare_exchange_strong(none, Sharing::readWrite);
}

void Storage::noteWrite(const WorkPointer &work) {
  if (rowMajor_)
    dropPacked();
  noteRead(work);
  ++writes_;
  std::lock_guard lock(mutex_);
  written_ = work;
}

void Storage::requirePresence() const {
  if (memory_ && memory_->isLost())
    failExhausted(concat("cannot use an array on ", device_->text(), ": the device was lost; create the array again"));
}

void Storage::synchronize() {
  WorkPointer written;
  {
    std::lock_guard lock(mutex_);
    written = written_;
  }
  Stream::synchronize(written);
}

void Storage::finish() {
  std::vector<WorkPointer> uses;
  {
    std::lock_guard lock(mutex_);
    uses = uses_;
  }
  for (const WorkPointer &use : uses)
    guarded([&] { Stream::synchronize(use); }); // the error of a reader is not an error of this storage
  synchronize();
}

/// The stream that copies between two devices: that of the accelerator, or of the destination if both are.
static Stream &copierOf(const Storage &from, const Storage &to) {
  return (to.device().isHost() ? from : to).device().streamOfThread();
}

static int32_t ordinalOf(const ArrayDevice &device) { return device.isHost() ? SLUICE_HOST : device.ordinal(); }

/// Enqueues a copy within one backend, or between a backend and the host.
static void copyInStream(Stream &stream, ArrayDevice &from, const std::byte *source, ArrayDevice &to, std::byte *target,
                         size_t bytes, const CallSite &site) {
  if (stream.device().isHost())
    std::memmove(target, source, bytes); // memory shared with another library may overlap
  else
    stream.queue().copy({sizeof(sluice_copy), ordinalOf(from), ordinalOf(to), source, target, bytes, site.function});
  ArrayDevices::ofProcess().count(from, to, static_cast<int64_t>(bytes));
}

void copyBetween(Stream &stream, ArrayDevice &from, const std::byte *source, ArrayDevice &to, std::byte *target,
                 size_t bytes, const CallSite &site) {
  if (from.isHost() || to.isHost() || from.backend() == to.backend())
    return copyInStream(stream, from, source, to, target, bytes, site);
  // Two backends cannot access each other's memory: the bytes pass through the host.
  ArrayDevice &host = ArrayDevices::ofProcess().host();
  auto between = std::make_shared<Storage>(host, bytes, host.streamOfThread(), "a copy");
  Stream &out = from.streamOfThread(), &in = to.streamOfThread();
  out.waitFor(stream.record(site));
  copyInStream(out, from, source, host, between->address(), bytes, site);
  between->noteWrite(out.record(site));
  between->waitToRead(in);
  copyInStream(in, host, between->address(), to, target, bytes, site);
  WorkPointer end = in.record(site);
  between->noteRead(end);
  stream.waitFor(end);
}

void copyStorage(Storage &from, size_t fromOffset, Storage &to, size_t toOffset, size_t bytes, const CallSite &site,
                 StoragePointer keepFrom) {
  Stream &stream = copierOf(from, to);
  from.waitToRead(stream);
  to.waitToWrite(stream);
  copyBetween(stream, from.device(), from.address() + fromOffset, to.device(), to.address() + toOffset, bytes, site);
  // Memory of the cache needs no keeping: its next user waits for the copy.
  if (keepFrom && keepFrom->sharing() != Sharing::none)
    stream.keep(std::move(keepFrom));
  WorkPointer work = stream.record(site);
  from.noteRead(work);
  to.noteWrite(work);
}

void readStorage(Storage &from, size_t offset, std::span<std::byte> to, const CallSite &site) {
  Stream &stream = from.device().streamOfThread();
  from.waitToRead(stream);
  copyInStream(stream, from.device(), from.address() + offset, ArrayDevices::ofProcess().host(), to.data(), to.size(),
               site);
  Stream::synchronize(stream.record(site));
}

} // namespace sluice::runtime
