// The data of a graph that is compiled in process: large constants and initial values, in a temporary file.
#pragma once

#include "mlir/IR/BuiltinOps.h"
#include "sluice/graph.h"
#include "llvm/ADT/SmallString.h"
#include <source_location>
#include <string>

namespace sluice::compiler {

/// Removes the file when it ends.
class GraphData {
public:
  GraphData() = default;
  GraphData(const GraphData &) = delete;
  ~GraphData();

  /// Writes the data of a graph, if it has any. Throws Error if that fails.
  void write(const Graph &graph, std::source_location where);
  /// Makes a copy of the graph's module read it.
  void locate(mlir::ModuleOp module) const;

private:
  std::string file() const { return (folder + "/data.safetensors").str(); }

  llvm::SmallString<128> folder; ///< empty: no data
};

/// LLVM ends the process if an allocation fails, unless it is configured to throw; this configures it.
void throwWhenExhausted();

} // namespace sluice::compiler
