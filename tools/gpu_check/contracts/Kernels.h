// The kernels that contracts are tried with, as text for NVRTC behind the prelude of generated kernels: see contracts/*.cpp for
// what each must do.
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
