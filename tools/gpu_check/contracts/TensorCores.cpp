// Tensor cores: the positions of a product's elements in a warp's registers, loads into them, and the rounding of sums.
#include "tools/gpu_check/contracts/Machine.h"

#include "sluice/backend/halves.h"

#include <bit>
#include <cmath>

namespace sluice::gpu_check {

using namespace cuda;

static constexpr size_t kRows = 16, kColumns = 8;

/// With A [16, terms], B [terms, 8] and C [16, 8], row-major, by one warp.
template <typename T>
static std::vector<float> multiplyBy(Machine &machine, const char *kernel, const std::vector<T> &a,
                                     const std::vector<T> &b, const std::vector<float> &c) {
  DriverStream stream = machine.stream();
  DeviceAddress ofA = machine.place(stream, a), ofB = machine.place(stream, b), ofC = machine.place(stream, c),
                to = machine.allocate(c.size() * sizeof(float));
  machine.launch(stream, kernel, 1, 32, {&to, &ofA, &ofB, &ofC});
  return machine.read<float>(stream, to, c.size());
}

/// Integers from -8 to 8, which every type represents.
static std::vector<float> drawWhole(size_t count, uint32_t state) {
  std::vector<float> numbers(count);
  for (float &number : numbers) {
    state = state * 1664525 + 1013904223;
    number = float(int(state >> 16) % 17 - 8);
  }
  return numbers;
}

/// Unrounded numbers from -1 to 1.
static std::vector<float> drawBetweenOnes(size_t count, uint32_t state) {
  std::vector<float> numbers(count);
  for (float &number : numbers) {
    state = state * 1664525 + 1013904223;
    number = float(int32_t(state)) * 0x1p-31f;
  }
  return numbers;
}

template <typename T> struct Tile {
  size_t terms;
  T (*encode)(float);
  float (*decode)(T);

  std::vector<T> encoded(const std::vector<float> &numbers) const {
    std::vector<T> bits(numbers.size());
    for (size_t i = 0; i < bits.size(); ++i)
      bits[i] = encode(numbers[i]);
    return bits;
  }

  /// The allowed error is this share of the sum of an element's magnitudes.
  void expectWithin(Machine &machine, const char *kernel, const std::vector<float> &a, const std::vector<float> &b,
                    const std::vector<float> &c, double share) const {
    std::vector<T> ofA = encoded(a), ofB = encoded(b);
    std::vector<float> found = multiplyBy(machine, kernel, ofA, ofB, c);
    for (size_t i = 0; i < kRows * kColumns; ++i) {
      double sum = c[i], magnitudes = std::fabs(sum);
      for (size_t k = 0; k < terms; ++k) {
        double term = double(decode(ofA[i / kColumns * terms + k])) * decode(ofB[k * kColumns + i % kColumns]);
        sum += term, magnitudes += std::fabs(term);
      }
      expect(std::fabs(found[i] - sum) <= share * magnitudes,
             "element (" + std::to_string(i / kColumns) + ", " + std::to_string(i % kColumns) + ") is " +
                 std::to_string(found[i]) + ", not " + std::to_string(sum));
    }
  }

  /// With integers, whose sums are exact.
  void expectPlaces(Machine &machine, const char *kernel) const {
    expectWithin(machine, kernel, drawWhole(kRows * terms, 1), drawWhole(terms * kColumns, 2),
                 drawWhole(kRows * kColumns, 3), 0);
  }
  /// As for sums in f32, where a device may truncate terms.
  void expectSumsInF32(Machine &machine, const char *kernel) const {
    expectWithin(machine, kernel, drawBetweenOnes(kRows * terms, 1), drawBetweenOnes(terms * kColumns, 2),
                 drawBetweenOnes(kRows * kColumns, 3), double(terms) * 0x1p-23);
  }
};

static float tf32OfFloat(float x) { return std::bit_cast<float>((std::bit_cast<uint32_t>(x) + 0x1000) & ~0x1fffu); }

static constexpr Tile<float> kTf32 = {8, tf32OfFloat, [](float x) { return x; }};
static constexpr Tile<uint16_t> kBF16 = {16, sluice_bf16_of_float, sluice_float_of_bf16};
static constexpr Tile<uint16_t> kF16 = {16, sluice_f16_of_float, sluice_float_of_f16};

static void fragmentsOfTf32(Machine &machine) { kTf32.expectPlaces(machine, "multiply_tf32"); }

static void fragmentsOfHalves(Machine &machine) {
  kBF16.expectPlaces(machine, "multiply_bf16");
  kF16.expectPlaces(machine, "multiply_f16");
}

static void sumsOfTilesAreF32(Machine &machine) {
  kTf32.expectSumsInF32(machine, "multiply_tf32");
  kBF16.expectSumsInF32(machine, "multiply_bf16");
  kF16.expectSumsInF32(machine, "multiply_f16");
}

static void matricesAreLoaded(Machine &machine, bool isTransposed) {
  std::vector<uint16_t> halves(256);
  for (size_t i = 0; i < halves.size(); ++i)
    halves[i] = uint16_t(1000 + i);
  DriverStream stream = machine.stream();
  DeviceAddress from = machine.place(stream, halves), to = machine.allocate(256 * sizeof(unsigned));
  machine.launch(stream, "load_matrices", 1, 32, {&to, &from});
  std::vector<unsigned> found = machine.read<unsigned>(stream, to, 256);
  for (size_t lane = 0; lane < 32; ++lane)
    for (size_t matrix = 0; matrix < 4; ++matrix)
      for (size_t one = 0; one < 2; ++one) {
        size_t by = lane / 4, along = lane % 4 * 2 + one;
        unsigned wanted = halves[matrix * 64 + (isTransposed ? along * 8 + by : by * 8 + along)];
        unsigned its = found[(isTransposed ? 128 : 0) + lane * 4 + matrix] >> 16 * one & 0xffff;
        expect(its == wanted, "lane " + std::to_string(lane) + " has of matrix " + std::to_string(matrix) +
                                  " the element " + std::to_string(its - 1000) + ", not " +
                                  std::to_string(wanted - 1000));
      }
}

static void matricesAreLoadedPlain(Machine &machine) { matricesAreLoaded(machine, /*isTransposed=*/false); }
static void matricesAreLoadedTransposed(Machine &machine) { matricesAreLoaded(machine, /*isTransposed=*/true); }

static std::vector<float> applyTo(Machine &machine, const char *kernel, const std::vector<float> &numbers) {
  DriverStream stream = machine.stream();
  int count = int(numbers.size());
  DeviceAddress from = machine.place(stream, numbers), to = machine.allocate(numbers.size() * sizeof(float));
  machine.launch(stream, kernel, unsigned(count + 127) / 128, 128, {&to, &from, &count});
  return machine.read<float>(stream, to, numbers.size());
}

/// To nearest, ties away from zero.
static void roundsToTf32(Machine &machine) {
  std::vector<float> numbers;
  for (uint32_t high : {0x3f800000u, 0x3f802000u, 0x3fffe000u, 0xbf800000u, 0x7f7fc000u, 0x00800000u})
    for (uint32_t low : {0x0u, 0x1u, 0xfffu, 0x1000u, 0x1001u, 0x1fffu})
      numbers.push_back(std::bit_cast<float>(high | low));
  std::vector<float> found = applyTo(machine, "round_to_tf32", numbers);
  for (size_t i = 0; i < numbers.size(); ++i)
    expect(found[i] == tf32OfFloat(numbers[i]), std::to_string(numbers[i]) + " is rounded to another tf32");
}

/// Relative error at most 2^-22; subnormals may be 0, as is the result for minus infinity.
static void powersAreNear(Machine &machine) {
  std::vector<float> numbers = {-INFINITY, -200, 0, 127.5f};
  for (int i = -126 * 8; i < 127 * 8; ++i)
    numbers.push_back(float(i) / 8 + 0.0371f);
  std::vector<float> found = applyTo(machine, "powers_of_two", numbers);
  for (size_t i = 0; i < numbers.size(); ++i) {
    double exact = std::exp2(double(numbers[i])), least = 0x1p-126;
    bool isNear =
        exact < least ? found[i] >= 0 && found[i] <= least : std::fabs(found[i] - exact) <= exact * (0x1p-22 + 0x1p-24);
    expect(isNear, "2 to the " + std::to_string(numbers[i]) + " is " + std::to_string(found[i]));
  }
}

std::vector<Contract> tensorContracts() {
  return {{"tensor.fragments_tf32", fragmentsOfTf32},
          {"tensor.fragments_of_halves", fragmentsOfHalves},
          {"tensor.sums", sumsOfTilesAreF32},
          {"tensor.matrices", matricesAreLoadedPlain},
          {"tensor.matrices_transposed", matricesAreLoadedTransposed},
          {"tensor.rounds_to_tf32", roundsToTf32},
          {"tensor.power_of_two", powersAreNear}};
}

} // namespace sluice::gpu_check
