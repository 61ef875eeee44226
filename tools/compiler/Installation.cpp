#include "tools/compiler/Installation.h"

#include "tools/compiler/Diagnostics.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

namespace fs = llvm::sys::fs;
namespace path = llvm::sys::path;

namespace sluice::compiler {

/// A folder of the installation that the running program is part of, or of the build tree; empty if there is none.
static std::string findFolder(llvm::StringRef name) {
  std::string program = fs::getMainExecutable(nullptr, nullptr);
  llvm::StringRef programFolder = path::parent_path(program);
  for (llvm::StringRef root : {path::parent_path(programFolder), llvm::StringRef(SLUICE_BUILD_ROOT)}) {
    llvm::SmallString<256> folder(root);
    path::append(folder, name);
    if (fs::is_directory(folder))
      return folder.str().str();
  }
  return "";
}

llvm::Expected<std::string> findLinkFolder() {
  std::string folder = findFolder("lib/sluice/link");
  if (!folder.empty())
    return folder;
  return makeError(ExitCode::Invalid, "this installation of Sluice is not complete: it has no folder lib/sluice/link");
}

std::string findDataFolder() { return findFolder("share/sluice/mnist-10k"); }

/// The Debian package of a library that an executable needs, for the message when it is absent.
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
