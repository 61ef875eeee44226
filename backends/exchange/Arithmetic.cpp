#include "backends/exchange/Arithmetic.h"

#include <algorithm>
#include <type_traits>

namespace sluice::exchange {

namespace {

/// What elements of a type are added in: integers without a sign, which wrap around.
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

static constexpr size_t kBlock = 1024; // elements whose totals stay in the nearest cache

/// Rank after rank is added to a block of totals, so that each loop has two arrays and is vectorized.
template <typename T>
static void sumBlock(const std::vector<const void *> &sent, size_t first, size_t count, T *result) {
  using Total = typename Sum<T>::Type;
  Total totals[kBlock];
  const T *of = static_cast<const T *>(sent.front()) + first;
  for (size_t i = 0; i < count; ++i)
    totals[i] = static_cast<Total>(of[i]);
  for (size_t rank = 1; rank < sent.size(); ++rank) {
    of = static_cast<const T *>(sent[rank]) + first;
    for (size_t i = 0; i < count; ++i)
      totals[i] = static_cast<Total>(totals[i] + static_cast<Total>(of[i]));
  }
  for (size_t i = 0; i < count; ++i)
    result[i] = static_cast<T>(totals[i]);
}

template <typename T> static T largest(const std::vector<const void *> &sent, size_t at) {
  T best = static_cast<const T *>(sent.front())[at];
  for (size_t rank = 1; rank < sent.size(); ++rank) {
    T next = static_cast<const T *>(sent[rank])[at];
    if (best < next || next != next)
      best = next;
  }
  return best;
}

template <typename T>
static void reduceAll(sluice_reduction reduction, const std::vector<const void *> &sent, size_t first, size_t count,
                      T *result) {
  for (size_t done = 0; done < count && reduction == SLUICE_SUM; done += kBlock)
    sumBlock(sent, first + done, std::min(kBlock, count - done), result + done);
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
  return 0; // a number that is no type
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
