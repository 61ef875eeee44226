// `sluice show --phase kernels`: the texts of each kernel, from its facts to its machine code.
#pragma once

#include "tools/compiler/Compiler.h"

namespace sluice::tool {

inline constexpr llvm::StringLiteral kKernelPhase = "kernels";

/// Compiles the model and prints a page for each kernel, or for the kernel `only`, if it is not empty. Takes the
/// warnings of the compiler.
llvm::Error printKernels(llvm::raw_ostream &out, llvm::StringRef model, const CompileOptions &options,
                         llvm::StringRef only, std::string &warnings);

} // namespace sluice::tool
