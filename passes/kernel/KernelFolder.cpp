#include "passes/kernel/KernelFolder.h"

#include "passes/kernel/CachedKernelFile.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/BLAKE3.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"
#include <algorithm>
#include <chrono>

namespace sluice::passes {

namespace fs = llvm::sys::fs;

static constexpr llvm::StringLiteral kEntry = ".kernel", kIncomplete = ".incomplete";

std::string KernelFolder::nameOf(llvm::StringRef digest) const {
  llvm::BLAKE3 hash;
  hash.update(compiler);
  hash.update(digest);
  return llvm::toHex(llvm::toStringRef(hash.final()), /*LowerCase=*/true) + kEntry.str();
}

std::shared_ptr<const CachedKernel> KernelFolder::find(llvm::StringRef digest) const {
  std::string name = nameOf(digest);
  llvm::SmallString<128> file(path);
  llvm::sys::path::append(file, name);
  auto opened = fs::openNativeFileForRead(file);
  if (!opened) {
    llvm::consumeError(opened.takeError());
    return nullptr;
  }
  // Volatile: it is read rather than mapped, so that it may change at any time.
  auto content = llvm::MemoryBuffer::getOpenFile(*opened, file, /*FileSize=*/-1, /*RequiresNullTerminator=*/false,
                                                 /*IsVolatile=*/true);
  auto kernel = content ? readCachedKernel((*content)->getBuffer(), name) : nullptr;
  if (kernel) // marks it as used; without permission, it is removed earlier
    fs::setLastAccessAndModificationTime(*opened, std::chrono::system_clock::now());
  fs::closeFile(*opened);
  return kernel;
}

/// Writes a file under another name first, so that readers only see complete files.
static std::error_code writeFile(llvm::StringRef file, llvm::StringRef content) {
  int descriptor = -1;
  llvm::SmallString<128> incomplete;
  if (std::error_code error = fs::createUniqueFile(file + ".%%%%%%%%" + kIncomplete, descriptor, incomplete,
                                                   fs::OF_None, fs::owner_read | fs::owner_write))
    return error;
  llvm::raw_fd_ostream out(descriptor, /*shouldClose=*/true);
  out << content;
  out.close();
  std::error_code error = out.error();
  out.clear_error(); // an unhandled error ends the process
  if (!error)
    error = fs::rename(incomplete, file);
  if (error)
    fs::remove(incomplete);
  return error;
}

void KernelFolder::add(llvm::StringRef digest, const CachedKernel &kernel) {
  assert(!kernel.launch.function && "device code is not kept in files");
  if (!problem().empty())
    return;
  std::string name = nameOf(digest), content = writeCachedKernel(kernel, name);
  llvm::SmallString<128> file(path);
  llvm::sys::path::append(file, name);
  std::error_code error = fs::create_directories(path, /*IgnoreExisting=*/true, fs::owner_all);
  if (!error)
    error = writeFile(file, content);
  if (!error)
    return noteAdded(content.size());
  std::lock_guard lock(mutex);
  reason = "cannot write to the cache " + path + ": " + error.message();
}

std::string KernelFolder::problem() const {
  std::lock_guard lock(mutex);
  return reason;
}

namespace {
struct Entry {
  std::string file;
  uint64_t bytes;
  llvm::sys::TimePoint<> used;
};
} // namespace

/// The entries of a folder. Removes files that a process has not completed within an hour.
static std::vector<Entry> entriesOf(llvm::StringRef folder) {
  std::vector<Entry> entries;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; at != end && !error; at.increment(error)) {
    llvm::ErrorOr<fs::basic_file_status> status = at->status();
    if (!status)
      continue;
    Entry entry{at->path(), status->getSize(), status->getLastModificationTime()};
    if (llvm::StringRef(entry.file).ends_with(kEntry))
      entries.push_back(std::move(entry));
    else if (llvm::StringRef(entry.file).ends_with(kIncomplete) &&
             entry.used + std::chrono::hours(1) < std::chrono::system_clock::now())
      fs::remove(entry.file);
  }
  return entries;
}

/// Removes the least recently used entries until `most` bytes are left.
static void removeOldest(llvm::StringRef folder, uint64_t most) {
  std::vector<Entry> entries = entriesOf(folder);
  llvm::sort(entries, [](const Entry &a, const Entry &b) { return a.used > b.used; });
  uint64_t bytes = 0;
  for (const Entry &entry : entries)
    if ((bytes += entry.bytes) > most)
      fs::remove(entry.file);
}

/// Checks the size of the folder at the first kernel, and then after each sixteenth of the bound. So the folder may
/// exceed the bound by a sixteenth for each process that is adding kernels.
void KernelFolder::noteAdded(uint64_t bytes) {
  {
    std::lock_guard lock(mutex);
    if (bytes < untilCheck) {
      untilCheck -= bytes;
      return;
    }
    untilCheck = mostBytes / 16;
  }
  removeOldest(path, mostBytes);
}

} // namespace sluice::passes
