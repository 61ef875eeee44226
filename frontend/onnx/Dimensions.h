// The sizes of the inputs of an imported graph.
#pragma once

#include "frontend/onnx/File.h"
#include "sluice/onnx.h"
#include "sluice/shape.h"

#include <map>
#include <string>
#include <vector>

namespace sluice::onnx {

class Dimensions {
public:
  /// Decides which unknown dimension is the batch. Throws Error with code 2 that lists all dimensions that then have no
  /// size, and for options that name no dimension.
  /// With `unbound`, lists the dimensions there instead, as --dim takes them.
  Dimensions(const File &file, const ImportOptions &options, const SourceLocation &where,
             std::vector<std::string> *unbound = nullptr);
  /// The name of the batch; empty if there is none.
  const std::string &rows() const { return batch; }
  Shape shapeOf(const file::ValueInfo &input) const;

private:
  /// The size that the options give to an unknown dimension.
  std::optional<std::int64_t> boundSize(const file::ValueInfo &input, std::size_t index) const;
  bool isBatch(const file::ValueInfo &input, std::size_t index) const;
  bool isFree(const file::ValueInfo &input, std::size_t index) const;
  void chooseBatch(const File &file);
  void requireTensors(const File &file, const SourceLocation &where) const;
  void requireSizes(const File &file, const SourceLocation &where, std::vector<std::string> *unbound) const;

  const ImportOptions &options;
  bool batchIsFirst = false; ///< of all inputs
  std::string batch;         ///< the name of the dimension in the graph; empty: none
};

} // namespace sluice::onnx
