/* The element types of tensors, in one table: everything that knows them is made of it, and switches over `sluice_dtype` have no
 * default, so that a compiler names what a new line here leaves out.
 *
 *   X(name, number, C type, text, in the IR, in npy, in safetensors)
 *
 * `text` is what plans, messages and command lines say. Elements lie in memory as the C type does; of `boolean` they are 0 or 1. What no
 * C integer stores is a float. f16 and bf16 are types of memory: they are computed with in f32, and each op's results are
 * rounded once. bf16 is in npy what numpy writes for the type of that name of ml_dtypes, for it has no name of its own. */
#pragma once

#include "sluice/backend/halves.h"

#include <stdint.h>

#define SLUICE_FOR_EACH_DTYPE(X)                         \
  X(f32, 0, float, "f32", "f32", "<f4", "F32")           \
  X(f64, 1, double, "f64", "f64", "<f8", "F64")          \
  X(i32, 2, int32_t, "i32", "i32", "<i4", "I32")         \
  X(i64, 3, int64_t, "i64", "i64", "<i8", "I64")         \
  X(u8, 4, uint8_t, "u8", "ui8", "|u1", "U8")            \
  X(boolean, 5, uint8_t, "bool", "i1", "|b1", "BOOL")    \
  X(f16, 6, sluice_f16, "f16", "f16", "<f2", "F16")      \
  X(bf16, 7, sluice_bf16, "bf16", "bf16", "<V2", "BF16")

#define SLUICE_DTYPE_NUMBER(name, number, ...) SLUICE_DTYPE_##name = number,
typedef enum sluice_dtype { SLUICE_FOR_EACH_DTYPE(SLUICE_DTYPE_NUMBER) } sluice_dtype;
#undef SLUICE_DTYPE_NUMBER
