// The kernels that the contracts launch, as text for NVRTC after the prelude of generated kernels. contracts/*.cpp
// documents the expected behavior of each.
#pragma once

namespace sluice::gpu_check {

inline constexpr const char *kOwnKernels = R"(
extern "C" __global__ void store(int *to, int value) { *to = value; }

// Works for a while, then copies one number.
extern "C" __global__ void copy_late(int *to, const int *from, int turns, int zero) {
  int wait = 0;
  for (int i = 0; i < turns; ++i)
    wait = (wait + i) * zero;
  *to = *from + wait;
}

// Neighbours of segments of eight lanes, one lane up and around.
extern "C" __global__ void shuffle(int *to) {
  int lane = threadIdx.x % 32;
  to[threadIdx.x] = __shfl_sync(~0u, 100 + lane, lane % 8 + 1, 8);
}

// The upper half of a warp alone.
extern "C" __global__ void shuffle_half(int *to) {
  int lane = threadIdx.x % 32;
  to[threadIdx.x] = lane < 16 ? -1 : __shfl_sync(0xffff0000u, lane, 16, 16);
}

extern "C" __global__ void reverse(int *to) {
  __shared__ int held[256];
  for (int round = 0; round < 4; ++round) {
    held[threadIdx.x] = 1000 * round + threadIdx.x;
    __syncthreads();
    to[256 * round + threadIdx.x] = held[255 - threadIdx.x];
    __syncthreads();
  }
}

// to[i] = i for `count` numbers, by way of so much shared memory.
extern "C" __global__ void count_in_shared(int *to, int count) {
  SHARED_BYTES(bytes, 80 << 10);
  int *held = (int *)bytes;
  for (int i = threadIdx.x; i < count; i += blockDim.x)
    held[count - 1 - i] = count - 1 - i;
  __syncthreads();
  for (int i = threadIdx.x; i < count; i += blockDim.x)
    to[i] = held[i];
}

// Sixteen bytes a thread, of which every third thread's are zeros, in each of four rounds, two of them ahead.
extern "C" __global__ void copy_ahead(Pack<int, 4> *to, const Pack<int, 4> *from) {
  __shared__ Pack<int, 4> held[3][128];
  int size = blockDim.x;
  for (int round = -2; round < 4; ++round) {
    if (round >= 0)
      awaitCopies<1>();
    __syncthreads();
    if (round < 2)
      beginCopy<16>(&held[(round + 2) % 3][threadIdx.x], from + (round + 2) * size + threadIdx.x, threadIdx.x % 3 != 0);
    endGroupOfCopies();
    if (round >= 0)
      to[round * size + threadIdx.x] = held[round % 3][size - 1 - threadIdx.x];
  }
}

// Packs of 8 and of 4 bytes, one of each to a thread, of which every third thread's are zeros, copied from nowhere.
extern "C" __global__ void copy_small(Pack<int, 4> *to, const Pack<int, 2> *pairs, const int *numbers) {
  __shared__ Pack<int, 2> heldPairs[128];
  __shared__ int heldNumbers[128];
  int i = threadIdx.x;
  bool exists = i % 3 != 0;
  heldPairs[i].at[0] = heldPairs[i].at[1] = heldNumbers[i] = -1;
  beginCopy<8>(&heldPairs[i], exists ? pairs + i : 0, exists);
  beginCopy<4>(&heldNumbers[i], exists ? numbers + i : 0, exists);
  endGroupOfCopies();
  awaitCopies<0>();
  to[i].at[0] = heldPairs[i].at[0], to[i].at[1] = heldPairs[i].at[1], to[i].at[2] = heldNumbers[i], to[i].at[3] = 0;
}

// C[16, 8] + A[16, 8] B[8, 8], by one warp, whose fragments lie as product/Fragments.h says.
extern "C" __global__ void multiply_tf32(float *to, const float *a, const float *b, const float *c) {
  int group = threadIdx.x / 4, its = threadIdx.x % 4;
  float ofA[4], ofB[2], sum[4];
  EACH(4) ofA[l] = a[(group + l % 2 * 8) * 8 + its + l / 2 * 4];
  EACH(2) ofB[l] = b[(its + l * 4) * 8 + group];
  EACH(4) sum[l] = c[(group + l / 2 * 8) * 8 + 2 * its + l % 2];
  multiplyTf32(sum[0], sum[1], sum[2], sum[3], ofA, ofB);
  EACH(4) to[(group + l / 2 * 8) * 8 + 2 * its + l % 2] = sum[l];
}

// C[16, 8] + A[16, 16] B[16, 8], of the bits of halves.
template <class Multiply>
static __device__ void multiplyHalvesOf(float *to, const unsigned short *a, const unsigned short *b, const float *c,
                                        Multiply multiply) {
  int group = threadIdx.x / 4, its = threadIdx.x % 4;
  unsigned ofA[4], ofB[2];
  float sum[4];
  EACH(4) {
    const unsigned short *pair = a + (group + l % 2 * 8) * 16 + 2 * its + l / 2 * 8;
    ofA[l] = pair[0] | (unsigned)pair[1] << 16;
  }
  EACH(2) {
    const unsigned short *pair = b + (2 * its + l * 8) * 8 + group;
    ofB[l] = pair[0] | (unsigned)pair[8] << 16;
  }
  EACH(4) sum[l] = c[(group + l / 2 * 8) * 8 + 2 * its + l % 2];
  multiply(sum, ofA, ofB);
  EACH(4) to[(group + l / 2 * 8) * 8 + 2 * its + l % 2] = sum[l];
}
extern "C" __global__ void multiply_bf16(float *to, const unsigned short *a, const unsigned short *b, const float *c) {
  multiplyHalvesOf(to, a, b, c, [](float (&sum)[4], const unsigned (&ofA)[4], const unsigned (&ofB)[2]) {
    multiplyBF16(sum[0], sum[1], sum[2], sum[3], ofA, ofB[0], ofB[1]);
  });
}
extern "C" __global__ void multiply_f16(float *to, const unsigned short *a, const unsigned short *b, const float *c) {
  multiplyHalvesOf(to, a, b, c, [](float (&sum)[4], const unsigned (&ofA)[4], const unsigned (&ofB)[2]) {
    multiplyF16(sum[0], sum[1], sum[2], sum[3], ofA, ofB[0], ofB[1]);
  });
}

// Four matrices of 8 x 8, whose rows lie apart, as one warp's registers have them, and transposed.
extern "C" __global__ void load_matrices(unsigned *to, const unsigned short *from) {
  alignas(16) __shared__ F16 held[32][24];
  int lane = threadIdx.x;
  for (int i = 0; i < 8; ++i)
    held[lane][i].bits = from[lane * 8 + i];
  __syncthreads();
  unsigned plain[4], transposed[4];
  loadMatrices<false>(plain, &held[lane][0]);
  loadMatrices<true>(transposed, &held[lane][0]);
  EACH(4) to[lane * 4 + l] = plain[l], to[128 + lane * 4 + l] = transposed[l];
}

extern "C" __global__ void round_to_tf32(float *to, const float *from, int count) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count)
    to[i] = roundToTf32(from[i]);
}

