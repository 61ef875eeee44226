// Converts errors of LLVM and diagnostics of MLIR to exceptions of a compile half's session. No exception passes
// through frames of MLIR.
#pragma once

#include "mlir/IR/Diagnostics.h"
#include "sluice/backend/adapter/error.h"
#include "llvm/Support/Error.h"
#include <string>
#include <system_error>
#include <utility>

namespace sluice::loops {

/// Returns the value, or throws the error: SLUICE_UNSUPPORTED for not_supported, else SLUICE_USAGE.
template <typename Value> Value valueOf(llvm::Expected<Value> value) {
  if (value)
    return std::move(*value);
  std::error_code code;
  std::string text;
  llvm::handleAllErrors(value.takeError(), [&](const llvm::StringError &error) {
    code = error.convertToErrorCode();
    text = error.getMessage();
  });
  throw backend::Error(code == std::errc::not_supported ? SLUICE_UNSUPPORTED : SLUICE_USAGE, text);
}

/// Runs `body`. If it fails, throws SLUICE_UNSUPPORTED with the diagnostics that it emitted.
inline void diagnosed(mlir::MLIRContext *context, llvm::function_ref<mlir::LogicalResult()> body) {
  std::string text;
  auto run = [&] {
    mlir::ScopedDiagnosticHandler handler(
        context, [&](mlir::Diagnostic &diagnostic) { text += (text.empty() ? "" : "; ") + diagnostic.str(); });
    return body();
  };
  if (mlir::failed(run()))
    throw backend::Error(SLUICE_UNSUPPORTED, text);
}

} // namespace sluice::loops
