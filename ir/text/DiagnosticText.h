// MLIR's diagnostics as text for users.
#pragma once

#include "mlir/IR/Diagnostics.h"
#include <string>

namespace sluice::ir {

/// Collects a context's errors and warnings while it lives: `file:line:column: error: message`, notes after theirs.
class DiagnosticText {
public:
  explicit DiagnosticText(mlir::MLIRContext *context);

  const std::string &errors() const { return errorText; }
  const std::string &warnings() const { return warningText; }
  /// Whether an error says `unsupported: `: something that we cannot do, as opposed to something that the user did
  /// wrong.
  bool hasUnsupported() const { return unsupported; }

private:
  void append(mlir::Diagnostic &diagnostic);

  std::string errorText, warningText;
  bool unsupported = false;
  mlir::ScopedDiagnosticHandler handler;
};

/// "model.cpp:13:18" of a location, or nothing where it has no file.
std::string printLocation(mlir::Location location);

} // namespace sluice::ir