extern "C" __global__ void powers_of_two(float *to, const float *from, int count) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count)
    to[i] = powerOfTwo(from[i]);
}

extern "C" __global__ void places(int *to) {
  to[blockIdx.x * blockDim.x + threadIdx.x] = 10000 * gridDim.x + 100 * blockIdx.x + threadIdx.x;
}

// to[0..7] of from[0..2]: what must be rounded each by itself, and what must not.
extern "C" __global__ void arithmetic_f32(float *to, const float *from) {
  float a = from[0], b = from[1], c = from[2];
  to[0] = a * b + c;
  to[1] = fma(a, b, c);
  to[2] = a / b;
  to[3] = sqrt(a);
  to[4] = rint(a * 0.5f);
  to[5] = from[3] * 0.5f;
  to[6] = floor(-a);
  to[7] = fabs(c);
}
extern "C" __global__ void arithmetic_f64(double *to, const double *from) {
  double a = from[0], b = from[1], c = from[2];
  to[0] = a * b + c;
  to[1] = fma(a, b, c);
  to[2] = a / b;
  to[3] = sqrt(a);
  to[4] = rint(a * 0.5);
  to[5] = from[3] * 0.5;
  to[6] = floor(-a);
  to[7] = fabs(c);
}

// One function after the other, each of all numbers.
extern "C" __global__ void functions(float *to, const float *from, int count) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count)
    return;
  float x = from[i];
  to[0 * count + i] = exp(x);
  to[1 * count + i] = log(fabs(x));
  to[2 * count + i] = log1p(fabs(x));
  to[3 * count + i] = sin(x);
  to[4 * count + i] = cos(x);
  to[5 * count + i] = tanh(x);
  to[6 * count + i] = erf(x);
  to[7 * count + i] = pow(fabs(x), 1.7f);
  to[8 * count + i] = expm1(x);
  to[9 * count + i] = asin(x / 11);
  to[10 * count + i] = acos(x / 11);
  to[11 * count + i] = atan(x);
  to[12 * count + i] = sinh(x);
  to[13 * count + i] = cosh(x);
  to[14 * count + i] = asinh(x);
  to[15 * count + i] = acosh(fabs(x) + 1);
  to[16 * count + i] = atanh(x / 11);
}

// Of each number the bits of both halves, and what these are as floats.
extern "C" __global__ void halves(Pack<float, 4> *to, const float *from, int count) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count)
    return;
  BF16 bf16;
  F16 f16;
  bf16 = from[i], f16 = from[i];
  to[i].at[0] = bf16.bits, to[i].at[1] = f16.bits;
  to[i].at[2] = bf16, to[i].at[3] = f16;
}

extern "C" __global__ void fault(int *nowhere) { *nowhere = 1; }

// Eight chains of multiply-adds a thread.
extern "C" __global__ void multiply_adds(float *to, float by, int turns) {
  float x[8];
  for (int l = 0; l < 8; ++l)
    x[l] = threadIdx.x + l;
  for (int i = 0; i < turns; ++i)
    for (int l = 0; l < 8; ++l)
      x[l] = fma(x[l], by, 1.0f);
  float sum = 0;
  for (int l = 0; l < 8; ++l)
    sum += x[l];
  to[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

extern "C" __global__ void copy_packs(Pack<float, 4> *to, const Pack<float, 4> *from, Index count) {
  Index step = (Index)gridDim.x * blockDim.x;
  for (Index i = (Index)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += step)
    to[i] = from[i];
}
)";

} // namespace sluice::gpu_check
