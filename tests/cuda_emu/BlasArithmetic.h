// The arithmetic of cublasLt's double: elements of each type, and epilogues.
#pragma once

#include "sluice/backend/halves.h"

#include <cmath>
#include <cstddef>
#include <cstdint>

namespace sluice::blas_emu {

enum Type { F32 = 0, F64 = 1, F16 = 2, BF16 = 14 }; // cudaDataType

inline size_t bytesOf(int type) { return type == F64 ? 8 : type == F32 ? 4 : 2; }

inline double numberAt(const std::byte *place, int type) {
  auto half = [&] { return *reinterpret_cast<const uint16_t *>(place); };
  switch (type) {
  case F64:
    return *reinterpret_cast<const double *>(place);
  case F32:
    return *reinterpret_cast<const float *>(place);
  default:
    return type == F16 ? sluice_float_of_f16(half()) : sluice_float_of_bf16(half());
  }
}

inline void putNumber(std::byte *place, int type, double number) {
  auto single = float(number);
  switch (type) {
  case F64:
    *reinterpret_cast<double *>(place) = number;
    break;
  case F32:
    *reinterpret_cast<float *>(place) = single;
    break;
  default:
    *reinterpret_cast<uint16_t *>(place) = type == F16 ? sluice_f16_of_float(single) : sluice_bf16_of_float(single);
  }
}

inline double rounded(double number, int type) {
  alignas(double) std::byte place[sizeof(double)];
  putNumber(place, type, number);
  return numberAt(place, type);
}

inline double gelu(double a) { return 0.5 * a * (1 + std::tanh(0.7978845608028654 * (a + 0.044715 * a * a * a))); }

inline double geluGradient(double a) {
  double t = std::tanh(0.7978845608028654 * (a + 0.044715 * a * a * a));
  return 0.5 * (1 + t) + 0.5 * a * (1 - t * t) * 0.7978845608028654 * (1 + 0.134145 * a * a);
}

} // namespace sluice::blas_emu
