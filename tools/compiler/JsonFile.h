// JSON files from other programs or users.
#pragma once

#include "runtime/base/Json.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/Support/Error.h"

namespace sluice::compiler {

/// Parses the file with runtime::parseJson. Returns an error of kind Invalid that names the file if it is absent, too
/// large, nested too deeply, or not JSON, or if an object has a key twice.
llvm::Expected<runtime::Json> readJsonFile(const std::string &path);

/// Runs `read`, which may fail as JsonReader does, and returns its failure as an error.
llvm::Error readingJson(llvm::function_ref<void()> read);

/// The text of a value for an error message: compact, at most 60 characters, valid UTF-8.
std::string quoteJson(const runtime::Json &value);

} // namespace sluice::compiler
