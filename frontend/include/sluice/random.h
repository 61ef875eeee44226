// Random numbers from explicit keys, as in jax.random. PyTorch has no equivalent: its functions change a hidden state.
//
// A key gives the same numbers on every device and for any number of threads. Bits and uniform numbers are those of
// JAX's Threefry generator with jax_threefry_partitionable off; normal numbers differ from JAX's by rounding. Draw from
// a key once, and split it for further draws:
//
//     Tensor keys = random::split(random::key(graph, 7));
//     Tensor noise = random::normal(keys.select(0, 0), {3, 4}), mask = random::uniform(keys.select(0, 1), {3, 4}) < 0.1;
//
// A key is an i32 tensor [2]: an input or a computed value. Shapes are static, with at most 2^30 elements; others throw
// Error. Random functions have no gradient. The conventions of ops.h apply.
#pragma once

#include "sluice/graph.h"
#include "sluice/tensor.h"

#include <cstdint>
#include <source_location>

namespace sluice::random {

/// The key of a seed (jax.random.PRNGKey): its upper and lower 32 bits, as a constant.
Tensor key(Graph &graph, std::uint64_t seed, std::source_location where = std::source_location::current());
/// n independent keys [n, 2], one per row (jax.random.split). n is from 1 to 2^29.
Tensor split(Arg key, std::int64_t n = 2);
/// 32 random bits for each element, i32 (jax.random.bits, which returns uint32).
Tensor bits(Arg key, Shape shape);
/// Uniform in [low, high); rounding may return `high`. f32 has 23 random bits, f64 has 52. f16 and bf16 are f32
/// numbers, rounded; JAX draws other numbers for them. Throws Error if low > high or a bound is not finite.
Tensor uniform(Arg key, Shape shape, double low = 0, double high = 1, DType dtype = f32);
/// Normal with a mean and a standard deviation, from uniform numbers in (-1, 1) by the inverse error function. Throws
/// Error for a negative standard deviation, and for numbers that are not finite.
Tensor normal(Arg key, Shape shape, double mean = 0, double std = 1, DType dtype = f32);

} // namespace sluice::random
