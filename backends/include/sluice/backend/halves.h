/* Floats of two bytes, the formats of stored tensors: f16 is IEEE's binary16, bf16 the upper half of a float.
 * Conversions to float are exact. Conversions from float round to nearest even and keep subnormals and infinities. A
 * NaN stays a quiet NaN with its sign and the upper bits of its payload, as processors' instructions do. Arithmetic is
 * in float. All functions are pure: any thread may call them. */
#pragma once

#include <stdint.h>
#include <string.h>

/* The bits of a float. */
static inline uint32_t sluice_bits_of_float(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

/* The float with these bits. */
static inline float sluice_float_of_bits(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

/* bits / 2^shift, rounded to nearest even; shift is from 1 to 31. */
static inline uint32_t sluice_round_shift(uint32_t bits, unsigned shift) {
  return (bits + (((uint32_t)1 << (shift - 1)) - 1) + (bits >> shift & 1)) >> shift;
}

/* The bits of the nearest bf16. */
static inline uint16_t sluice_bf16_of_float(float value) {
  uint32_t bits = sluice_bits_of_float(value);
  if ((bits & 0x7fffffff) > 0x7f800000)
    return (uint16_t)(bits >> 16 | 0x40);
  return (uint16_t)sluice_round_shift(bits, 16);
}

/* The float with the value of a bf16. */
static inline float sluice_float_of_bf16(uint16_t bits) { return sluice_float_of_bits((uint32_t)bits << 16); }

/* The bits of the nearest f16; values from 65520 on become infinite. */
static inline uint16_t sluice_f16_of_float(float value) {
  const uint32_t leastNormal = 0x38800000, leastOverflow = 0x477ff000, infinity = 0x7f800000, rebias = 112 << 23;
  uint32_t bits = sluice_bits_of_float(value), sign = bits >> 16 & 0x8000, magnitude = bits & 0x7fffffff;
  if (magnitude > infinity)
    return (uint16_t)(sign | 0x7e00 | (magnitude >> 13 & 0x1ff));
  if (magnitude >= leastOverflow)
    return (uint16_t)(sign | 0x7c00);
  if (magnitude >= leastNormal)
    return (uint16_t)(sign | sluice_round_shift(magnitude - rebias, 13));
  unsigned shift = 126 - (magnitude >> 23); /* from the float's last digit to 2^-24, that of subnormals */
  if (shift > 24)
    return (uint16_t)sign;
  return (uint16_t)(sign | sluice_round_shift((magnitude & 0x7fffff) | 0x800000, shift));
}

/* The float with the value of an f16. */
static inline float sluice_float_of_f16(uint16_t bits) {
  const uint32_t rebias = 112 << 23;
  uint32_t sign = (uint32_t)(bits & 0x8000) << 16, magnitude = bits & 0x7fff;
  if (magnitude >= 0x7c00)
    return sluice_float_of_bits(sign | 0x7f800000 | magnitude << 13 | (magnitude > 0x7c00 ? 0x400000 : 0));
  if (magnitude >= 0x400)
    return sluice_float_of_bits(sign | ((magnitude << 13) + rebias));
  float value = (float)magnitude * 0x1p-24f;
  return sign ? -value : value;
}

/* The types sluice_f16 and sluice_bf16: two bytes, `bits`. In C++ they convert to float, and explicitly from float. */
#ifdef __cplusplus
#define SLUICE_HALF(name)                                                                                                          \
  typedef struct sluice_##name {                                                                                                   \
    uint16_t bits;                                                                                                                 \
    sluice_##name() = default;                                                                                                     \
    explicit sluice_##name(float value) : bits(sluice_##name##_of_float(value)) {}                                                 \
    operator float() const { return sluice_float_of_##name(bits); }                                                                \
  } sluice_##name;
#else
#define SLUICE_HALF(name)                                                                                                          \
  typedef struct sluice_##name {                                                                                                   \
    uint16_t bits;                                                                                                                 \
  } sluice_##name;
#endif
SLUICE_HALF(f16)
SLUICE_HALF(bf16)
#undef SLUICE_HALF
