#include "backends/sim/runtime/Arithmetic.h"

#include <type_traits>

namespace sluice::sim {

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

template <typename T> static T sum(const std::vector<const void *> &sent, size_t at) {
  auto total = static_cast<typename Sum<T>::Type>(static_cast<const T *>(sent.front())[at]);
  for (size_t rank = 1; rank < sent.size(); ++rank)
    total = total + static_cast<typename Sum<T>::Type>(static_cast<const T *>(sent[rank])[at]);
  return static_cast<T>(total);
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
static void reduceAll(sluice_reduction reduction, const std::vector<const void *> &sent, size_t count, T *result) {
  for (size_t at = 0; at < count; ++at)
    result[at] = reduction == SLUICE_SUM ? sum<T>(sent, at) : largest<T>(sent, at);
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

void reduce(sluice_dtype type, sluice_reduction reduction, const std::vector<const void *> &sent, size_t count,
            void *result) {
#define SLUICE_REDUCE(name, number, T, ...)                                                                            \
  case SLUICE_DTYPE_##name:                                                                                            \
    return reduceAll(reduction, sent, count, static_cast<T *>(result));
  switch (type) { SLUICE_FOR_EACH_DTYPE(SLUICE_REDUCE) }
#undef SLUICE_REDUCE
}

} // namespace sluice::sim
