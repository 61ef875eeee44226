#include "backends/exchange/Arithmetic.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <span>
#include <type_traits>

namespace sluice::exchange {

namespace {

/// The type of additions: unsigned for integers, so that they wrap.
template <typename T> struct Sum {
  using Type = T;
};
template <> struct Sum<int32_t> {
  using Type = uint32_t;
};
template <> struct Sum<int64_t> {
  using Type = uint64_t;
};
template <> struct Sum<sluice_f16> {
  using Type = float;
};
template <> struct Sum<sluice_bf16> {
  using Type = float;
};

} // namespace

static constexpr size_t kTotals = 1024; // elements whose totals stay in the first-level cache

using Sent = std::span<const void *const>;

/// Adds one rank after another to a block of totals, so that each loop has two arrays and is vectorized.
template <typename T> static void sumBlock(Sent sent, size_t first, size_t count, typename Sum<T>::Type *totals) {
  using Total = typename Sum<T>::Type;
  const T *of = static_cast<const T *>(sent.front()) + first;
  for (size_t i = 0; i < count; ++i)
    totals[i] = static_cast<Total>(of[i]);
  for (size_t rank = 1; rank < sent.size(); ++rank) {
    of = static_cast<const T *>(sent[rank]) + first;
    for (size_t i = 0; i < count; ++i)
      totals[i] = static_cast<Total>(totals[i] + static_cast<Total>(of[i]));
  }
}

/// The tree of SLUICE_TREE_SUM (collectives.h). The left half has the largest power of two of ranks below their number,
/// so a rank without a partner is passed on unchanged.
template <typename T> static void sumTree(Sent sent, size_t first, size_t count, typename Sum<T>::Type *totals) {
  using Total = typename Sum<T>::Type;
  if (sent.size() <= 2)
    return sumBlock<T>(sent, first, count, totals);
  size_t half = std::bit_ceil(sent.size()) / 2;
  Total right[kTotals];
  sumTree<T>(sent.first(half), first, count, totals);
  sumTree<T>(sent.subspan(half), first, count, right);
  for (size_t i = 0; i < count; ++i)
    totals[i] = static_cast<Total>(totals[i] + right[i]);
}

/// Whether `b` replaces an equal `a`: of two zeros, the positive one is the larger.
template <typename T> static bool isLargerEqual(T a, T b) {
  if constexpr (std::is_integral_v<T>)
    return false;
  else
    return a == b && std::signbit(static_cast<double>(a));
}

template <typename T> static T largest(const std::vector<const void *> &sent, size_t at) {
  T best = static_cast<const T *>(sent.front())[at];
  for (size_t rank = 1; rank < sent.size(); ++rank) {
    T next = static_cast<const T *>(sent[rank])[at];
    if (best < next || next != next || isLargerEqual(best, next))
      best = next;
  }
  return best;
}

template <typename T>
static void reduceAll(sluice_reduction reduction, const std::vector<const void *> &sent, size_t first, size_t count,
                      T *result) {
  typename Sum<T>::Type totals[kTotals];
  for (size_t done = 0; done < count && reduction != SLUICE_MAX; done += kTotals) {
    size_t elements = std::min(kTotals, count - done);
    (reduction == SLUICE_TREE_SUM ? sumTree<T> : sumBlock<T>)(sent, first + done, elements, totals);
    for (size_t i = 0; i < elements; ++i)
      result[done + i] = static_cast<T>(totals[i]);
  }
  for (size_t i = 0; i < count && reduction == SLUICE_MAX; ++i)
    result[i] = largest<T>(sent, first + i);
}

size_t exchangedBytes(sluice_dtype type) {
  switch (type) {
  case SLUICE_DTYPE_f16:
  case SLUICE_DTYPE_bf16:
    return 2;
  case SLUICE_DTYPE_f32:
  case SLUICE_DTYPE_i32:
    return 4;
  case SLUICE_DTYPE_f64:
  case SLUICE_DTYPE_i64:
    return 8;
  case SLUICE_DTYPE_u8:
  case SLUICE_DTYPE_boolean:
    return 0;
  }
  return 0; // an invalid type
}

void reduce(sluice_dtype type, sluice_reduction reduction, const std::vector<const void *> &sent, size_t first,
            size_t count, void *result) {
#define SLUICE_REDUCE(name, number, T, ...)                                                                            \
  case SLUICE_DTYPE_##name:                                                                                            \
    return reduceAll(reduction, sent, first, count, static_cast<T *>(result));
  switch (type) { SLUICE_FOR_EACH_DTYPE(SLUICE_REDUCE) }
#undef SLUICE_REDUCE
}

} // namespace sluice::exchange
