// CUDA C++ as C++: the kernel text that NVRTC gets, run on the CPU by the emulated threads of Threads.cpp. Included in
// front of the text, and light, because every text is compiled with it.
//
// What it assumes of the device, beside the language: `__shfl_sync` waits for all threads of its mask, gives the value
// of the source lane modulo the width in its segment, and is undefined for sources outside of the mask; all threads of a
// block come to the same `__syncthreads`, or none does. What tensor cores multiply has been rounded for them, and they
// add as the fragments of the PTX ISA say, in an order of their own (here in double precision, rounded once).
#pragma once

#define __global__
#define __device__
#define __launch_bounds__(...)
#define __shared__ static // blocks run one after the other

namespace cuda_emu {

struct Dim {
  unsigned x = 1, y = 1, z = 1;
};

/// Where the running thread is.
struct Place {
  Dim thread, block, blockSize, gridSize;
};
extern "C" const Place *cuda_emu_place();

/// Runs `kernel` as every thread of every block, one block after the other.
extern "C" void cuda_emu_launch(Dim gridSize, Dim blockSize, void (*kernel)(void *), void *argument);

/// What thread `from` of the warp gives for this exchange of all threads in `mask`; at most 8 bytes.
extern "C" void cuda_emu_exchange(unsigned mask, const void *value, unsigned bytes, unsigned from, void *result);

/// What all threads of the warp give for this exchange, those of lanes 0 to 31 side by side; at most 24 bytes each.
extern "C" void cuda_emu_gather(const void *value, unsigned bytes, void *all);

/// Ends the program if not.
extern "C" void cuda_emu_require(bool holds, const char *what);

/// Waits for all threads of the block.
extern "C" void cuda_emu_barrier();

template <typename Kernel> void launch(Dim gridSize, Dim blockSize, Kernel kernel) {
  cuda_emu_launch(gridSize, blockSize, [](void *argument) { (*static_cast<Kernel *>(argument))(); }, &kernel);
}

template <int... I> struct Numbers {};
template <int N, int... I> struct UpTo : UpTo<N - 1, N - 1, I...> {};
template <int... I> struct UpTo<0, I...> {
  using Type = Numbers<I...>;
};

template <typename... A, int... I>
void call(void (*kernel)(A...), Numbers<I...>, Dim gridSize, Dim blockSize, void *const *arguments) {
  launch(gridSize, blockSize, [=] { kernel(*static_cast<A *>(arguments[I])...); });
}

/// Launches a kernel as a driver does, which has the addresses of its arguments.
template <typename... A> void call(void (*kernel)(A...), Dim gridSize, Dim blockSize, void *const *arguments) {
  call(kernel, typename UpTo<sizeof...(A)>::Type(), gridSize, blockSize, arguments);
}

/// The sizes of a kernel's arguments, behind their number.
template <typename... A> struct ArgumentSizes {
  unsigned values[1 + sizeof...(A)] = {sizeof...(A), sizeof(A)...};
};
template <typename... A> const unsigned *argumentSizes(void (*)(A...)) {
  static const ArgumentSizes<A...> sizes;
  return sizes.values;
}

} // namespace cuda_emu

#define threadIdx (cuda_emu::cuda_emu_place()->thread)
#define blockIdx (cuda_emu::cuda_emu_place()->block)
#define blockDim (cuda_emu::cuda_emu_place()->blockSize)
#define gridDim (cuda_emu::cuda_emu_place()->gridSize)

template <typename T> T __shfl_sync(unsigned mask, T value, int from, int width) {
  unsigned lane = threadIdx.x % 32;
  T result;
  cuda_emu::cuda_emu_exchange(mask, &value, sizeof value,
                              lane / unsigned(width) * unsigned(width) + unsigned(from) % unsigned(width), &result);
  return result;
}

inline void __syncthreads() { cuda_emu::cuda_emu_barrier(); }

// Tensor cores, in place of the prelude's.
#define SLUICE_TENSOR_CORES
inline float roundToTf32(float x) {
  unsigned bits = __builtin_bit_cast(unsigned, x);
  if ((bits >> 23 & 0xff) != 0xff) // to the nearest, ties away from zero
    bits = (bits + 0x1000) & ~0x1fffu;
  return __builtin_bit_cast(float, bits);
}
inline void multiplyTf32(float &c0, float &c1, float &c2, float &c3, const float (&a)[4], const float (&b)[2]) {
  struct Held {
    float a[4], b[2];
  } mine = {{a[0], a[1], a[2], a[3]}, {b[0], b[1]}}, all[32];
  unsigned bits = 0;
  for (float one : mine.a)
    bits |= __builtin_bit_cast(unsigned, one);
  for (float one : mine.b)
    bits |= __builtin_bit_cast(unsigned, one);
  cuda_emu::cuda_emu_require((bits & 0x1fff) == 0, "a number that is no tf32");
  cuda_emu::cuda_emu_gather(&mine, sizeof mine, all);
  unsigned lane = threadIdx.x % 32;
  auto sum = [&](unsigned row, unsigned column) {
    double terms = 0;
    for (unsigned k = 0; k < 8; ++k)
      terms += double(all[row % 8 * 4 + k % 4].a[row / 8 + k / 4 * 2]) * all[column * 4 + k % 4].b[k / 4];
    return terms;
  };
  unsigned row = lane / 4, column = lane % 4 * 2;
  c0 = float(c0 + sum(row, column)), c1 = float(c1 + sum(row, column + 1));
  c2 = float(c2 + sum(row + 8, column)), c3 = float(c3 + sum(row + 8, column + 1));
}

inline int __float_as_int(float value) { return __builtin_bit_cast(int, value); }
inline float __int_as_float(int bits) { return __builtin_bit_cast(float, bits); }
inline double __longlong_as_double(long long bits) { return __builtin_bit_cast(double, bits); }

// Overloads by type, as CUDA C++ has them.
#define CUDA_EMU_FUNCTION(name)                                                                                        \
  extern "C" float name##f(float);                                                                                     \
  extern "C" double name(double);                                                                                      \
  inline float name(float x) { return name##f(x); }
CUDA_EMU_FUNCTION(exp)
CUDA_EMU_FUNCTION(log)
CUDA_EMU_FUNCTION(log1p)
CUDA_EMU_FUNCTION(sqrt)
CUDA_EMU_FUNCTION(sin)
CUDA_EMU_FUNCTION(cos)
CUDA_EMU_FUNCTION(tanh)
CUDA_EMU_FUNCTION(erf)
CUDA_EMU_FUNCTION(floor)
CUDA_EMU_FUNCTION(ceil)
CUDA_EMU_FUNCTION(rint)
CUDA_EMU_FUNCTION(fabs)
#undef CUDA_EMU_FUNCTION
extern "C" float powf(float, float);
extern "C" double pow(double, double);
inline float pow(float x, float y) { return powf(x, y); }
extern "C" float fmaf(float, float, float);
extern "C" double fma(double, double, double);
inline float fma(float x, float y, float z) { return fmaf(x, y, z); }
