// Times of actions, for scheduling.
#pragma once

#include "mlir/IR/BuiltinAttributes.h"

namespace sluice::ir {

enum class CollectiveKind : uint32_t;

class ActionClock {
public:
  virtual ~ActionClock() = default;

  /// The time of a launch of a function, by its symbol, with `rows` rows on a logical device.
  virtual double launchSeconds(llvm::StringRef device, mlir::StringAttr function, int64_t rows) const = 0;
  /// The time of a collective of all replicas, each with a value of `bytes` on this logical device.
  virtual double collectiveSeconds(llvm::StringRef device, CollectiveKind kind, double bytes) const = 0;
  /// The time to copy `bytes` from one logical device to another.
  virtual double copySeconds(llvm::StringRef from, llvm::StringRef to, double bytes) const = 0;
};

} // namespace sluice::ir
