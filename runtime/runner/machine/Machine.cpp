#include "runtime/runner/machine/Machine.h"

#include <algorithm>
#include <chrono>
#include <cstdint>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace sluice::runtime {

using Clock = std::chrono::steady_clock;

// Twelve independent chains hide a latency of four cycles on up to three ports.
static constexpr int chains = 12;

namespace {

/// A loop of multiply-adds: `run(n, ...)` runs n rounds of `chains` multiply-adds of `lanes` lanes, and returns a value
/// that depends on all of them.
struct FmaLoop {
  float (*run)(int64_t rounds, float factor, float addend);
  int lanes;
  const char *name;
};

} // namespace

#if defined(__x86_64__)
// The three loops differ in their target attribute, which a template cannot carry.
__attribute__((target("avx512f"))) static float fma512(int64_t rounds, float factor, float addend) {
  __m512 sums[chains], f = _mm512_set1_ps(factor), a = _mm512_set1_ps(addend);
  for (int i = 0; i < chains; ++i)
    sums[i] = _mm512_set1_ps(static_cast<float>(i));
  for (int64_t r = 0; r < rounds; ++r)
#pragma GCC unroll 12
    for (int i = 0; i < chains; ++i)
      sums[i] = _mm512_fmadd_ps(sums[i], f, a);
  for (int i = 1; i < chains; ++i)
    sums[0] = _mm512_add_ps(sums[0], sums[i]);
  return _mm512_cvtss_f32(sums[0]);
}

__attribute__((target("avx2,fma"))) static float fma256(int64_t rounds, float factor, float addend) {
  __m256 sums[chains], f = _mm256_set1_ps(factor), a = _mm256_set1_ps(addend);
  for (int i = 0; i < chains; ++i)
    sums[i] = _mm256_set1_ps(static_cast<float>(i));
  for (int64_t r = 0; r < rounds; ++r)
#pragma GCC unroll 12
    for (int i = 0; i < chains; ++i)
      sums[i] = _mm256_fmadd_ps(sums[i], f, a);
  for (int i = 1; i < chains; ++i)
    sums[0] = _mm256_add_ps(sums[0], sums[i]);
  return _mm256_cvtss_f32(sums[0]);
}

static float mulAdd128(int64_t rounds, float factor, float addend) {
  __m128 sums[chains], f = _mm_set1_ps(factor), a = _mm_set1_ps(addend);
  for (int i = 0; i < chains; ++i)
    sums[i] = _mm_set1_ps(static_cast<float>(i));
  for (int64_t r = 0; r < rounds; ++r)
#pragma GCC unroll 12
    for (int i = 0; i < chains; ++i)
      sums[i] = _mm_add_ps(_mm_mul_ps(sums[i], f), a);
  for (int i = 1; i < chains; ++i)
    sums[0] = _mm_add_ps(sums[0], sums[i]);
  return _mm_cvtss_f32(sums[0]);
}

static FmaLoop loopOf(int64_t vectorBits) {
  if (vectorBits >= 512 && __builtin_cpu_supports("avx512f"))
    return {fma512, 16, "AVX-512"};
  if (vectorBits >= 256 && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    return {fma256, 8, "AVX2"};
  return {mulAdd128, 4, "SSE"};
}
#else
static float mulAddScalar(int64_t rounds, float factor, float addend) {
  float sums[chains] = {};
  for (int64_t r = 0; r < rounds; ++r)
    for (float &sum : sums)
      sum = sum * factor + addend;
  float total = 0;
  for (float sum : sums)
    total += sum;
  return total;
}

static FmaLoop loopOf(int64_t) { return {mulAddScalar, 1, "scalar"}; }
#endif

static double secondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

namespace {
struct FmaCall {
  FmaLoop loop;
  int64_t rounds;
};
} // namespace

/// Prevents the compiler from dropping a computation.
template <typename T> static void keep(T value) {
  volatile T sink = value;
  (void)sink;
}

static void runFma(void *context, int64_t begin, int64_t end) {
  const FmaCall &call = *static_cast<FmaCall *>(context);
  volatile float factor = 0.999f, addend = 0.001f;
  for (int64_t i = begin; i < end; ++i)
    keep(call.loop.run(call.rounds, factor, addend));
}

static double measureFlops(Team &team, const FmaLoop &loop) {
  FmaCall call{loop, 2'000'000};
  double flops = 2.0 * chains * loop.lanes * static_cast<double>(call.rounds) * team.threads();
  double best = 0;
  team.enter([&] {
    for (int i = 0; i < 6; ++i) {
      Clock::time_point start = Clock::now();
      team.forEach(team.threads(), runFma, &call);
      best = std::max(best, flops / secondsSince(start));
    }
  });
  return best;
}

MachinePeak measureMachine(Team &team, int64_t vectorBits) {
  FmaLoop loop = loopOf(vectorBits);
  return {measureFlops(team, loop), Bandwidth::measure(team, vectorBits), loop.name};
}

} // namespace sluice::runtime
