#define EACH(count) _Pragma("unroll") for (int l = 0; l < count; ++l)
typedef long long Index;
typedef unsigned char Byte;
#ifndef OUT_OF_LINE // an emulator may define it
#define OUT_OF_LINE __noinline__
#endif

template <class T, int N> struct alignas(sizeof(T) * N) Pack { T at[N]; };
// The N elements from `first` on as one pack. The address must be a multiple of the pack's size; sanitizers can check
// the alignment of the reference.
template <int N, class T> static __device__ Pack<T, N> &packAt(T *first) { return *(Pack<T, N> *)first; }

// The mask of the warp's threads that are in the group of the calling thread: `threads` adjacent ones.
static __device__ unsigned groupMask(int threads) {
  int lane = threadIdx.x % 32;
  return threads >= 32 ? ~0u : ((1u << threads) - 1) << (lane / threads * threads);
}

// For a block whose threads compute together: the first `threads` threads receive the element of the thread `threads`
// later.
template <int threads, class T> static __device__ T takeFrom(int thread, T *held, T element) {
  if (thread / threads == 1) held[thread - threads] = element;
  __syncthreads();
  if (thread < threads) element = held[thread];
  __syncthreads();
  return element;
}
template <class T> static __device__ T ofFirst(int thread, T *held, T element) {
  if (thread == 0) *held = element;
  __syncthreads();
  T first = *held;
  __syncthreads();
  return first;
}

// The quotient of numbers that are not negative.
static __device__ Index quotient(Index a, Index b) { return (Index)((unsigned long long)a / (unsigned long long)b); }
static __device__ int quotient(int a, int b) { return (int)((unsigned)a / (unsigned)b); }
// The quotient rounded towards minus infinity, for b > 0.
template <class T> static __device__ T floordiv(T a, T b) { return a >= 0 ? a / b : -((-a + b - 1) / b); }

// Conversions between floats and halves, rounded to the nearest, ties to even. Infinities and subnormals are kept, and
// NaN stays NaN.
#ifndef SLUICE_EMULATED
#if __CUDA_ARCH__ >= 800
static __device__ unsigned pairOfBF16(float low, float high) {
  unsigned pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
}
static __device__ unsigned pairOfF16(float low, float high) {
  unsigned pair;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
}
#else
static __device__ unsigned pairOfBF16(float low, float high) {
  auto bitsOf = [](float x) {
    unsigned bits = __float_as_uint(x);
    return x != x ? 0x7fff : (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
  };
  return bitsOf(low) | bitsOf(high) << 16;
}
static __device__ unsigned pairOfF16(float low, float high) {
  auto bitsOf = [](float x) {
    unsigned short bits;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(x));
    return (unsigned)bits;
  };
  return bitsOf(low) | bitsOf(high) << 16;
}
#endif
static __device__ float valueOfF16(unsigned short bits) {
  float x;
  asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(bits));
  return x;
}
#endif
// Two-byte floats in memory. Converting two at once is faster than converting one.
struct BF16 {
  unsigned short bits;
  __device__ operator float() const { return __int_as_float((int)((unsigned)bits << 16)); }
  __device__ void operator=(float x) { bits = (unsigned short)pairOfBF16(x, 0); }
};
struct F16 {
  unsigned short bits;
  __device__ operator float() const { return valueOfF16(bits); }
  __device__ void operator=(float x) { bits = (unsigned short)pairOfF16(x, 0); }
};
template <class Half> static __device__ unsigned pairOf(float low, float high);
template <> __device__ unsigned pairOf<BF16>(float low, float high) { return pairOfBF16(low, high); }
template <> __device__ unsigned pairOf<F16>(float low, float high) { return pairOfF16(low, high); }

// Packs of halves are words of up to eight bytes. Otherwise, compilers would load, store and convert elements one by
// one.
template <int halves> struct WordOf { typedef unsigned long long Type; };
template <> struct WordOf<1> { typedef unsigned short Type; };
template <> struct WordOf<2> { typedef unsigned Type; };
#define PACK_OF_HALVES(Half) \
  template <int N> struct alignas(2 * N) Pack<Half, N> { union { typename WordOf<N>::Type words[N > 4 ? N / 4 : 1]; Half at[N]; }; };
