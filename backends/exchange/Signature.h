// What ranks say of an exchange: what must be equal for all of them, and what each brings.
#pragma once

#include "backends/exchange/Error.h"
#include "sluice/backend/collectives.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace sluice::exchange {

/// Whether there are exchanges of this kind.
bool isKnown(int32_t kind);
/// Whether they add or compare elements.
bool reduces(int32_t kind);
/// Whether there is this sluice_reduction.
bool isKnownReduction(int32_t reduction);

/// What must be equal for all ranks.
struct Signature {
  sluice_exchange_kind kind;
  sluice_dtype dtype;
  sluice_reduction reduction;
  int32_t root;
  std::vector<size_t> counts; ///< elements of each rank
  std::string label;

  size_t elements() const; ///< of all that is reduced, broadcast or gathered
  size_t bytes() const;
  std::string text() const; ///< "all-reduce of dw1"
  /// "its element type is f32, not f64"; empty if nothing differs.
  std::string whyNot(const Signature &other) const;
};

/// What one rank brings to an exchange; nothing where it sends or receives none.
struct Part {
  Signature signature;
  const void *sent;
  size_t sentBytes;
  void *received;
  size_t receivedBytes;
};

/// The part of one of `size` ranks. Throws an error of usage for what makes no sense, as far as can be told without the
/// others.
Part partOf(const sluice_exchange &exchange, int32_t rank, int32_t size);

/// Throws an error that names both ranks and the first difference, if `part` is not what those that are there expect.
void compare(int32_t rank, const Part &part, uint64_t number, const std::vector<std::optional<Part>> &others);

} // namespace sluice::exchange
