// Where the installation's files lie: in <root>, if the program or shared library that this is part of is <root>/bin/x
// or <root>/lib/x. A build tree is laid out as an installation is.
#pragma once

#include "llvm/Support/Error.h"
#include <string>

namespace sluice::compiler {

/// The folder that holds the runtime's archives and the C runtime's start-up objects.
llvm::Expected<std::string> findLinkFolder();

/// The folder of the backends that came with the installation; empty if it has none.
std::string findBackendFolder();

/// The folder of data that came with the installation; empty if there is none of this name.
std::string findData(llvm::StringRef name);

/// A shared library of the system by the name that programs load it by, such as "libc.so.6".
llvm::Expected<std::string> findSystemLibrary(llvm::StringRef soname);

} // namespace sluice::compiler
