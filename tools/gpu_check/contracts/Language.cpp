// CUDA C++ on the device: communication between threads of a warp and a block, and rounding. The emulated threads of
// the tests rely on the same.
#include "tools/gpu_check/contracts/Machine.h"

#include "sluice/backend/halves.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>

namespace sluice::gpu_check {

using namespace cuda;

static std::vector<int> run(Machine &machine, const char *kernel, unsigned threads, size_t numbers) {
  DriverStream stream = machine.stream();
  DeviceAddress to = machine.allocate(numbers * sizeof(int));
  machine.launch(stream, kernel, 1, threads, {&to});
  return machine.read<int>(stream, to, numbers);
}

static void shufflesStayInTheirSegment(Machine &machine) {
  std::vector<int> found = run(machine, "shuffle", 64, 64);
  for (int thread = 0; thread < 64; ++thread) {
    int lane = thread % 32, from = lane / 8 * 8 + (lane % 8 + 1) % 8;
    expect(found[size_t(thread)] == 100 + from, "lane " + std::to_string(lane) + " was given what lane " +
                                                    std::to_string(found[size_t(thread)] - 100) + " has, not " +
                                                    std::to_string(from));
  }
}

static void shufflesOfHalfAWarp(Machine &machine) {
  std::vector<int> found = run(machine, "shuffle_half", 32, 32);
  for (int lane = 16; lane < 32; ++lane) // lane 16 modulo the width 16 is the first lane of the segment
    expect(found[size_t(lane)] == 16, "half a warp shuffles wrongly");
}

static void barriersOrderSharedMemory(Machine &machine) {
  std::vector<int> found = run(machine, "reverse", 256, 4 * 256);
  for (int i = 0; i < 4 * 256; ++i)
    expect(found[size_t(i)] == 1000 * (i / 256) + 255 - i % 256, "a barrier does not order shared memory");
}

static void copiesAreWaitedForInTheirOrder(Machine &machine) {
  constexpr int kThreads = 128, kRounds = 4, kNumbers = kThreads * kRounds * 4;
  std::vector<int> numbers(kNumbers);
  for (int i = 0; i < kNumbers; ++i)
    numbers[size_t(i)] = 100 + i;
  DriverStream stream = machine.stream();
  DeviceAddress from = machine.place(stream, numbers), to = machine.allocate(kNumbers * sizeof(int));
  machine.launch(stream, "copy_ahead", 1, kThreads, {&to, &from});
  std::vector<int> found = machine.read<int>(stream, to, kNumbers);
  for (int i = 0; i < kNumbers; ++i) {
    int round = i / 4 / kThreads, thread = kThreads - 1 - i / 4 % kThreads;
    int wanted = thread % 3 == 0 ? 0 : numbers[size_t((round * kThreads + thread) * 4 + i % 4)];
    expect(found[size_t(i)] == wanted, "a copy into shared memory was not waited for, or is no zero");
  }
}

static void smallCopiesMayBeOfNothing(Machine &machine) {
  constexpr int kThreads = 128;
  std::vector<int> numbers(3 * kThreads);
  for (size_t i = 0; i < numbers.size(); ++i)
    numbers[i] = int(100 + i);
  DriverStream stream = machine.stream();
  DeviceAddress pairs = machine.place(stream, numbers), singles = pairs + 2 * kThreads * sizeof(int),
                to = machine.allocate(4 * kThreads * sizeof(int));
  machine.launch(stream, "copy_small", 1, kThreads, {&to, &pairs, &singles});
  std::vector<int> found = machine.read<int>(stream, to, 4 * kThreads);
  for (int thread = 0; thread < kThreads; ++thread)
    for (int i = 0; i < 3; ++i) {
      int wanted = thread % 3 == 0 ? 0 : numbers[size_t(i < 2 ? 2 * thread + i : 2 * kThreads + thread)];
      expect(found[size_t(4 * thread + i)] == wanted,
             "a copy of " + std::to_string(i < 2 ? 8 : 4) + " bytes is wrong, or a copy of nothing is no zero");
    }
}

/// Compares with the same operations on the host's processor, each rounded separately.
template <typename T> static void roundsAsIeee(Machine &machine, const char *kernel, T smallest) {
  volatile T a = T(1) + T(1) / 3, b = T(1) - T(1) / 7, c = T(-8) / 7; // a * b + c cancels
  DriverStream stream = machine.stream();
  std::vector<T> from = {a, b, c, smallest};
  DeviceAddress given = machine.place(stream, from), to = machine.allocate(8 * sizeof(T));
  machine.launch(stream, kernel, 1, 1, {&to, &given});
  std::vector<T> found = machine.read<T>(stream, to, 8);
  volatile T product = a * b;
  T wanted[8] = {product + c,
                 std::fma(T(a), T(b), T(c)),
                 a / b,
                 std::sqrt(T(a)),
                 std::rint(T(a) / 2),
                 smallest / 2,
                 std::floor(-a),
                 std::fabs(T(c))};
  static constexpr const char *kWhat[] = {"a product and a sum",
                                          "a fused multiply-add",
                                          "a quotient",
                                          "a root",
                                          "rint",
                                          "a number that is not normal",
                                          "floor",
                                          "fabs"};
  for (size_t i = 0; i < 8; ++i)
    expect(found[i] == wanted[i], std::string(kWhat[i]) + " is rounded otherwise than by IEEE 754");
}

static void roundsF32(Machine &machine) { roundsAsIeee<float>(machine, "arithmetic_f32", 0x1p-126f); }
static void roundsF64(Machine &machine) { roundsAsIeee<double>(machine, "arithmetic_f64", 0x1p-1022); }

/// Numbers between neighbors of either type, their midpoints and the numbers next to these.
static void convertsHalves(Machine &machine) {
  std::vector<float> from;
  for (uint32_t high = 0; high < 0x10000; ++high)
    for (uint32_t low : {0x0, 0xfff, 0x1000, 0x1001, 0x3000, 0x7fff, 0x8000, 0x8001})
      from.push_back(std::bit_cast<float>(high << 16 | low));
  int count = int(from.size());
  DriverStream stream = machine.stream();
  DeviceAddress given = machine.place(stream, from), to = machine.allocate(4 * from.size() * sizeof(float));
  machine.launch(stream, "halves", unsigned(count + 127) / 128, 128, {&to, &given, &count});
  std::vector<float> found = machine.read<float>(stream, to, 4 * from.size());
  for (size_t i = 0; i < from.size(); ++i) {
    uint16_t bf16 = sluice_bf16_of_float(from[i]), f16 = sluice_f16_of_float(from[i]);
    const float wanted[] = {float(bf16), float(f16), sluice_float_of_bf16(bf16), sluice_float_of_f16(f16)};
    for (size_t j = std::isnan(from[i]) ? 2 : 0; j < 4; ++j) // the bits of a NaN depend on the device
      if (float its = found[4 * i + j]; !(its == wanted[j] || (std::isnan(its) && std::isnan(wanted[j])))) {
        char text[128];
        std::snprintf(text, sizeof text, "%a as %s is %a, not %a", double(from[i]), j % 2 ? "f16" : "bf16", double(its),
                      double(wanted[j]));
        throw Contradicted(text);
      }
  }
}

/// Functions of f32 within the errors in NVIDIA's guide ("Mathematical Functions", single precision, in units of the
/// last place), and half a unit for the rounding of the exact value.
static void functionsAreAccurate(Machine &machine) {
  struct Function {
    const char *name;
    double (*exact)(double);
    double units;
  };
  static constexpr Function kFunctions[] = {
      {"exp", [](double x) { return std::exp(x); }, 2},
      {"log", [](double x) { return std::log(std::fabs(x)); }, 1},
      {"log1p", [](double x) { return std::log1p(std::fabs(x)); }, 1},
      {"sin", [](double x) { return std::sin(x); }, 2},
      {"cos", [](double x) { return std::cos(x); }, 2},
      {"tanh", [](double x) { return std::tanh(x); }, 2},
      {"erf", [](double x) { return std::erf(x); }, 2},
      {"pow", [](double x) { return std::pow(std::fabs(x), double(1.7f)); }, 4},
      {"expm1", [](double x) { return std::expm1(x); }, 1},
      {"asin", [](double x) { return std::asin(double(float(x) / 11)); }, 2},
      {"acos", [](double x) { return std::acos(double(float(x) / 11)); }, 2},
      {"atan", [](double x) { return std::atan(x); }, 2},
      {"sinh", [](double x) { return std::sinh(x); }, 3},
      {"cosh", [](double x) { return std::cosh(x); }, 2},
      {"asinh", [](double x) { return std::asinh(x); }, 3},
      {"acosh", [](double x) { return std::acosh(double(float(std::fabs(x)) + 1)); }, 4},
      {"atanh", [](double x) { return std::atanh(double(float(x) / 11)); }, 3}};
  std::vector<float> from;
  for (int i = -400; i < 400; ++i)
    from.push_back(float(i) / 37 + 0.001f);
  int count = int(from.size());
  DriverStream stream = machine.stream();
  DeviceAddress given = machine.place(stream, from),
                to = machine.allocate(std::size(kFunctions) * from.size() * sizeof(float));
  machine.launch(stream, "functions", unsigned(count + 127) / 128, 128, {&to, &given, &count});
  std::vector<float> found = machine.read<float>(stream, to, std::size(kFunctions) * from.size());
  for (size_t f = 0; f < std::size(kFunctions); ++f)
    for (size_t i = 0; i < from.size(); ++i) {
      double exact = kFunctions[f].exact(from[i]);
      auto rounded = float(std::fabs(exact));
      double unit = double(std::nextafter(rounded, INFINITY)) - rounded;
      double units = std::fabs(double(found[f * from.size() + i]) - exact) / unit;
      if (!(units <= kFunctions[f].units + 0.5)) {
        char text[128];
        std::snprintf(text, sizeof text, "%s(%g) is off by %.1f units of its last place", kFunctions[f].name,
                      double(from[i]), units);
        throw Contradicted(text);
      }
    }
}

std::vector<Contract> languageContracts() {
  return {{"language.shuffle", shufflesStayInTheirSegment},
          {"language.shuffle_of_half_a_warp", shufflesOfHalfAWarp},
          {"language.barrier", barriersOrderSharedMemory},
          {"language.copies", copiesAreWaitedForInTheirOrder},
          {"language.small_copies", smallCopiesMayBeOfNothing},
          {"language.rounding_f32", roundsF32},
          {"language.rounding_f64", roundsF64},
          {"language.halves", convertsHalves},
          {"language.functions_f32", functionsAreAccurate}};
}

} // namespace sluice::gpu_check
