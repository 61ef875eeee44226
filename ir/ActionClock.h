// How long actions take, as whoever schedules them knows it.
#pragma once

#include "mlir/IR/BuiltinAttributes.h"

namespace sluice::ir {

enum class CollectiveKind : uint32_t;

class ActionClock {
public:
  virtual ~ActionClock() = default;

  /// Of a launch of a function, by its symbol, with `rows` rows on a logical device.
  virtual double launchSeconds(llvm::StringRef device, mlir::StringAttr function, int64_t rows) const = 0;
  /// Of a collective of all replicas, each with a value of `bytes` on this logical device.
  virtual double collectiveSeconds(llvm::StringRef device, CollectiveKind kind, double bytes) const = 0;
  /// Of `bytes` that go from one logical device to another.
  virtual double copySeconds(llvm::StringRef from, llvm::StringRef to, double bytes) const = 0;
};

} // namespace sluice::ir
