// The arithmetic of emulated collectives. As in a ring, each part of the elements is summed from another rank on, and
// rounded in the elements' type at each step. Sums thus have another order than those of our engines, and the same
// order for the same counts.
#pragma once

#include "sluice/backend/dtypes.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <vector>

namespace sluice::nccl_emu {

enum Type { I32 = 2, I64 = 4, F16 = 6, F32 = 7, F64 = 8, BF16 = 9 };
enum Reduction { Sum = 0, Max = 2 };

inline size_t bytesOf(int type) {
  switch (type) {
  case F16:
  case BF16:
    return 2;
  case I32:
  case F32:
    return 4;
  case I64:
  case F64:
    return 8;
  default:
    return 0;
  }
}

/// Numbers of two bytes are computed with in f32.
template <typename T> auto widen(T value) {
  if constexpr (sizeof(T) == 2)
    return float(value);
  else
    return value;
}

template <typename T> T combine(T first, T second, int reduction) {
  auto a = widen(first), b = widen(second);
  if (reduction == Max)
    return a < b || b != b ? second : first;
  if constexpr (std::is_integral_v<T>)
    return T(std::make_unsigned_t<T>(a) + std::make_unsigned_t<T>(b));
  else
    return T(a + b);
}

template <typename T>
void reduceAs(const std::vector<const std::byte *> &sent, size_t first, size_t count, int reduction, std::byte *to) {
  constexpr size_t kPart = 64; // elements
  for (size_t i = 0; i < count; ++i) {
    size_t start = (first + i) / kPart % sent.size();
    auto at = [&](size_t rank) {
      T value;
      std::memcpy(&value, sent[(start + rank) % sent.size()] + (first + i) * sizeof(T), sizeof value);
      return value;
    };
    T total = at(0);
    for (size_t rank = 1; rank < sent.size(); ++rank)
      total = combine(total, at(rank), reduction);
    std::memcpy(to + i * sizeof(T), &total, sizeof total);
  }
}

inline void reduce(int type, const std::vector<const std::byte *> &sent, size_t first, size_t count, int reduction,
                   std::byte *to) {
  switch (type) {
  case I32:
    return reduceAs<int32_t>(sent, first, count, reduction, to);
  case I64:
    return reduceAs<int64_t>(sent, first, count, reduction, to);
  case F16:
    return reduceAs<sluice_f16>(sent, first, count, reduction, to);
  case F32:
    return reduceAs<float>(sent, first, count, reduction, to);
  case F64:
    return reduceAs<double>(sent, first, count, reduction, to);
  default:
    return reduceAs<sluice_bf16>(sent, first, count, reduction, to);
  }
}

} // namespace sluice::nccl_emu
