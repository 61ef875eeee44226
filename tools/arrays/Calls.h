// The cache of compiled functions on arrays.
#pragma once

#include "runtime/arrays/ArrayProgram.h"
#include "sluice/array.h"
#include "tools/arrays/ArrayImpl.h"
#include "tools/arrays/Captures.h"
#include <memory>
#include <string>
#include <vector>

namespace sluice::detail {

/// A value that a trace builds: a result of an op. `op` counts from the first op of the trace.
struct SavedValue {
  size_t op;
  unsigned result;
};

/// A function, compiled for one combination of array types. Never destroyed.
struct CachedCall {
  /// Runs it on arrays of its types.
  std::vector<runtime::StoragePointer> call(std::span<const runtime::StoragePointer> arrays,
                                            const runtime::CallSite &site) const;

  const char *function;
  Trace trace;                       ///< calls the function with all operands and returns all results, for gradients
  std::vector<CapturedModel> models; ///< whose operands follow those of the function
  bool isWhole;
  std::vector<SavedValue> saved; ///< the last results: values that gradients read
  std::vector<const ArrayType *> results;

  std::shared_ptr<runtime::ArrayProgram> program;
  std::vector<runtime::ArrayDevice *> devices; ///< of the program
  std::vector<size_t> inputs;  ///< for each input of the program, the operand; unused operands have none
  std::vector<size_t> outputs; ///< for each result, the output of the program
};

/// How a function is compiled.
struct CompileRequest {
  const char *function;
  std::source_location where;
  std::vector<const ArrayType *> arrays = {}; ///< the operands
  size_t own = 0;                             ///< the number of operands that are not those of models
  /// The function may use all devices of the process, not only those of its arrays.
  bool isWhole = false;
  const CompileOptions *options = nullptr;
  runtime::ArrayDevice *device = nullptr; ///< of values whose device is not fixed
  /// For each operand, whether it has a gradient. The call then also returns the values that gradients read. Empty: it
  /// returns no such values.
  std::vector<bool> isDifferentiated = {};
  /// The numbers of the operands that are saved values of other calls.
  std::vector<size_t> saved = {};
};

/// Devices of arrays in the syntax of Graph::set_devices.
std::string targetOf(const std::vector<runtime::ArrayDevice *> &devices);
/// Compiles a functional graph with one entry point. Throws Error.
std::shared_ptr<runtime::ArrayProgram> compileGraph(const Graph &graph, const CompileRequest &request);
/// Traces and compiles a function. `models`: the models that it is known to call. If it calls others, or a lazy layer
/// creates states, updates `models` and returns null: the caller adds the operands and tries again. Throws Error.
std::unique_ptr<CachedCall> compileCall(const CompileRequest &request, Trace trace, std::vector<CapturedModel> &models);

/// A model of a call, and its arrays.
struct CallModel {
  nn::Module *root;
  ModuleArrays *arrays;
  bool isOwn = true; ///< whether these are the model's current arrays, which get gradients and updates
};
/// Runs a function that calls `models`, and possibly other models.
std::vector<Array> run(const CallRequest &request, const std::vector<CallModel> &models);

/// Looks up a compiled call; null if there is none.
const CachedCall *findCached(std::string_view key);
/// Adds a compiled call. Returns the existing one if another thread added it first.
const CachedCall *addCached(std::string_view key, std::unique_ptr<CachedCall> call);

/// Whether gradients flow to an array.
bool hasGradient(const ArrayImpl &array);
/// Records a call if an operand has a gradient. Call only while this thread records.
void recordCall(const CachedCall &cached, std::span<ArrayImpl *const> operands, std::vector<Array> &results,
                const runtime::CallSite &site);

} // namespace sluice::detail
