// The order of the training rows: a permutation that depends on the seed and the epoch only, the same on every
// machine, or that of streams.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace sluice::runtime {

/// Threefry-2x32 with 20 rounds: two random words for a key and a counter.
std::array<uint32_t, 2> threefry2x32(std::array<uint32_t, 2> key, std::array<uint32_t, 2> counter);

/// A number as two words, as keys and counters are.
std::array<uint32_t, 2> wordsOf(uint64_t value);

/// A permutation of [0, count), count < 2^32.
std::vector<uint32_t> shuffledOrder(uint64_t seed, uint64_t epoch, int64_t count);

/// [0, count) cut into `streams` of equal length, of which each call takes the next of each: what is row i of one call is
/// followed by row i of the next. `streams` divides `count`.
std::vector<uint32_t> streamOrder(int64_t streams, int64_t count);

} // namespace sluice::runtime
