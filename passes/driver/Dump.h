// IR dumps: a folder with one numbered file per phase and a manifest.
#pragma once

#include "mlir/IR/BuiltinOps.h"
#include <string>
#include <vector>

namespace sluice::passes {

class Dump {
public:
  /// With an empty folder name nothing is written.
  explicit Dump(std::string folder) : folder(std::move(folder)) {}

  /// Writes `<number>-<phase>.mlir`. It begins with comments: the names of the devices, then the lines of `notes`.
  mlir::LogicalResult write(mlir::ModuleOp module, unsigned number, llvm::StringRef phase,
                            llvm::ArrayRef<std::string> notes);
  /// Writes manifest.json: the files in order with their phases and op counts.
  mlir::LogicalResult finish(mlir::ModuleOp module);

private:
  struct File {
    std::string name, phase;
    int64_t ops;
  };
  std::string folder;
  std::vector<File> files;
};

} // namespace sluice::passes
