#include "tools/compiler/Installation.h"

#include "tools/compiler/Diagnostics.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include <dlfcn.h>

namespace fs = llvm::sys::fs;
namespace path = llvm::sys::path;

namespace sluice::compiler {

/// The file from which this code was loaded.
static std::string ownFile() {
  Dl_info info{};
  llvm::SmallString<256> file;
  if (dladdr(reinterpret_cast<const void *>(&findLinkFolder), &info) && !fs::real_path(info.dli_fname, file))
    return file.str().str();
  return fs::getMainExecutable(nullptr, nullptr);
}

/// A folder of the installation; empty if absent.
static std::string findFolder(llvm::StringRef name) {
  static const std::string file = ownFile();
  llvm::SmallString<256> folder(path::parent_path(path::parent_path(file)));
  path::append(folder, name);
  return fs::is_directory(folder) ? folder.str().str() : "";
}

llvm::Expected<std::string> findLinkFolder() {
  std::string folder = findFolder("lib/sluice/link");
  if (!folder.empty())
    return folder;
  return makeError(ExitCode::Invalid, "this installation of Sluice is not complete: it has no folder lib/sluice/link");
}

std::string findBackendFolder() { return findFolder("lib/sluice/backends"); }

std::string findData(llvm::StringRef name) { return findFolder(("share/sluice/" + name).str()); }

/// The Debian package of a library that an executable needs, for the message if it is absent.
static llvm::StringRef packageOf(llvm::StringRef soname) {
  return soname == "libtbb.so.12" ? "libtbb12" : soname == "libz.so.1" ? "zlib1g" : "libstdc++6";
}

llvm::Expected<std::string> findSystemLibrary(llvm::StringRef soname) {
  static constexpr llvm::StringLiteral kFolders[] = {
      "/usr/lib/x86_64-linux-gnu", "/lib/x86_64-linux-gnu", "/usr/lib64", "/lib64", "/usr/local/lib", "/usr/lib"};
  for (llvm::StringRef folder : kFolders) {
    llvm::SmallString<128> candidate(folder);
    path::append(candidate, soname);
    if (fs::exists(candidate))
      return candidate.str().str();
  }
  return makeError(ExitCode::Invalid,
                   "the library " + soname + " is missing (Debian package " + packageOf(soname) + ")");
}

} // namespace sluice::compiler
