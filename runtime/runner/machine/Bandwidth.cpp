#include "runtime/runner/machine/Bandwidth.h"

#include "runtime/device/DeviceContext.h"
#include "sluice/backend/host.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <unistd.h>

namespace sluice::runtime {

using Clock = std::chrono::steady_clock;

// Bytes per thread of the smallest working set, which fits in the first-level cache of current processors. Each further
// size is `step` times as large, so that the sizes cover all cache levels.
static constexpr int64_t leastBytes = 16 << 10, step = 4;
// Minimum bytes per measurement, so that the cost of distributing work is negligible.
static constexpr int64_t bytesToRead = INT64_C(1) << 26;
static constexpr int roundsOfEach = 3;

/// Reads [next, end), whose size is a multiple of 256 bytes, by adding up its words in vectors of type `Words`.
template <typename Words>
[[gnu::always_inline]] static inline uint64_t sumOf(const std::byte *next, const std::byte *end) {
  constexpr int unroll = 256 / sizeof(Words);
  Words sums[unroll] = {};
  for (; next != end; next += sizeof sums) {
#pragma GCC unroll 16
    for (int i = 0; i < unroll; ++i) {
      Words words;
      std::memcpy(&words, next + i * sizeof words, sizeof words);
      sums[i] += words;
    }
  }
  uint64_t total = 0;
  for (const Words &sum : sums)
    total += sum[0];
  return total;
}

using ReadFunction = uint64_t (*)(const std::byte *, const std::byte *);

#if defined(__x86_64__)
__attribute__((target("avx512f"))) static uint64_t read512(const std::byte *begin, const std::byte *end) {
  using Words [[gnu::vector_size(64)]] = uint64_t;
  return sumOf<Words>(begin, end);
}

__attribute__((target("avx2"))) static uint64_t read256(const std::byte *begin, const std::byte *end) {
  using Words [[gnu::vector_size(32)]] = uint64_t;
  return sumOf<Words>(begin, end);
}
#endif

static uint64_t read128(const std::byte *begin, const std::byte *end) {
  using Words [[gnu::vector_size(16)]] = uint64_t;
  return sumOf<Words>(begin, end);
}

static ReadFunction readOf([[maybe_unused]] int64_t vectorBits) {
#if defined(__x86_64__)
  if (vectorBits >= 512 && __builtin_cpu_supports("avx512f"))
    return read512;
  if (vectorBits >= 256 && __builtin_cpu_supports("avx2"))
    return read256;
#endif
  return read128;
}

namespace {
struct ReadCall {
  ReadFunction read;
  const std::byte *data;
  int64_t bytesPerTask, passes;
};
} // namespace

static void readShares(void *context, int64_t begin, int64_t end) {
  const ReadCall &call = *static_cast<ReadCall *>(context);
  for (int64_t task = begin; task < end; ++task) {
    const std::byte *first = call.data + task * call.bytesPerTask;
    for (int64_t pass = 0; pass < call.passes; ++pass) {
      [[maybe_unused]] volatile uint64_t sink = call.read(first, first + call.bytesPerTask);
    }
  }
}

/// The best of several rounds, each long enough to replace earlier cache contents.
static double measureSize(Team &team, ReadFunction read, const std::byte *data, int64_t bytes) {
  int64_t passes = std::max<int64_t>(1, bytesToRead / bytes);
  ReadCall call{read, data, bytes / team.threads() / 256 * 256, passes};
  double best = 0;
  for (int round = 0; round < roundsOfEach; ++round) {
    Clock::time_point start = Clock::now();
    team.forEach(team.threads(), readShares, &call);
    double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    best = std::max(best, static_cast<double>(call.bytesPerTask * team.threads() * passes) / seconds);
  }
  return best;
}

Bandwidth Bandwidth::measure(Team &team, int64_t vectorBits) {
  // The largest size measures memory: four times the last-level cache, but from 128 to 512 MiB.
  int64_t lastCache = std::max<int64_t>(sysconf(_SC_LEVEL3_CACHE_SIZE), 0);
  int64_t most = std::clamp<int64_t>(4 * lastCache, INT64_C(1) << 27, INT64_C(1) << 29);
  // The host backend allocates the same kind of memory as for arenas.
  DeviceContext host(sluice_host_backend()->name, *sluice_host_backend()->run, "", team);
  DeviceMemory memory(host, 0, static_cast<size_t>(most), "measuring the memory's bandwidth");
  std::memset(memory.data(), 1, memory.size());
  ReadFunction read = readOf(vectorBits);
  Bandwidth result;
  team.enter([&] {
    for (int64_t bytes = leastBytes * team.threads(); bytes < most / 2; bytes *= step)
      result.points_.push_back({bytes, measureSize(team, read, memory.data(), bytes)});
    result.points_.push_back({most, measureSize(team, read, memory.data(), most)});
  });
  // A larger set is never faster. If it appears to be, other programs disturbed the measurement of the smaller set.
  for (size_t i = result.points_.size() - 1; i-- > 0;)
    result.points_[i].bytesPerSecond = std::max(result.points_[i].bytesPerSecond, result.points_[i + 1].bytesPerSecond);
  return result;
}

double Bandwidth::at(double bytes) const {
  auto larger = std::find_if(points_.begin(), points_.end(),
                             [&](const Point &point) { return static_cast<double>(point.bytes) >= bytes; });
  if (larger == points_.begin())
    return points_.front().bytesPerSecond;
  if (larger == points_.end())
    return ofMemory();
  const Point &low = *(larger - 1), &high = *larger;
  double logLow = std::log2(static_cast<double>(low.bytes)), logHigh = std::log2(static_cast<double>(high.bytes));
  double share = (std::log2(bytes) - logLow) / (logHigh - logLow);
  return low.bytesPerSecond + share * (high.bytesPerSecond - low.bytesPerSecond);
}

} // namespace sluice::runtime
