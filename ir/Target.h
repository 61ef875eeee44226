// The target: the devices of a program. `--devices` spells it; the module's `device` ops store it.
//
//   cpu,sim:0,sim:1  ->  cpu = cpu:0, acc0 = sim:0, acc1 = sim:1; unplaced values go to cpu
//   sim:0-1          ->  cpu = cpu:0, acc0 = sim:0, acc1 = sim:1; unplaced values go to acc0
//   sim:0-1          ->  for two replicas: acc0 = sim:0 in the first replica, and acc0 = sim:1 in the second
#pragma once

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/Error.h"
#include <string>

namespace sluice::ir {

/// The alignment of buffers on the host, and on devices that specify none.
inline constexpr int64_t kLeastAlignment = 64;

/// One device of a target.
struct TargetDevice {
  std::string name;                           ///< logical, as in types and pins: "cpu", then "acc0", "acc1", ...
  std::string backend;                        ///< "cpu", "sim", "cuda"
  int64_t ordinal;                            ///< number among the devices of the backend; that of the first replica
  llvm::SmallVector<int64_t> ofReplicas = {}; ///< ordinals of all other replicas
  int64_t alignment = kLeastAlignment;        ///< of buffers, in bytes; set once the backend is known

  /// As in `--devices`: "cpu", "sim:1"; for one replica.
  std::string spelling(int64_t replica = 0) const;
};

/// The host, and accelerators numbered in the order of the list.
class Target {
public:
  /// The host alone: the target of a module without a table.
  Target();
  /// From `--devices`: names of backends with or without an ordinal, or a range such as sim:0-3. Fails on malformed or
  /// repeated entries.
  static llvm::Expected<Target> parse(llvm::StringRef list);
  /// The target of each replica, from a list of the accelerators of all replicas, one replica after another. Fails if
  /// the replicas do not have the same accelerators. For kReplicasOfLaunch, the list is that of one replica.
  llvm::Expected<Target> shareAmong(int64_t replicas) const;
  /// From a module's devices; reports a diagnostic on a table that `record` could not have written.
  static mlir::FailureOr<Target> of(mlir::ModuleOp module);
  /// Writes the module's devices.
  void record(mlir::ModuleOp module) const;

  /// The host first.
  llvm::ArrayRef<TargetDevice> devices() const { return list; }
  void setAlignment(size_t device, int64_t bytes) { list[device].alignment = bytes; }
  int64_t accelerators() const { return int64_t(list.size()) - 1; }
  /// The device with this logical name, or null.
  const TargetDevice *find(llvm::StringRef name) const;
  /// The first device of the list as written: the device of unplaced values.
  const TargetDevice &first() const { return list[firstIndex]; }
  /// "cpu,sim:0,sim:1": the host first, then the accelerators of one replica after another.
  std::string str() const;
  /// The number of replicas that run on it together, as in getReplicas.
  int64_t replicas() const { return replicaCount; }

private:
  llvm::SmallVector<TargetDevice> list;
  size_t firstIndex = 0;
  int64_t replicaCount = 1;
};

/// The logical name of an accelerator: "acc0".
std::string acceleratorName(int64_t index);

} // namespace sluice::ir
