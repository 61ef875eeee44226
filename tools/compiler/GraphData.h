// The data of a graph that is compiled in process: large constants and initial values, in a temporary file.
#pragma once

#include "mlir/IR/BuiltinOps.h"
#include "sluice/graph.h"
#include "llvm/ADT/SmallString.h"
#include <source_location>
#include <string>

namespace sluice::compiler {

/// The destructor removes the file.
class GraphData {
public:
  GraphData() = default;
  GraphData(const GraphData &) = delete;
  ~GraphData();

  /// Writes the data of a graph, if it has any. Throws Error if that fails.
  void write(const Graph &graph, std::source_location where);
  /// Sets the file as the data of `module`, a copy of the graph's module.
  void locate(mlir::ModuleOp module) const;

private:
  std::string file() const { return (folder + "/data.safetensors").str(); }

  llvm::SmallString<128> folder; ///< empty: no data
};

/// Makes LLVM throw std::bad_alloc if an allocation fails, instead of ending the process.
void throwWhenExhausted();

} // namespace sluice::compiler
