// Errors at the boundary of the tools: the kind of failure determines the exit code.
#pragma once

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <string>

namespace sluice::compiler {

/// Exit codes of every tool and executable.
enum class ExitCode {
  Fine = 0,
  Mismatch = 1,    // a comparison failed
  Usage = 2,       // an unknown flag or name, an invalid value
  Invalid = 3,     // input or output that is invalid, missing or full
  Unsupported = 4, // an op or device that is not available
  Exhausted = 5,   // out of memory
  Internal = 70    // a bug in Sluice
};

/// An error with an exit code.
class ToolError : public llvm::ErrorInfo<ToolError> {
public:
  static char ID;
  ToolError(ExitCode code, std::string message) : code(code), text(std::move(message)) {}
  void log(llvm::raw_ostream &out) const override { out << text; }
  std::error_code convertToErrorCode() const override { return llvm::inconvertibleErrorCode(); }
  ExitCode exitCode() const { return code; }

private:
  ExitCode code;
  std::string text;
};

llvm::Error makeError(ExitCode code, const llvm::Twine &message);

/// The same error with a code, for errors of libraries without codes.
llvm::Error withCode(ExitCode code, llvm::Error error);

/// The parts of an error: its code (Internal if it has none) and text.
struct Failure {
  ExitCode code;
  std::string text;
};
Failure takeFailure(llvm::Error error);

} // namespace sluice::compiler
