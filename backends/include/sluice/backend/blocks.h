/* Weights in blocks of 8-bit integers: the format q8_0 of ggml.
 *
 * A block is 32 consecutive elements along the dimension that a product sums over. With amax, the largest absolute value
 * of a block, and d = amax / 127 in f32, the scale of the block is d rounded to f16, and element x is stored as
 * round(x * (1 / d)), halves away from zero, in a byte in two's complement. If d is below the least normal float, all
 * are 0. The value of an element is the integer times the scale, which is exact in f32. */
#pragma once

enum {
  SLUICE_BLOCK_ELEMENTS = 32,
  SLUICE_BLOCK_LARGEST = 127, /* the largest stored integer; the least is its negative */
};
