// Where the files lie that compiled programs are linked with: <root>/lib/sluice, beside the running program's bin
// folder or in the build tree that this library came from.
#pragma once

#include "llvm/Support/Error.h"
#include <string>

namespace sluice::compiler {

/// The folder that holds the runtime's archives and the C runtime's start-up objects.
llvm::Expected<std::string> findLinkFolder();

/// The folder of the images that models are trained on by default; empty if it is not installed.
std::string findDataFolder();

/// A shared library of the system by the name that programs load it by, such as "libc.so.6".
llvm::Expected<std::string> findSystemLibrary(llvm::StringRef soname);

} // namespace sluice::compiler
