// Flags shared by several commands.
#pragma once

#include "tools/compiler/Compiler.h"
#include <CLI/CLI.hpp>

namespace sluice::tool {

/// The input model, a required argument.
void addModel(CLI::App &command, std::string &model);

void addEmit(CLI::App &command, compiler::Emit &emit);

/// --placement, --link, --place-entry
void addPlacementFlags(CLI::App &command, compiler::PlacementRequest &request);

/// Whether devices may be listed more than once.
enum class DeviceLists { One, Several };

/// --devices, --copies, --target-cpu, --backend, --dtype, --precision, --entries, --no-fuse
void addTargetFlags(CLI::App &command, compiler::CompileOptions &options, DeviceLists lists = DeviceLists::One);

/// The flags above, and --batch.
void addCodeFlags(CLI::App &command, compiler::CompileOptions &options, DeviceLists lists = DeviceLists::One);

/// --replicas, --batch-norm, --wire, --buckets, --accumulate, --zero, --deterministic
void addReplicaFlags(CLI::App &command, compiler::CompileOptions &options);

} // namespace sluice::tool
