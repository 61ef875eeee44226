// What generated kernels begin with: one text in front of all, without a header of the toolkit, and each one's head.
#pragma once

#include <cstdint>
#include <string>

namespace sluice::cuda {

/// CUDA C++ for NVRTC. `Index` is the type of counts and offsets.
inline constexpr const char *kPrelude = R"(#define EACH(count) _Pragma("unroll") for (int l = 0; l < count; ++l)
typedef long long Index;
typedef unsigned char Byte;

template <class T, int N> struct alignas(sizeof(T) * N) Pack { T at[N]; };

// The threads of a warp that a group of so many neighbours has.
static __device__ unsigned groupMask(int threads) {
  int lane = threadIdx.x % 32;
  return threads == 32 ? ~0u : ((1u << threads) - 1) << (lane / threads * threads);
}

// Of what is never negative.
static __device__ Index quotient(Index a, Index b) { return (Index)((unsigned long long)a / (unsigned long long)b); }
static __device__ int quotient(int a, int b) { return (int)((unsigned)a / (unsigned)b); }
// Towards minus infinity.
template <class T> static __device__ T floordiv(T a, T b) { return a >= 0 ? a / b : -((-a + b - 1) / b); }

// NaN if either is.
template <class T> static __device__ T maximum(T a, T b) { return a != a ? a : b != b ? b : a > b ? a : b; }
template <class T> static __device__ T minimum(T a, T b) { return a != a ? a : b != b ? b : a < b ? a : b; }
)";

/// `extern "C" __global__ void name(Byte *b0, Byte *b1, ..., Index rows, Index tasks) {`, with `bounds` in front.
inline std::string kernelHead(const std::string &name, int64_t buffers, const std::string &bounds = "") {
  std::string head = "extern \"C\" " + bounds + "__global__ void " + name + "(";
  for (int64_t i = 0; i < buffers; ++i)
    head += "Byte *b" + std::to_string(i) + ", ";
  return head + "Index rows, Index tasks) {\n";
}

} // namespace sluice::cuda
