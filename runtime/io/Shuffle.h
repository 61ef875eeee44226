// The order of the training rows: stream order, or a permutation that depends only on the seed and the epoch and is
// equal on every machine.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace sluice::runtime {

/// Threefry-2x32 with 20 rounds: two random words for a key and a counter.
std::array<uint32_t, 2> threefry2x32(std::array<uint32_t, 2> key, std::array<uint32_t, 2> counter);

/// Splits a number into two words, for keys and counters.
std::array<uint32_t, 2> wordsOf(uint64_t value);

/// A permutation of [0, count), count < 2^32.
std::vector<uint32_t> shuffledOrder(uint64_t seed, uint64_t epoch, int64_t count);

/// Cuts [0, count) into `streams` streams of equal length. Each call takes the next row of each stream, so that row i
/// of a call is followed by row i of the next call. `streams` divides `count`.
std::vector<uint32_t> streamOrder(int64_t streams, int64_t count);

} // namespace sluice::runtime
