// A copy between devices with all call-independent data resolved.
#pragma once

#include "runtime/device/CopyEngine.h"

#include <algorithm>
#include <optional>
#include <vector>

namespace sluice::runtime {

/// Flat numbering of a plan's mirrors: those of the first state, then those of the second, and so on.
class MirrorNumbers {
public:
  explicit MirrorNumbers(const Plan &plan);

  size_t count() const { return first_.back(); }
  /// The numbers [first, second) of a state's mirrors.
  std::pair<size_t, size_t> of(size_t state) const { return {first_[state], first_[state + 1]}; }
  /// The mirror that a stale copy fills.
  size_t filledBy(const Copy &copy) const;

private:
  const Plan &plan_;
  std::vector<size_t> first_;
};

class PreparedCopy {
public:
  /// All arguments must outlive this.
  PreparedCopy(const Copy &copy, const Plan &plan, const Devices &devices);

  /// The mirror that this copy fills, if it is a stale copy.
  std::optional<size_t> mirror() const { return mirror_; }
  /// The copy for a call with `rows` rows that uses copy `number` of the buffers that exist once per call in flight.
  DeviceCopy forCall(size_t number, int64_t rows) const {
    return {kind_, from_[number], to_[number], copy_->bytesFor(rows), label_};
  }

  /// From now on, copies from another address if the source is at `slot`.
  void rebind(const Slot &slot, std::byte *address) {
    if (copy_->from == slot)
      std::fill(from_.begin(), from_.end(), address);
  }

private:
  const Copy *copy_;
  CopyKind kind_;
  std::vector<std::byte *> from_, to_; ///< by copy number
  std::string label_;
  std::optional<size_t> mirror_;
};

} // namespace sluice::runtime
