/* The element types of tensors in one table. Sluice derives everything about element types from it. Switches over
 * `sluice_dtype` have no default, so that the compiler reports the places that a new line here requires.
 *
 *   X(name, number, C type, text, in the IR, in npy, in safetensors)
 *
 * `text` is the name in plans, messages and command lines. Elements are stored as the C type; those of `boolean` are 0
 * or 1. Types that no C integer stores are floats. f16 and bf16 are storage types: ops compute in f32 and round each
 * result once. The npy name of bf16 is the one that NumPy writes for the bfloat16 of ml_dtypes. */
#pragma once

#include "sluice/backend/halves.h"

#include <stdint.h>

/* Expands X for each element type. Numbers never change. */
#define SLUICE_FOR_EACH_DTYPE(X)                         \
  X(f32, 0, float, "f32", "f32", "<f4", "F32")           \
  X(f64, 1, double, "f64", "f64", "<f8", "F64")          \
  X(i32, 2, int32_t, "i32", "i32", "<i4", "I32")         \
  X(i64, 3, int64_t, "i64", "i64", "<i8", "I64")         \
  X(u8, 4, uint8_t, "u8", "ui8", "|u1", "U8")            \
  X(boolean, 5, uint8_t, "bool", "i1", "|b1", "BOOL")    \
  X(f16, 6, sluice_f16, "f16", "f16", "<f2", "F16")      \
  X(bf16, 7, sluice_bf16, "bf16", "bf16", "<V2", "BF16")

/* SLUICE_DTYPE_f32 = 0, and so on. */
#define SLUICE_DTYPE_NUMBER(name, number, ...) SLUICE_DTYPE_##name = number,
typedef enum sluice_dtype { SLUICE_FOR_EACH_DTYPE(SLUICE_DTYPE_NUMBER) } sluice_dtype;
#undef SLUICE_DTYPE_NUMBER
