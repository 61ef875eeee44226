// Locations of the installation's files: <root>, if the program or shared library of this code is <root>/bin/x or
// <root>/lib/x. A build tree has the layout of an installation.
#pragma once

#include "llvm/Support/Error.h"
#include <string>

namespace sluice::compiler {

/// The folder with the runtime's archives and the C runtime's start-up objects.
llvm::Expected<std::string> findLinkFolder();

/// The folder of the installation's backends; empty if it has none.
std::string findBackendFolder();

/// A folder of the installation's data; empty if there is none with this name.
std::string findData(llvm::StringRef name);

/// A shared library of the system by its soname, such as "libc.so.6".
llvm::Expected<std::string> findSystemLibrary(llvm::StringRef soname);

} // namespace sluice::compiler
