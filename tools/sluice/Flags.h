// Flags shared by several commands.
#pragma once

#include "tools/compiler/Compiler.h"
#include <CLI/CLI.hpp>

namespace sluice::tool {

/// The input model, a required argument.
void addModel(CLI::App &command, std::string &model);

void addEmit(CLI::App &command, compiler::Emit &emit);

/// The flags of all options of a compilation in these groups, except `without`.
void addOptions(CLI::App &command, CompileOptions &options, llvm::ArrayRef<llvm::StringRef> groups,
                llvm::ArrayRef<llvm::StringRef> without = {});

/// --devices, which may be repeated for an artifact with a variant for each list.
void addDeviceLists(CLI::App &command, CompileOptions &options, compiler::CompileTask &task);

} // namespace sluice::tool
