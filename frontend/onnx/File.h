// An open ONNX file.
#pragma once

#include "frontend/onnx/file/Model.h"
#include "frontend/onnx/file/Tensors.h"
#include "runtime/io/MappedFile.h"
#include "sluice/error.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace sluice::onnx {

class File {
public:
  /// Throws Error with code 3 if the file is missing or invalid.
  File(const std::string &path, const std::string &dataFolder, const SourceLocation &location);

  const file::Model &model() const { return parsed; }
  file::Tensors &tensors() { return *data; }
  /// The inputs that callers pass: those without an initializer.
  const std::vector<file::ValueInfo> &inputs() const { return given; }
  /// The name of a file without its folder.
  static std::string baseOf(const std::string &path);
  /// "model.onnx"
  const std::string &name() const { return base; }

  /// Throws Error with code 2 for the name of no value: inputs, initializers and results of nodes outside of branches
  /// and functions. The text lists near names, or the outputs.
  void requireValues(const std::vector<std::string> &names, const SourceLocation &location) const;

  /// Runs `body`, which reads the file, and reports invalid contents as Error with code 3.
  void use(const SourceLocation &location, const std::function<void()> &body) const;

private:
  std::string base;
  std::shared_ptr<const runtime::MappedFile> mapped;
  file::Model parsed;
  std::unique_ptr<file::Tensors> data;
  std::vector<file::ValueInfo> given;
};

} // namespace sluice::onnx
