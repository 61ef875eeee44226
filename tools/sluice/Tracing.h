// Options of `sluice compile` that trace its passes: --timing, --print-after, --verify-each.
#pragma once

#include "tools/compiler/Compiler.h"
#include <CLI/CLI.hpp>
#include <memory>

namespace sluice::tool {

struct Tracing {
  bool timing = false;
};

/// Adds the flags. They set `verifiesEach` and `observer` of the options.
std::shared_ptr<Tracing> addTracingFlags(CLI::App &command, compiler::CompileTask &task);

/// A line per phase and, indented, per pass; then the kernels whose code was reused, if there are any.
void printTiming(llvm::raw_ostream &out, const compiler::Compiled &compiled);

} // namespace sluice::tool
