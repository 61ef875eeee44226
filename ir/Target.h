// The target: the devices that a program is for. `--devices` spells it, the module's ops `device` keep it.
//
//   cpu,sim:0,sim:1  ->  cpu = cpu:0, acc0 = sim:0, acc1 = sim:1; unplaced values go to cpu
//   sim:0            ->  cpu = cpu:0, acc0 = sim:0;               unplaced values go to acc0
#pragma once

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/Error.h"
#include <string>

namespace sluice::ir {

/// One device of a target.
struct TargetDevice {
  std::string name;    ///< logical, as types and pins say it: "cpu", then "acc0", "acc1", ...
  std::string backend; ///< "cpu", "sim", "cuda"
  int64_t ordinal;     ///< which of the backend's devices

  /// As in `--devices`: "cpu", "sim:1".
  std::string spelling() const;
};

/// The host, and accelerators numbered in the order of the list.
class Target {
public:
  /// The host alone: what a module without a table is for.
  Target();
  /// From `--devices`: names of backends with or without an ordinal. Fails on what is malformed or listed twice.
  static llvm::Expected<Target> parse(llvm::StringRef list);
  /// From a module's devices; what `record` could not have written is a diagnostic.
  static mlir::FailureOr<Target> of(mlir::ModuleOp module);
  /// Writes the module's devices.
  void record(mlir::ModuleOp module) const;

  /// The host first.
  llvm::ArrayRef<TargetDevice> devices() const { return list; }
  int64_t accelerators() const { return int64_t(list.size()) - 1; }
  /// The device of this logical name, or null.
  const TargetDevice *find(llvm::StringRef name) const;
  /// The first device of the list as it was written: where unplaced values go.
  const TargetDevice &first() const { return list[firstIndex]; }
  /// "cpu,sim:0,sim:1", the host first.
  std::string str() const;

private:
  llvm::SmallVector<TargetDevice> list;
  size_t firstIndex = 0;
};

/// The logical name of an accelerator: "acc0".
std::string acceleratorName(int64_t index);

} // namespace sluice::ir
