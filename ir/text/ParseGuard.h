// Reads modules from untrusted text. MLIR's parser overflows its stack on deep nesting and reads freed memory after
// uses before definitions. Passes do not terminate on values that refer to themselves. All of these are rejected here
// with a message.
#pragma once

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/Support/Error.h"

namespace sluice::ir {

/// The maximum size of a model file.
inline constexpr uint64_t kMaxModelBytes = uint64_t(1) << 30;
inline constexpr unsigned kMaxNesting = 256;      // of ( [ { <, aliases counted where they are used
inline constexpr unsigned kMaxOperators = 1024;   // in one affine expression
inline constexpr unsigned kMaxNumberLength = 256; // characters of one literal
inline constexpr unsigned kMaxRank = 64;
inline constexpr unsigned kMaxResults = 1 << 16; // of one op
/// A tensor's bytes must fit in 63 bits; elements have at most 8.
inline constexpr int64_t kMaxElements = int64_t(1) << 60;

/// Parses and verifies a module of registered dialects (the sluice dialect is loaded). The error holds one line per
/// diagnostic: `file:line:column: error: message`.
llvm::Expected<mlir::OwningOpRef<mlir::ModuleOp>> parseModuleFile(llvm::StringRef path, mlir::MLIRContext &context);
llvm::Expected<mlir::OwningOpRef<mlir::ModuleOp>> parseModuleText(llvm::StringRef text, llvm::StringRef name,
                                                                  mlir::MLIRContext &context);

/// The reason why `text` must not reach MLIR's parser, with its line and column; success if it may.
llvm::Error checkModuleText(llvm::StringRef text, llvm::StringRef name);

} // namespace sluice::ir
