// The target: the devices that a program is for. `--devices` spells it, the module's ops `device` keep it.
//
//   cpu,sim:0,sim:1  ->  cpu = cpu:0, acc0 = sim:0, acc1 = sim:1; unplaced values go to cpu
//   sim:0-1          ->  cpu = cpu:0, acc0 = sim:0, acc1 = sim:1; of two replicas: acc0 = sim:0 of the one and sim:1 of the other
//   sim:0            ->  cpu = cpu:0, acc0 = sim:0;               unplaced values go to acc0
#pragma once

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/Error.h"
#include <string>

namespace sluice::ir {

/// What buffers of the host begin at multiples of, and of devices that say nothing of that.
inline constexpr int64_t kLeastAlignment = 64;

/// One device of a target.
struct TargetDevice {
  std::string name;    ///< logical, as types and pins say it: "cpu", then "acc0", "acc1", ...
  std::string backend; ///< "cpu", "sim", "cuda"
  int64_t ordinal;     ///< which of the backend's devices; of the first replica, if there are several
  llvm::SmallVector<int64_t> ofReplicas = {}; ///< and for each replica behind the first
  int64_t alignment = kLeastAlignment; ///< what buffers begin at multiples of: as its backend says, once it is known

  /// As in `--devices`: "cpu", "sim:1"; the one of a replica.
  std::string spelling(int64_t replica = 0) const;
};

/// The host, and accelerators numbered in the order of the list.
class Target {
public:
  /// The host alone: what a module without a table is for.
  Target();
  /// From `--devices`: names of backends with or without an ordinal, or a range of them as in sim:0-3. Fails on what is
  /// malformed or listed twice.
  static llvm::Expected<Target> parse(llvm::StringRef list);
  /// The target of each of several replicas, where the list has the accelerators of all, one replica's behind another's.
  /// Fails where they have not the same accelerators each. For kReplicasOfLaunch the list has those of one.
  llvm::Expected<Target> shareAmong(int64_t replicas) const;
  /// From a module's devices; what `record` could not have written is a diagnostic.
  static mlir::FailureOr<Target> of(mlir::ModuleOp module);
  /// Writes the module's devices.
  void record(mlir::ModuleOp module) const;

  /// The host first.
  llvm::ArrayRef<TargetDevice> devices() const { return list; }
  void setAlignment(size_t device, int64_t bytes) { list[device].alignment = bytes; }
  int64_t accelerators() const { return int64_t(list.size()) - 1; }
  /// The device of this logical name, or null.
  const TargetDevice *find(llvm::StringRef name) const;
  /// The first device of the list as it was written: where unplaced values go.
  const TargetDevice &first() const { return list[firstIndex]; }
  /// "cpu,sim:0,sim:1", the host first, and the accelerators of one replica behind another's.
  std::string str() const;
  /// How many copies of a program run on it together, as getReplicas says it.
  int64_t replicas() const { return replicaCount; }

private:
  llvm::SmallVector<TargetDevice> list;
  size_t firstIndex = 0;
  int64_t replicaCount = 1;
};

/// The logical name of an accelerator: "acc0".
std::string acceleratorName(int64_t index);

} // namespace sluice::ir
