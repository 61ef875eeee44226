// Flags of an import, and models that may be ONNX files.
#pragma once

#include "sluice/onnx.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/Error.h"
#include <CLI/CLI.hpp>
#include <string>

namespace sluice::tool {

/// --dim, --rows, --bind, --outputs, --no-recognize and --data-dir.
void addImportFlags(CLI::App &command, onnx::ImportOptions &options);
/// The same flags, which the help of the command does not list.
void hideImportFlags(CLI::App &command, onnx::ImportOptions &options);

/// Whether a model argument is an ONNX file, by its name.
bool isOnnx(llvm::StringRef path);

/// The text of an import's error, with its exit code.
llvm::Error errorOf(const Error &error);

/// A model argument: an ONNX file is imported into a temporary folder, which the destructor removes.
class ModelFile {
public:
  ModelFile() = default;
  ModelFile(const ModelFile &) = delete;
  ~ModelFile();
  /// The path of the model to compile.
  llvm::Expected<std::string> open(const std::string &model, const onnx::ImportOptions &options);

private:
  llvm::SmallString<128> folder; ///< empty: none
};

} // namespace sluice::tool
