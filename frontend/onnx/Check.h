// What an ONNX file contains, and what of it can be imported.
#pragma once

#include "sluice/onnx.h"

#include <cstdint>
#include <string>
#include <vector>

namespace sluice::onnx {

/// The nodes of one operator.
struct OperatorCount {
  std::string name;         ///< with its domain if that is not ONNX's own: "com.microsoft.Gelu"
  std::int64_t opset = 0;   ///< the version of the domain that the file uses
  std::int64_t nodes = 0;   ///< also those in branches, loops and functions
  bool isSupported = false; ///< whether the importer has the operator in this version
};

/// An input or output.
struct Interface {
  std::string name, type;
  std::vector<std::string> dims; ///< "3", "batch" or "?"
};

/// A file at a glance.
struct Report {
  std::string file, producer;
  std::int64_t irVersion = 0, opset = 0;
  std::vector<Interface> inputs, outputs;
  std::vector<OperatorCount> operators; ///< by number of nodes, most first
  std::vector<std::string> unbound;     ///< dimensions without a size, as --dim takes them
  std::string rows;                     ///< the name of the batch; empty: none
  std::int64_t initializers = 0, initializerBytes = 0;
  std::string problem; ///< of the options or the import; empty: none

  bool isSupported() const;
};

/// Reads a file, and imports it if its dimensions have sizes. Throws Error with code 3 for an invalid file.
Report check(const std::string &path, const ImportOptions &options);

} // namespace sluice::onnx