PACK_OF_HALVES(BF16)
PACK_OF_HALVES(F16)
template <class T, int N> static __device__ T elementOf(const Pack<T, N> &pack, int i) { return pack.at[i]; }
template <int N> static __device__ float elementOf(const Pack<BF16, N> &pack, int i) {
  const unsigned pair = (unsigned)(pack.words[i / 4] >> i % 4 / 2 * 32);
  return __int_as_float((int)(i % 2 ? pair & 0xffff0000u : pair << 16));
}
template <int N> static __device__ float elementOf(const Pack<F16, N> &pack, int i) {
  return valueOfF16((unsigned short)(pack.words[i / 4] >> i % 4 * 16));
}
template <class T, int N, class Value> static __device__ void fill(Pack<T, N> &pack, const Value (&values)[N]) {
  EACH(N) pack.at[l] = values[l];
}
template <class Half, int N> static __device__ void fillHalves(Pack<Half, N> &pack, const float (&values)[N]) {
  typedef typename WordOf<N>::Type Word;
  pack = {};
  EACH(N) if (l % 2 == 0) pack.words[l / 4] |= (Word)pairOf<Half>(values[l], l + 1 < N ? values[l + 1] : 0) << l % 4 / 2 * 32;
}
template <int N> static __device__ void fill(Pack<BF16, N> &pack, const float (&values)[N]) { fillHalves(pack, values); }
template <int N> static __device__ void fill(Pack<F16, N> &pack, const float (&values)[N]) { fillHalves(pack, values); }
template <class Half> static __device__ float rounded(float x) { Half half; half = x; return half; }

// NaN if either operand is NaN.
template <class T> static __device__ T maximum(T a, T b) { return a != a ? a : b != b ? b : a > b ? a : b; }
template <class T> static __device__ T minimum(T a, T b) { return a != a ? a : b != b ? b : a < b ? a : b; }

// Features of sm_80: asynchronous copies, and tensor cores with the fragments of product/Fragments.h.
#ifndef SLUICE_EMULATED
// The same address, as a value that compilers cannot recompute: otherwise, they would recompute it at each use.
template <class T> static __device__ T *held(T *address) {
  asm volatile("" : "+l"(address));
  return address;
}
// Dynamic shared memory of this many bytes, which the launch provides. Static shared memory is limited to 48 KB.
#define SHARED_BYTES(name, bytes) alignas(16) extern __shared__ Byte name[]
// Begins to copy 4, 8 or 16 bytes into shared memory; writes zeros if they do not exist.
template <int bytes> static __device__ void beginCopy(void *to, const void *from, bool exists) {
  unsigned at = (unsigned)__cvta_generic_to_shared(to);
  int there = exists ? bytes : 0;
  if (bytes == 16) // .cg bypasses L1, and only copies 16 bytes
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" :: "r"(at), "l"(from), "r"(there) : "memory");
  else
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" :: "r"(at), "l"(from), "n"(bytes), "r"(there) : "memory");
}
// Makes the copies that the thread has begun since the last group one group.
static __device__ void endGroupOfCopies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
// Waits for all of the thread's groups except the last `groups`.
template <int groups> static __device__ void awaitCopies() { asm volatile("cp.async.wait_group %0;" :: "n"(groups) : "memory"); }
// 2^x with a relative error of 2^-22; 0 if the result is subnormal.
static __device__ float powerOfTwo(float x) {
  float power;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(x));
  return power;
}
// Rounds to 11 bits, to the nearest, ties away from zero.
static __device__ float roundToTf32(float x) {
  unsigned rounded;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(rounded) : "f"(x));
  return __uint_as_float(rounded);
}
static __device__ void multiplyTf32(float &c0, float &c1, float &c2, float &c3, const float (&a)[4],
                                    const float (&b)[2]) {
  asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(c0), "+f"(c1), "+f"(c2), "+f"(c3)
      : "r"(__float_as_uint(a[0])), "r"(__float_as_uint(a[1])), "r"(__float_as_uint(a[2])), "r"(__float_as_uint(a[3])),
        "r"(__float_as_uint(b[0])), "r"(__float_as_uint(b[1])));
}
// Loads four matrices of 8 x 8. Each thread passes the address of one row; the rows of a matrix are those of 8 adjacent
// threads.
template <bool transposed, class Half> static __device__ void loadMatrices(unsigned (&to)[4], const Half *row) {
  unsigned at = (unsigned)__cvta_generic_to_shared(row);
  if (transposed)
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
        : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3]) : "r"(at) : "memory");
  else
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
        : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3]) : "r"(at) : "memory");
}
#define MULTIPLY_HALVES(name, type) \
  static __device__ void name(float &c0, float &c1, float &c2, float &c3, const unsigned (&a)[4], unsigned b0, unsigned b1) { \
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32." type "." type ".f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};" \
        : "+f"(c0), "+f"(c1), "+f"(c2), "+f"(c3) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1)); \
  }
MULTIPLY_HALVES(multiplyBF16, "bf16")
MULTIPLY_HALVES(multiplyF16, "f16")
#endif
