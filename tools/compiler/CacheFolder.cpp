#include "tools/compiler/CacheFolder.h"

#include "mlir/IR/Verifier.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/TargetParser/Host.h"
#include <cstdlib>
#include <link.h>

namespace sluice::compiler {

std::string findCacheFolder() {
  if (const char *chosen = std::getenv("SLUICE_CACHE"))
    return *chosen == '/' ? chosen : "";
  // The XDG Base Directory Specification: relative paths are invalid and ignored.
  if (const char *caches = std::getenv("XDG_CACHE_HOME"); caches && *caches == '/')
    return std::string(caches) + "/sluice";
  // A home that does not exist is not created.
  if (const char *home = std::getenv("HOME"); home && *home == '/' && llvm::sys::fs::is_directory(home))
    return std::string(home) + "/.cache/sluice";
  return "";
}

namespace {
/// A loaded program or library: the one that contains an address.
struct LoadedFile {
  uintptr_t address;
  std::string buildId = {}; ///< in hexadecimal; empty if it has none
};
} // namespace

/// The build ID in a segment of notes; empty if there is none.
static std::string buildIdIn(llvm::StringRef notes) {
  while (notes.size() >= sizeof(ElfW(Nhdr))) {
    ElfW(Nhdr) note;
    memcpy(&note, notes.data(), sizeof note);
    notes = notes.drop_front(sizeof note);
    llvm::StringRef name = notes.take_front(note.n_namesz);
    notes = notes.drop_front(std::min<size_t>(notes.size(), llvm::alignTo(note.n_namesz, 4)));
    llvm::StringRef content = notes.take_front(note.n_descsz);
    notes = notes.drop_front(std::min<size_t>(notes.size(), llvm::alignTo(note.n_descsz, 4)));
    if (note.n_type == NT_GNU_BUILD_ID && name == llvm::StringRef(ELF_NOTE_GNU, sizeof ELF_NOTE_GNU))
      return llvm::toHex(content, /*LowerCase=*/true);
  }
  return "";
}

/// Called for each loaded file until it returns nonzero.
static int visitLoaded(dl_phdr_info *info, size_t, void *data) {
  auto &file = *static_cast<LoadedFile *>(data);
  llvm::ArrayRef<ElfW(Phdr)> segments(info->dlpi_phdr, info->dlpi_phnum);
  auto contains = [&](const ElfW(Phdr) & segment) {
    return segment.p_type == PT_LOAD && file.address - info->dlpi_addr - segment.p_vaddr < segment.p_memsz;
  };
  if (llvm::none_of(segments, contains))
    return 0;
  for (const ElfW(Phdr) & segment : segments)
    if (segment.p_type == PT_NOTE && file.buildId.empty())
      file.buildId = buildIdIn({reinterpret_cast<const char *>(info->dlpi_addr + segment.p_vaddr), segment.p_memsz});
  return 1;
}

std::string versionOfCodeGenerators() {
  std::string version;
  // A function of each: this file is linked with the backend of the host.
  for (auto address :
       {reinterpret_cast<uintptr_t>(&findCacheFolder),
        reinterpret_cast<uintptr_t>(static_cast<mlir::LogicalResult (*)(mlir::Operation *, bool)>(&mlir::verify)),
        reinterpret_cast<uintptr_t>(&llvm::sys::getHostCPUName)}) {
    LoadedFile file{address};
    dl_iterate_phdr(&visitLoaded, &file);
    if (file.buildId.empty())
      return "";
    version += file.buildId + '\n';
  }
  return version;
}

} // namespace sluice::compiler
