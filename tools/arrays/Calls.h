// The compiled calls of functions on arrays.
#pragma once

#include "runtime/arrays/ArrayProgram.h"
#include "sluice/array.h"
#include "tools/arrays/ArrayImpl.h"
#include <memory>
#include <string>
#include <vector>

namespace sluice::detail {

/// A function for some types of arrays, compiled. It lives until the process ends.
struct CachedCall {
  /// Runs it on arrays of its types.
  std::vector<runtime::StoragePointer> call(std::span<const runtime::StoragePointer> arrays,
                                            const runtime::CallSite &site) const;

  const char *function;
  Trace trace; ///< of the function, for gradients
  bool isWhole;
  std::vector<const ArrayType *> results;

  std::shared_ptr<runtime::ArrayProgram> program;
  std::vector<runtime::ArrayDevice *> devices; ///< of the program
  std::vector<size_t> inputs;                  ///< of the program: the numbers of arrays; it ignores the others
  std::vector<size_t> outputs;                 ///< of each result: its number among the program's outputs
};

/// How a function is compiled.
struct CompileRequest {
  const char *function;
  std::source_location where;
  std::vector<const ArrayType *> arrays;
  /// All devices of the process have their names, instead of those of the arrays only.
  bool isWhole = false;
  const CompileOptions *options = nullptr;
  runtime::ArrayDevice *device = nullptr; ///< of values without a place
};

/// Devices of arrays in the syntax of Graph::set_devices.
std::string targetOf(const std::vector<runtime::ArrayDevice *> &devices);
/// Compiles a functional graph with one entry point. Throws Error.
std::shared_ptr<runtime::ArrayProgram> compileGraph(const Graph &graph, const CompileRequest &request);
/// Traces and compiles a function. Throws Error.
std::unique_ptr<CachedCall> compileCall(const CompileRequest &request, Trace trace);

/// A compiled call that the process keeps under a key of the caller's, or null; and a new one, unless another thread has
/// added it.
const CachedCall *findCached(std::string_view key);
const CachedCall *addCached(std::string_view key, std::unique_ptr<CachedCall> call);

/// Records a call whose results are `results`, if this thread records and an operand has a gradient.
void recordCall(const CachedCall &cached, std::span<ArrayImpl *const> operands, std::vector<Array> &results,
                const runtime::CallSite &site);

} // namespace sluice::detail
