// CUDA C++ as C++: the kernel text that NVRTC gets, run on the CPU by the emulated threads of Threads.cpp. Included in
// front of the text, and light, because every text is compiled with it.
//
// What it assumes of the device, beside the language, is in CONTRACTS.md. What tensor cores multiply it adds in double precision,
// and rounds once. A copy by `cp.async` is done at any time from where it begins to where its thread has waited for its group.
#pragma once

#define __global__
#define __device__
#define __launch_bounds__(...) // the driver's double is told (cuda_emu_bounds_NAME)
#define OUT_OF_LINE __attribute__((noinline))
#define __shared__ static // blocks run one after the other

namespace cuda_emu {

struct Dim {
  unsigned x = 1, y = 1, z = 1;
};

/// Where the running thread is.
struct Place {
  Dim thread, block, blockSize, gridSize;
};
extern "C" [[gnu::const]] const Place *cuda_emu_place(); // always that of the same thread, however often it yields

/// Runs `kernel` as every thread of every block, one block after the other.
extern "C" void cuda_emu_launch(Dim gridSize, Dim blockSize, void (*kernel)(void *), void *argument);

/// What thread `from` of the warp gives for this exchange of all threads in `mask`; at most 8 bytes.
extern "C" void cuda_emu_exchange(unsigned mask, const void *value, unsigned bytes, unsigned from, void *result);

/// The addresses that all threads of the warp give, those of lanes 0 to 31 side by side.
extern "C" void *const *cuda_emu_gather(void *address);

/// c += a b of the whole warp, with 8 or 16 terms to a sum: what a lane holds of `mma.m16n8k8` and `mma.m16n8k16`, register by
/// register.
extern "C" void cuda_emu_multiply(unsigned terms, const float *a, const float *b, float *c);

/// Ends the program if not.
extern "C" void cuda_emu_require(bool holds, const char *what);

/// Waits for all threads of the block.
extern "C" void cuda_emu_barrier();

/// Shared memory that the launch gives each block, of so many bytes or more: as many as are given, or just these for callers that
/// say nothing of it. Behind it is nothing: the program ends where a kernel goes on there.
extern "C" unsigned char *cuda_emu_shared(unsigned bytes);
extern "C" void cuda_emu_give_shared_bytes(unsigned bytes);

/// `copy(to, from)` of the running thread, at once or when it waits for it: every other thread's are late.
extern "C" void cuda_emu_begin_copy(void (*copy)(void *, const void *), void *to, const void *from);
extern "C" void cuda_emu_end_group_of_copies();
extern "C" void cuda_emu_await_copies(unsigned groups);

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
  static_assert((0 + ... + sizeof(A)) <= 4096, "too many bytes of arguments"); // what drivers before CUDA 12.1 take
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

// What comes with sm_80, in place of the prelude's.
#define SLUICE_EMULATED
#define SHARED_BYTES(name, bytes) unsigned char *const name = cuda_emu::cuda_emu_shared(bytes)
template <class T> T *held(T *address) { return address; }
template <int bytes> void beginCopy(void *to, const void *from, bool exists) {
  static_assert(bytes == 4 || bytes == 8 || bytes == 16, "there are no such copies");
  static const unsigned char zeros[bytes] = {};
  auto isAligned = [](const void *at) { return reinterpret_cast<unsigned long long>(at) % bytes == 0; };
  cuda_emu::cuda_emu_require(isAligned(to) && (!exists || isAligned(from)), "a copy that is not aligned");
  auto copy = [](void *to, const void *from) { __builtin_memcpy(to, from, bytes); };
  cuda_emu::cuda_emu_begin_copy(copy, to, exists ? from : zeros);
}
inline void endGroupOfCopies() { cuda_emu::cuda_emu_end_group_of_copies(); }
template <int groups> void awaitCopies() { cuda_emu::cuda_emu_await_copies(groups); }

namespace cuda_emu {
/// bits / 2^shift, rounded to nearest even.
inline unsigned roundShift(unsigned bits, int shift) {
  return (bits + ((1u << (shift - 1)) - 1) + (bits >> shift & 1)) >> shift;
}
} // namespace cuda_emu

inline unsigned pairOfBF16(float low, float high) {
  auto bitsOf = [](float x) { return x != x ? 0x7fff : cuda_emu::roundShift(__builtin_bit_cast(unsigned, x), 16); };
  return bitsOf(low) | bitsOf(high) << 16;
}
inline unsigned pairOfF16(float low, float high) {
  auto bitsOf = [](float x) -> unsigned {
    unsigned from = __builtin_bit_cast(unsigned, x), sign = from >> 16 & 0x8000, magnitude = from & 0x7fffffff;
    int shift = 126 - int(magnitude >> 23); // to the last digit of a subnormal
    if (x != x)
      return 0x7fff;
    if (magnitude >= 0x477ff000)
      return sign | 0x7c00;
    if (magnitude >= 0x38800000)
      return sign | cuda_emu::roundShift(magnitude - (112u << 23), 13);
    return sign | (shift > 24 ? 0 : cuda_emu::roundShift((magnitude & 0x7fffff) | 0x800000, shift));
  };
  return bitsOf(low) | bitsOf(high) << 16;
}
inline double valueOfF16(unsigned bits) {
  unsigned exponent = bits >> 10 & 31, fraction = bits & 0x3ff;
  double scale = __builtin_bit_cast(double, (1023ull + (exponent ? exponent : 1) - 25) << 52);
  double magnitude = exponent == 31 ? (fraction ? __builtin_nan("") : __builtin_inf())
                                    : scale * (exponent ? fraction + 1024 : fraction);
  return bits & 0x8000 ? -magnitude : magnitude;
}

extern "C" float exp2f(float);
inline float powerOfTwo(float x) { return exp2f(x); }
inline float roundToTf32(float x) {
  unsigned bits = __builtin_bit_cast(unsigned, x);
  if ((bits >> 23 & 0xff) != 0xff) // to the nearest, ties away from zero
    bits = (bits + 0x1000) & ~0x1fffu;
  return __builtin_bit_cast(float, bits);
}
namespace cuda_emu {
template <unsigned terms>
void multiply(float &c0, float &c1, float &c2, float &c3, const float (&a)[terms / 2], const float (&b)[terms / 4]) {
  float c[4] = {c0, c1, c2, c3};
  cuda_emu_multiply(terms, a, b, c);
  c0 = c[0], c1 = c[1], c2 = c[2], c3 = c[3];
}
} // namespace cuda_emu

inline void multiplyTf32(float &c0, float &c1, float &c2, float &c3, const float (&a)[4], const float (&b)[2]) {
  unsigned bits = 0;
  for (float one : a)
    bits |= __builtin_bit_cast(unsigned, one);
  for (float one : b)
    bits |= __builtin_bit_cast(unsigned, one);
  cuda_emu::cuda_emu_require((bits & 0x1fff) == 0, "a number that is no tf32");
  cuda_emu::multiply<8>(c0, c1, c2, c3, a, b);
}

template <bool transposed, class Half> void loadMatrices(unsigned (&to)[4], const Half *row) {
  cuda_emu::cuda_emu_require(reinterpret_cast<unsigned long long>(row) % 16 == 0,
                             "a row of a matrix that is not aligned");
  void *const *all = cuda_emu::cuda_emu_gather(const_cast<Half *>(row));
  unsigned lane = threadIdx.x % 32;
  for (unsigned matrix = 0; matrix < 4; ++matrix) {
    to[matrix] = 0;
    for (unsigned one = 0; one < 2; ++one) {
      unsigned by = lane / 4, along = lane % 4 * 2 + one;
      const Half *held = static_cast<const Half *>(all[matrix * 8 + (transposed ? along : by)]);
      to[matrix] |= unsigned(held[transposed ? by : along].bits) << 16 * one;
    }
  }
}

inline float valueOfBF16(unsigned bits) { return __builtin_bit_cast(float, bits << 16); }
template <typename Value>
void multiplyHalves(float &c0, float &c1, float &c2, float &c3, const unsigned (&a)[4], unsigned b0, unsigned b1,
                    Value valueOf) {
  float as[8], bs[4];
  for (unsigned i = 0; i < 8; ++i)
    as[i] = valueOf(a[i / 2] >> i % 2 * 16 & 0xffff);
  for (unsigned i = 0; i < 4; ++i)
    bs[i] = valueOf((i / 2 ? b1 : b0) >> i % 2 * 16 & 0xffff);
  cuda_emu::multiply<16>(c0, c1, c2, c3, as, bs);
}
inline void multiplyBF16(float &c0, float &c1, float &c2, float &c3, const unsigned (&a)[4], unsigned b0, unsigned b1) {
  multiplyHalves(c0, c1, c2, c3, a, b0, b1, valueOfBF16);
}
inline void multiplyF16(float &c0, float &c1, float &c2, float &c3, const unsigned (&a)[4], unsigned b0, unsigned b1) {
  multiplyHalves(c0, c1, c2, c3, a, b0, b1, valueOfF16);
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
CUDA_EMU_FUNCTION(expm1)
CUDA_EMU_FUNCTION(log)
CUDA_EMU_FUNCTION(log1p)
CUDA_EMU_FUNCTION(sqrt)
CUDA_EMU_FUNCTION(sin)
CUDA_EMU_FUNCTION(cos)
CUDA_EMU_FUNCTION(asin)
CUDA_EMU_FUNCTION(acos)
CUDA_EMU_FUNCTION(atan)
CUDA_EMU_FUNCTION(sinh)
CUDA_EMU_FUNCTION(cosh)
CUDA_EMU_FUNCTION(asinh)
CUDA_EMU_FUNCTION(acosh)
CUDA_EMU_FUNCTION(atanh)
CUDA_EMU_FUNCTION(tanh)
CUDA_EMU_FUNCTION(erf)
CUDA_EMU_FUNCTION(floor)
CUDA_EMU_FUNCTION(ceil)
CUDA_EMU_FUNCTION(rint)
CUDA_EMU_FUNCTION(fabs)
#undef CUDA_EMU_FUNCTION
extern "C" float fmaxf(float, float);
extern "C" float fmodf(float, float);
extern "C" double fmod(double, double);
extern "C" float powf(float, float);
extern "C" double pow(double, double);
inline float fmod(float x, float y) { return fmodf(x, y); }
inline float pow(float x, float y) { return powf(x, y); }
extern "C" float fmaf(float, float, float);
extern "C" double fma(double, double, double);
inline float fma(float x, float y, float z) { return fmaf(x, y, z); }
