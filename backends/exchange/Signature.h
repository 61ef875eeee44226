// A rank's description of an exchange: the fields that must be equal on all ranks, and each rank's data.
#pragma once

#include "backends/exchange/Error.h"
#include "sluice/backend/collectives.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace sluice::exchange {

/// Whether this kind of exchange exists.
bool isKnown(int32_t kind);
/// Whether exchanges of this kind reduce elements.
bool reduces(int32_t kind);
/// Whether this sluice_reduction exists.
bool isKnownReduction(int32_t reduction);

/// Fields that must be equal on all ranks.
struct Signature {
  sluice_exchange_kind kind;
  sluice_dtype dtype;
  sluice_reduction reduction;
  int32_t root;
  std::vector<size_t> counts; ///< elements per rank
  std::string label;

  size_t elements() const; ///< of everything that is reduced, broadcast or gathered
  size_t bytes() const;
  std::string text() const; ///< "all-reduce of dw1"
  /// The first difference: "its element type is f32, not f64"; empty if equal.
  std::string whyNot(const Signature &other) const;
};

/// One rank's data in an exchange; null if it sends or receives none.
struct Part {
  Signature signature;
  const void *sent;
  size_t sentBytes;
  void *received;
  size_t receivedBytes;
};

/// The part of one of `size` ranks. Throws a usage error if it is invalid by itself. `compare` compares it with others.
Part partOf(const sluice_exchange &exchange, int32_t rank, int32_t size);

/// Throws an error that names both ranks and the first difference, if `part` differs from the signature of the ranks
/// that have joined.
void compare(int32_t rank, const Part &part, uint64_t number, const std::vector<std::optional<Part>> &others);

} // namespace sluice::exchange
