// Orders of sums follow from shapes and vectors alone: code for other caches and ports gives bitwise equal results.
#include "contraction_runner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>
#include <string>

namespace sluice::cpu::testing {
namespace {

using Rows = Matmul::Rows;
using Axis = Convolution::Axis;

enum class Pass { Forward, InputGradient, WeightGradient };

// Differences between machines with one instruction set, which must only affect speed.
std::vector<Target> machines(const Target &base) {
  std::vector<Target> list = {base};
  auto add = [&](int64_t l1, int64_t l2, int64_t ports) {
    Target &other = list.emplace_back(base);
    other.l1 = l1, other.l2 = l2, other.fmaPorts = ports;
  };
  add(base.l1 / 2, base.l2 / 2, base.fmaPorts);
  if (std::getenv("SLUICE_TEST_FULL"))
    add(base.l1 * 2, base.l2 * 2, base.fmaPorts);
  add(256 << 10, 64 << 10, 3 - base.fmaPorts);
  list.back().fmaLatency = 6, list.back().issueWidth = 2;
  return list;
}

// One compiled contraction, run on `rows` rows: returns the bits of its third buffer.
std::vector<float> resultOf(const Program &program, std::vector<size_t> sizes, int64_t rows) {
  std::vector<Array<float>> buffers;
  for (size_t i = 0; i < sizes.size(); ++i)
    buffers.push_back(randomArray<float>(sizes[i], unsigned(i + 1)));
  Array<float> workspace(program.contraction.workspaceBytes / sizeof(float) + 1);
  std::vector<void *> addresses;
  for (Array<float> &buffer : buffers)
    addresses.push_back(buffer.data());
  addresses.push_back(workspace.data());
  program.run(addresses, rows, Order::AllAtOnce);
  return {buffers[2].data(), buffers[2].data() + buffers[2].size()};
}

using Run = std::function<std::vector<float>(const Target &)>;

// Tests that all machines of an instruction set agree, for each set that this machine can run.
void expectOneResult(const std::string &what, const Run &run) {
  for (const Target &base : testTargets()) {
    if (base.vectorBits < 256)
      continue;
    std::vector<float> first;
    for (const Target &machine : machines(base)) {
      std::vector<float> result = run(machine);
      if (first.empty())
        first = result;
      int64_t differing = 0;
      for (size_t i = 0; i < result.size(); ++i)
        differing += std::memcmp(&first[i], &result[i], sizeof(float)) != 0;
      EXPECT_EQ(differing, 0) << what << ", vectors of " << machine.vectorBits << " bits, L1 " << machine.l1 << ", L2 "
                              << machine.l2 << ", " << machine.fmaPorts << " ports";
    }
  }
}

// ---- Convolutions ----

struct Shape {
  int64_t rows, c, o;
  Axis h, w;
};

std::string text(const Shape &s) {
  std::ostringstream out;
  out << s.rows << " images, " << s.c << " to " << s.o << " channels";
  for (const Axis &axis : {s.h, s.w})
    out << "; " << axis.input << " by " << axis.kernel << " stride " << axis.stride << " dilation " << axis.dilation
        << " pads " << axis.padBefore << " " << axis.padAfter;
  return out.str();
}

std::vector<float> convolve(const Shape &s, Pass pass, const Target &target) {
  int64_t panel = panelWidth(s.o, 32, target);
  // x, w and dY or y; the third is the output.
  int64_t place[3] = {0, 1, 2};
  if (pass != Pass::Forward)
    std::swap(place[pass == Pass::InputGradient ? 0 : 1], place[2]);
  Program program(
      [&](mlir::ModuleOp module, mlir::Location loc, mlir::Type f32, mlir::Type) {
        Convolution op;
        op.element = f32;
        op.rows = s.rows;
        op.inputChannels = s.c, op.outputChannels = s.o, op.panel = panel;
        op.height = s.h, op.width = s.w;
        op.input = {place[0], 0}, op.weights = {place[1], 0}, op.output = {place[2], 0}, op.workspace = {3, 0};
        auto emit = pass == Pass::Forward         ? emitConvolution
                    : pass == Pass::InputGradient ? emitConvolutionInputGradient
                                                  : emitConvolutionWeightGradient;
        return emit(module, "convolution", loc, op, target);
      },
      target);
  int64_t taps = s.h.kernel * s.w.kernel;
  std::vector<size_t> sizes(3);
  sizes[place[0]] = size_t(s.rows * s.h.input * s.w.input * s.c);
  sizes[place[1]] = size_t((s.o + panel - 1) / panel * panel * taps * s.c);
  sizes[place[2]] = size_t(s.rows * s.h.output() * s.w.output() * s.o);
  return resultOf(program, sizes, s.rows);
}

void expectOneResult(const Shape &shape) {
  for (Pass pass : {Pass::Forward, Pass::InputGradient, Pass::WeightGradient})
    expectOneResult(text(shape) + ", pass " + std::to_string(int(pass)),
                    [&](const Target &target) { return convolve(shape, pass, target); });
}

Shape square(int64_t rows, int64_t c, int64_t o, Axis both) { return {rows, c, o, both, both}; }

TEST(ContractionOrder, ConvolutionsOfKnownNetworks) {
  for (const Shape &shape : {
           square(7, 20, 50, {13, 5}),             // LeNet's second
           square(3, 3, 16, {32, 3, 1, 1, 1, 1}),  // ResNet-56's first: tiles whose rows are known
           square(6, 64, 64, {8, 3, 1, 1, 1, 1}),  // its last: sums beyond 512 terms, tiles at and off the border
           square(2, 3, 20, {35, 11, 4, 1, 2, 2}), // AlexNet's first
           square(2, 600, 18, {5, 3, 1, 1, 1, 1}), // more than 512 channels
           square(3, 64, 48, {7, 3, 1, 1, 1, 1}),  // ResNet-50's last: tiles of two images, or of one
           square(1, 64, 48, {7, 3, 1, 1, 1, 1}),  // tiles of two rows, or of one
           square(5, 66, 80, {16, 3, 1, 1, 1, 1}), // copies of pixels, some rows of an image at a time
           square(5, 64, 64, {9, 1, 2, 1, 0, 0}),  // and some images
       })
    expectOneResult(shape);
}

int64_t draw(std::mt19937 &random, int64_t low, int64_t high) {
  return std::uniform_int_distribution<int64_t>(low, high)(random);
}

Axis drawAxis(std::mt19937 &random) {
  for (;;) {
    Axis axis{draw(random, 1, 17), draw(random, 1, 5), draw(random, 1, 3),
              draw(random, 1, 2),  draw(random, 0, 3), draw(random, 0, 3)};
    if (axis.input + axis.padBefore + axis.padAfter > axis.dilation * (axis.kernel - 1))
      return axis;
  }
}

int64_t cases(int64_t few, int64_t many) { return std::getenv("SLUICE_TEST_FULL") ? many : few; }

TEST(ContractionOrder, RandomConvolutions) {
  std::mt19937 random(11);
  for (int64_t i = 0; i < cases(2, 100); ++i) {
    int64_t channels = i % 2 ? 16 : 300; // every other one with long sums
    expectOneResult(
        {draw(random, 1, 9), draw(random, 1, channels), draw(random, 1, 80), drawAxis(random), drawAxis(random)});
  }
}

// ---- Products ----

struct Product {
  int64_t m, n, k;
  Rows rows;
  bool transposeA, transposeB;
};

std::string text(const Product &p) {
  std::ostringstream out;
  out << p.m << "x" << p.n << "x" << p.k << (p.rows == Rows::K ? ", rows along k" : "")
      << (p.transposeA ? ", a transposed" : "") << (p.transposeB ? ", b transposed" : "");
  return out.str();
}

std::vector<float> multiply(const Product &p, const Target &target) {
  Program program(
      [&](mlir::ModuleOp module, mlir::Location loc, mlir::Type f32, mlir::Type) {
        Matmul op;
        op.element = f32;
        op.m = p.m, op.n = p.n, op.k = p.k;
        op.rows = p.rows;
        auto strided = [](Matmul::Matrix &matrix, int64_t buffer, int64_t i, int64_t j) {
          matrix.place.buffer = buffer, matrix.strideI = i, matrix.strideJ = j;
        };
        p.transposeA ? strided(op.a, 0, 1, p.m) : strided(op.a, 0, p.k, 1);
        p.transposeB ? strided(op.b, 1, 1, p.k) : strided(op.b, 1, p.n, 1);
        strided(op.c, 2, p.n, 1);
        op.workspace = {3, 0};
        return emitMatmul(module, "product", loc, op, target);
      },
      target);
  int64_t rows = p.rows == Rows::K ? p.k : p.rows == Rows::M ? p.m : 0;
  return resultOf(program, {size_t(p.m * p.k), size_t(p.k * p.n), size_t(p.m * p.n)}, rows);
}

void expectOneResult(const Product &product) {
  expectOneResult(text(product), [&](const Target &target) { return multiply(product, target); });
}

TEST(ContractionOrder, ProductsOfKnownNetworks) {
  for (const Product &product : {
           Product{10, 128, 256, Rows::K, true, false}, // LeNet's last weight gradient: k in chunks
           Product{10, 4096, 128, Rows::K, true, false},
           Product{200, 120, 700, Rows::K, true, false},
           Product{37, 90, 1300, Rows::M, false, true}, // sums beyond 512 terms
           Product{300, 260, 1030, Rows::M, false, false},
           Product{128, 600, 768, Rows::M, false, false}, // GPT-2's weights, whose rows lie apart
           Product{64, 140, 6000, Rows::M, false, true},  // a large vocabulary's gradient
           Product{200, 70, 3001, Rows::M, false, true},
       })
    expectOneResult(product);
}

TEST(ContractionOrder, RandomProducts) {
  std::mt19937 random(12);
  for (int64_t i = 0; i < cases(3, 300); ++i) {
    Rows rows = std::array{Rows::None, Rows::M, Rows::K}[size_t(i % 3)];
    expectOneResult({draw(random, 1, 120), draw(random, 1, 300), draw(random, 1, 3000), rows, draw(random, 0, 1) == 1,
                     draw(random, 0, 1) == 1});
  }
}

} // namespace
} // namespace sluice::cpu::testing
