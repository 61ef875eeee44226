// Files of JSON that others may have written.
#pragma once

#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"

namespace sluice::compiler {

/// What is in the file; an error of kind Invalid that names the file if it is not there, too large, nested deeper than
/// the parser's stack can stand, or no JSON.
llvm::Expected<llvm::json::Value> readJsonFile(const std::string &path);

} // namespace sluice::compiler
