// What remains of a crash of ours: a folder with the model and the command.
#pragma once

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/Support/Error.h"
#include <string>
#include <vector>

namespace sluice::tool {

/// Runs `action` on a large stack. A crash inside becomes an error with exit code 70 that names a folder, in which the
/// files among the arguments and the command line itself are.
llvm::Error runGuarded(llvm::function_ref<llvm::Error()> action, const std::vector<std::string> &arguments);

} // namespace sluice::tool
