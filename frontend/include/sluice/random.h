// Random numbers from explicit keys, as in jax.random. PyTorch has no equivalent: its functions change a hidden state.
//
// A key gives the same bits on every device and for any number of threads: those of JAX's Threefry generator with
// jax_threefry_partitionable off. Uniform numbers are equal too; normal numbers on CUDA devices differ by the rounding
// of the logarithm. Draw from a key once, and split it for further draws:
//
//     Tensor keys = random::split(random::key(graph, 7));
//     Tensor noise = random::normal(keys.select(0, 0), {3, 4}), mask = random::uniform(keys.select(0, 1), {3, 4}) < 0.1;
//
// A key is [2] of i32, computed or an input of the program. Shapes are static, of at most 2^30 elements. No function has
// a gradient. The conventions of ops.h hold.
#pragma once

#include "sluice/graph.h"
#include "sluice/tensor.h"

#include <cstdint>
#include <source_location>

namespace sluice::random {

/// The key of a seed (jax.random.PRNGKey): a constant of its upper and its lower 32 bits.
Tensor key(Graph &graph, std::uint64_t seed, std::source_location where = std::source_location::current());
/// Independent keys [n, 2], one in each row. n is at least 1.
Tensor split(Arg key, std::int64_t n = 2);
/// 32 random bits for each element, i32 (jax.random.bits, which returns uint32).
Tensor bits(Arg key, Shape shape);
/// Uniform in [low, high), where rounding may give `high`. f32 has 23 random bits and f64 has 52; f16 and bf16 are
/// rounded from f32, and JAX draws other numbers for them. Throws Error for bounds that are reversed or not finite.
Tensor uniform(Arg key, Shape shape, double low = 0, double high = 1, DType dtype = f32);
/// Normal with a mean and a standard deviation, from uniform numbers in (-1, 1) by the inverse error function. Throws
/// Error for a negative standard deviation, and for numbers that are not finite.
Tensor normal(Arg key, Shape shape, double mean = 0, double std = 1, DType dtype = f32);

} // namespace sluice::random
