// Saves the input of an internal crash: a folder with the model and the command.
#pragma once

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/Support/Error.h"
#include <string>
#include <vector>

namespace sluice::tool {

/// Runs `action` on a large stack. A crash in it becomes an error with exit code 70 that names a folder, which contains
/// the command line and the files among its arguments.
llvm::Error runGuarded(llvm::function_ref<llvm::Error()> action, const std::vector<std::string> &arguments);

} // namespace sluice::tool
