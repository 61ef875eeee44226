#include "runtime/io/MappedFile.h"

#include "runtime/base/Status.h"
#include "runtime/base/Text.h"
#include "runtime/files/InputFile.h"
#include "runtime/io/File.h"

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <sys/mman.h>
#include <unistd.h>
#include <utility>

namespace sluice::runtime {

/// The file that this thread currently reads.
static thread_local MappedFile *beingRead = nullptr;
static struct sigaction actionBefore;

static void handleBusError(int, siginfo_t *info, void *) {
  if (beingRead && beingRead->loseIfAt(info->si_addr))
    return;
  sigaction(SIGBUS, &actionBefore, nullptr); // not caused by this file: the fault repeats under the previous handler
}

static bool installHandler() {
  struct sigaction action = {};
  action.sa_sigaction = handleBusError;
  action.sa_flags = SA_SIGINFO;
  sigemptyset(&action.sa_mask);
  return sigaction(SIGBUS, &action, &actionBefore) == 0;
}

MappedFile::MappedFile(const std::string &path) : path_(path) {
  [[maybe_unused]] static const bool isInstalled = installHandler();
  int descriptor = -1;
  uint64_t bytes = 0;
  check(path, files::openForReading(path, files::Source::regular, descriptor, bytes));
  bytes_ = static_cast<size_t>(bytes);
  void *data = bytes == 0 ? nullptr : mmap(nullptr, bytes_, PROT_READ, MAP_SHARED, descriptor, 0);
  int error = errno;
  close(descriptor);
  if (data == MAP_FAILED) {
    if (error == ENOMEM)
      failExhausted(concat(path, ": cannot map its ", bytesText(bytes), ": the address space is exhausted"));
    errno = error;
    failSystem(path, "map");
  }
  data_ = static_cast<std::byte *>(data);
}

MappedFile::~MappedFile() {
  if (data_)
    munmap(data_, bytes_);
}

// Runs in a signal handler: makes one system call, and neither allocates nor locks.
bool MappedFile::loseIfAt(const void *address) {
  if (address < data_ || address >= data_ + bytes_)
    return false;
  isLost_ = true; // set first, so that every reader of the zeros sees the loss
  return mmap(data_, bytes_, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED;
}

void MappedFile::read(int64_t from, std::span<std::byte> to) const {
  assert(from >= 0 && from + static_cast<int64_t>(to.size()) <= bytes() && "beyond the end of a file");
  if (to.empty())
    return;
  // The fences keep the compiler from moving the copy out of the region in which the signal handler sees `beingRead`.
  MappedFile *before = std::exchange(beingRead, const_cast<MappedFile *>(this));
  std::atomic_signal_fence(std::memory_order_seq_cst);
  std::memcpy(to.data(), data_ + from, to.size());
  std::atomic_signal_fence(std::memory_order_seq_cst);
  beingRead = before;
  requireNotLost();
}

void MappedFile::requireNotLost() const {
  if (isLost_)
    failInvalid(concat(path_, ": cannot read: it shrank, or its disk failed, while it was in use"));
}

void MappedFile::use(const std::function<void(std::span<const std::byte>)> &body) const {
  struct Use {
    explicit Use(MappedFile *file) : before(std::exchange(beingRead, file)) {}
    ~Use() { beingRead = before; }
    MappedFile *before;
  };
  {
    Use use(const_cast<MappedFile *>(this));
    body({data_, bytes_});
  }
  requireNotLost();
}

std::vector<std::byte> MappedFile::read(int64_t from, int64_t most) const {
  std::vector<std::byte> content(static_cast<size_t>(std::clamp<int64_t>(bytes() - from, 0, most)));
  read(from, content);
  return content;
}

} // namespace sluice::runtime
