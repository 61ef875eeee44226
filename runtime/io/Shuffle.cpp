#include "runtime/io/Shuffle.h"

#include <bit>
#include <cstddef>
#include <numeric>
#include <utility>

namespace sluice::runtime {

using Words = std::array<uint32_t, 2>;

Words threefry2x32(Words key, Words counter) {
  static constexpr int rotations[2][4] = {{13, 15, 26, 6}, {17, 29, 16, 24}};
  const uint32_t keys[3] = {key[0], key[1], key[0] ^ key[1] ^ 0x1bd11bdau};
  uint32_t a = counter[0] + keys[0], b = counter[1] + keys[1];
  for (uint32_t group = 0; group < 5; ++group) {
    for (int rotation : rotations[group % 2]) {
      a += b;
      b = std::rotl(b, rotation) ^ a;
    }
    a += keys[(group + 1) % 3];
    b += keys[(group + 2) % 3] + group + 1;
  }
  return {a, b};
}

Words wordsOf(uint64_t value) { return {static_cast<uint32_t>(value >> 32), static_cast<uint32_t>(value)}; }

std::vector<uint32_t> shuffledOrder(uint64_t seed, uint64_t epoch, int64_t count) {
  // Two derivations of the key, so that shuffling uses other random words than the model draws from the same seed.
  static constexpr Words purpose = {0x73687566u, 0x666c6521u};
  Words key = threefry2x32(threefry2x32(wordsOf(seed), purpose), wordsOf(epoch));
  std::vector<uint32_t> order(static_cast<std::size_t>(count));
  std::iota(order.begin(), order.end(), 0u);
  for (uint64_t i = order.size(); i-- > 1;) {
    Words words = threefry2x32(key, wordsOf(i));
    uint64_t random = static_cast<uint64_t>(words[0]) << 32 | words[1];
    // The high half of a product maps 64 random bits to [0, i] with a bias below 2^-32.
    uint64_t j = static_cast<uint64_t>(static_cast<unsigned __int128>(random) * (i + 1) >> 64);
    std::swap(order[i], order[j]);
  }
  return order;
}

std::vector<uint32_t> streamOrder(int64_t streams, int64_t count) {
  std::vector<uint32_t> order;
  for (int64_t call = 0; call < count / streams; ++call)
    for (int64_t stream = 0; stream < streams; ++stream)
      order.push_back(static_cast<uint32_t>(stream * (count / streams) + call));
  return order;
}

} // namespace sluice::runtime
