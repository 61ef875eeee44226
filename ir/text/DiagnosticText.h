// MLIR's diagnostics as text for users.
#pragma once

#include "mlir/IR/Diagnostics.h"
#include <string>

namespace sluice::ir {

/// Collects a context's errors and warnings during its lifetime: `file:line:column: error: message`, each followed by
/// its notes.
class DiagnosticText {
public:
  explicit DiagnosticText(mlir::MLIRContext *context);

  const std::string &errors() const { return errorText; }
  const std::string &warnings() const { return warningText; }
  /// Whether an error begins with `unsupported: `: a limitation of the compiler rather than a mistake of the user.
  bool hasUnsupported() const { return unsupported; }
  /// Whether an error begins with `out of memory: `.
  bool hasExhausted() const { return exhausted; }

private:
  void append(mlir::Diagnostic &diagnostic);

  std::string errorText, warningText;
  bool unsupported = false, exhausted = false;
  mlir::ScopedDiagnosticHandler handler;
};

/// "model.cpp:13:18" for a location; the name of a node of an imported model; else empty. A control character becomes
/// `_`, and a long name is cut: both come from files.
std::string printLocation(mlir::Location location);

} // namespace sluice::ir
