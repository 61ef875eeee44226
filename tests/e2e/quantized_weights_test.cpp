// Weights in blocks of bytes (--weights-type q8_0): their integers and scales are those of ggml's formula, and their
// products those of the dequantized weights in f32.
#include "backends/cpu/compiler/machine/Target.h"
#include "runtime/base/Status.h"
#include "runtime/instance/Weights.h"
#include "tests/TemporaryFolder.h"
#include "tests/cuda_emu/Doubles.h"
#include "tests/e2e/Harness.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <limits>

using namespace sluice::test;
using sluice::CompileOptions;
namespace runtime = sluice::runtime;

namespace {

constexpr int64_t kBlock = 32, kRows = 40;

/// A product of rows [?, k] with a weight of n outputs, stored [n, k] or, transposed, [k, n].
struct Product {
  int64_t n, k;
  bool transposed = false;

  int64_t axis() const { return transposed ? 0 : 1; }
  int64_t size() const { return n * k; }
  std::string shape() const { return transposed ? fmt::format("{}x{}", k, n) : fmt::format("{}x{}", n, k); }
  std::string text() const {
    return fmt::format(R"(module {{
  sluice.model "product" format 2 phase "model" capacity {rows}
  sluice.state parameter @w : tensor<{shape}xf32> = <"normal", 0.0 : f64, 0.02 : f64>
  sluice.graph ["x"] (%x: tensor<?x{k}xf32>) {{
    %w = sluice.get @w : tensor<{shape}xf32>
    %y = sluice.einsum "{equation}" %x, %w : (tensor<?x{k}xf32>, tensor<{shape}xf32>) -> tensor<?x{n}xf32>
    %z = sluice.tanh %y : (tensor<?x{n}xf32>) -> tensor<?x{n}xf32>
    sluice.output "y", %y : tensor<?x{n}xf32>
    sluice.output "z", %z : tensor<?x{n}xf32>
  }}
}})",
                       fmt::arg("rows", kRows), fmt::arg("shape", shape()), fmt::arg("k", k), fmt::arg("n", n),
                       fmt::arg("equation", transposed ? "ab,bc->ac" : "ab,cb->ac"));
  }
  /// The place of weight (output, term) in the stored matrix.
  size_t place(int64_t output, int64_t term) const {
    return size_t(transposed ? term * n + output : output * k + term);
  }
  /// The place of its scale.
  size_t scale(int64_t output, int64_t term) const {
    return size_t(transposed ? term / kBlock * n + output : output * (k / kBlock) + term / kBlock);
  }
};

/// Tails of panels and of vectors; sums in several parts, at whose ends blocks are whole or cut; the other storage.
const Product kProducts[] = {{64, 64}, {96, 1024}, {130, 96}, {7, 32}, {48, 1056}, {96, 64, true}, {200, 1056, true}};

CompileOptions options(const std::string &type) {
  CompileOptions options;
  options.weights_type = type;
  return options;
}

std::vector<float> weightsOf(const Product &product) {
  std::vector<float> weights;
  for (int64_t i = 0; i < product.size(); ++i)
    weights.push_back(float(std::sin(double(i) * 1.37) * std::pow(10.0, double(i % 11) - 9)));
  return weights;
}

std::vector<double> rowsOf(const Product &product, int64_t rows) {
  std::vector<double> x;
  for (int64_t i = 0; i < rows * product.k; ++i)
    x.push_back(float(std::cos(double(i) * 0.71)));
  return x;
}

/// The nearest f16, from the definition of the format.
double nearestHalf(double value) {
  int exponent = std::max(std::ilogb(value), -14);
  double unit = std::ldexp(1.0, exponent - 10);
  return value == 0 ? 0 : std::nearbyint(value / unit) * unit;
}

struct Quantized {
  std::vector<double> integers, scales, values;
};

/// The reference: blocks of a product's weights as ggml makes them.
Quantized quantized(const Product &product, const std::vector<float> &weights) {
  size_t count = weights.size();
  Quantized result{std::vector<double>(count), std::vector<double>(count / kBlock), std::vector<double>(count)};
  for (int64_t output = 0; output < product.n; ++output)
    for (int64_t first = 0; first < product.k; first += kBlock) {
      float largest = 0;
      for (int64_t term = first; term < first + kBlock; ++term)
        largest = std::max(largest, std::fabs(weights[product.place(output, term)]));
      float d = largest / 127, inverse = d < std::numeric_limits<float>::min() ? 0 : 1 / d;
      double half = nearestHalf(d);
      result.scales[product.scale(output, first)] = half;
      for (int64_t term = first; term < first + kBlock; ++term) {
        size_t at = product.place(output, term);
        result.integers[at] = std::round(weights[at] * inverse);
        result.values[at] = result.integers[at] * half;
      }
    }
  return result;
}

/// Signed integers of bytes.
std::vector<double> asSigned(std::vector<double> bytes) {
  for (double &byte : bytes)
    byte -= byte >= 128 ? 256 : 0;
  return bytes;
}

/// Loads f32 weights as from a file.
void load(Compiled &model, const std::string &name, const runtime::Shape &shape, const std::vector<float> &weights) {
  TemporaryFolder folder;
  std::string path = folder / "w.safetensors";
  runtime::writeSafetensors(path, {{name, runtime::DType::f32, shape, std::as_bytes(std::span(weights))}}, {});
  runtime::loadWeights(model.program(), path);
}

runtime::Shape shapeOf(const Product &product) {
  return product.transposed ? runtime::Shape{product.k, product.n} : runtime::Shape{product.n, product.k};
}

/// The values of a matrix in blocks, from its bytes and scales.
std::vector<double> valuesIn(const Compiled &model, const runtime::State &state) {
  bool alongRows = model.plan().scalesOf(state)->shape[0] == state.shape[0];
  Product product{state.shape[alongRows ? 0 : 1], state.shape[alongRows ? 1 : 0], !alongRows};
  std::vector<double> values = asSigned(model.state(state.name)), scales = model.state(state.name + ".scales");
  for (int64_t output = 0; output < product.n; ++output)
    for (int64_t term = 0; term < product.k; ++term)
      values[product.place(output, term)] *= scales[product.scale(output, term)];
  return values;
}

std::string messageOf(const std::function<void()> &run) {
  runtime::Status status = runtime::guarded(run);
  EXPECT_FALSE(status.ok());
  return status.message;
}

size_t launchesOf(const Compiled &model, const std::string &entry) {
  return model.plan().findEntry(entry)->launches().size();
}

/// The instruction sets of the host.
std::vector<std::string> targets() {
  std::vector<std::string> all{"x86-64-v3"};
  if (sluice::cpu::Target::host().vectorBits >= 512)
    all.push_back("x86-64-v4");
  return all;
}

} // namespace

TEST(QuantizedWeights, AreThoseOfGgmlWhenLoaded) {
  for (const Product &product : kProducts) {
    Compiled model(product.text(), options("q8_0"));
    model.init(1);
    std::vector<float> weights = weightsOf(product);
    std::fill_n(weights.begin(), 2 * kBlock, 0.0F); // a block of zeros, if the blocks are rows
    for (int64_t term = 0; term < kBlock; ++term)   // a block whose scale is no normal float
      weights[product.place(product.n - 1, term)] = 1e-40F;
    load(model, "w", shapeOf(product), weights);
    Quantized expected = quantized(product, weights);
    EXPECT_EQ(asSigned(model.state("w")), expected.integers) << product.shape();
    EXPECT_EQ(model.state("w.scales"), expected.scales) << product.shape();
  }
}

// Tests halves, which are rounded away from zero, and both signs of the largest element.
TEST(QuantizedWeights, RoundHalvesAwayFromZero) {
  Compiled model(Product{16, 32}.text(), options("q8_0"));
  model.init(1);
  std::vector<float> weights(16 * 32, 0.0F);
  const float block[] = {-127, 127, 0.5F, -0.5F, 1.5F, -1.5F, 2.5F, 0.49999997F, -126.5F, 126.5F};
  std::copy(std::begin(block), std::end(block), weights.begin());
  load(model, "w", {16, 32}, weights);
  std::vector<double> integers = asSigned(model.state("w"));
  integers.resize(std::size(block));
  EXPECT_EQ(integers, (std::vector<double>{-127, 127, 1, -1, 2, -2, 3, 0, -127, 127}));
  EXPECT_EQ(model.state("w.scales")[0], 1);
}

// Tests that `init` quantizes the weights that it draws for the same model in f32.
TEST(QuantizedWeights, AreThoseOfGgmlAfterInit) {
  for (const Product &product : kProducts) {
    Compiled exact(product.text()), model(product.text(), options("q8_0"));
    exact.init(5);
    model.init(5);
    std::vector<double> drawn = exact.state("w");
    Quantized expected = quantized(product, std::vector<float>(drawn.begin(), drawn.end()));
    EXPECT_EQ(asSigned(model.state("w")), expected.integers) << product.shape();
    EXPECT_EQ(model.state("w.scales"), expected.scales) << product.shape();
  }
}

TEST(QuantizedWeights, GiveTheProductsOfADoubleLoop) {
  for (const Product &product : kProducts) {
    Compiled model(product.text(), options("q8_0"));
    model.init(1);
    std::vector<float> weights = weightsOf(product);
    load(model, "w", shapeOf(product), weights);
    Quantized blocks = quantized(product, weights);
    std::vector<double> x = rowsOf(product, kRows), y = model.run("predict", {{"x", x}}, kRows).at("y");
    for (int64_t row = 0; row < kRows; ++row)
      for (int64_t output = 0; output < product.n; ++output) {
        double sum = 0, magnitude = 0;
        for (int64_t term = 0; term < product.k; ++term) {
          double each = x[size_t(row * product.k + term)] * blocks.values[product.place(output, term)];
          sum += each;
          magnitude += std::fabs(each);
        }
        constexpr double rounding = 64 * 0x1p-24; // of f32 sums in parts
        EXPECT_NEAR(y[size_t(row * product.n + output)], sum, rounding * magnitude) << product.shape();
      }
  }
}

// Tests that products have the bits of the dequantized weights in f32: fused or not, with any number of threads and
// rows, on AVX2 and AVX-512, and on a virtual accelerator.
TEST(QuantizedWeights, HaveTheBitsOfTheirValuesInF32) {
  for (const std::string &target : targets())
    for (const Product &product : kProducts) {
      CompileOptions plain, blocks = options("q8_0"), apart = options("q8_0"), accelerated = options("q8_0");
      plain.target_cpu = blocks.target_cpu = apart.target_cpu = accelerated.target_cpu = target;
      apart.fuse = false;
      accelerated.devices = "sim:0";
      Compiled exact(product.text(), plain), fused(product.text(), blocks, {.threads = 2}),
          single(product.text(), blocks, {.threads = 1}), separate(product.text(), apart),
          simulated(product.text(), accelerated, {.sim = "seed=3"});
      std::vector<float> weights = weightsOf(product);
      exact.init(1);
      exact.setState("w", quantized(product, weights).values);
      for (Compiled *model : {&fused, &single, &separate, &simulated}) {
        model->init(1);
        load(*model, "w", shapeOf(product), weights);
      }
      for (int64_t rows : {int64_t(1), int64_t(3), int64_t(17), kRows}) {
        Values x{{"x", rowsOf(product, rows)}}, expected = exact.run("predict", x, rows);
        for (Compiled *model : {&fused, &single, &separate, &simulated})
          EXPECT_EQ(model->run("predict", x, rows), expected) << product.shape() << ", " << rows << " rows, " << target;
      }
    }
}

// Tests that no launch writes the values of the weight.
TEST(QuantizedWeights, AreReadByTheProduct) {
  for (const Product &product : {Product{96, 1024}, Product{130, 96}, Product{200, 1056, true}}) {
    Compiled exact(product.text()), model(product.text(), options("q8_0"));
    EXPECT_EQ(launchesOf(model, "predict"), launchesOf(exact, "predict")) << product.shape();
  }
}

// GPT-2 reads its table of tokens in a product and in a gather.
TEST(QuantizedWeights, GenerateTheBitsOfTheirValuesInF32) {
  std::string text = replaced(modelText("gpt2", "--layers 2 --width 128 --length 100 --words 96 --batch 1"),
                              "capacity 1 ", "capacity 1 entries [\"decode\", \"prefill\"] ");
  Compiled exact(text), model(text, options("q8_0"));
  model.init(3);
  exact.init(3);
  int64_t elements = 0;
  for (const runtime::State &state : model.plan().states) {
    if (state.kind != runtime::StateKind::parameter)
      continue;
    bool isQuantized = model.plan().scalesOf(state);
    elements += isQuantized ? state.elements() : 0;
    exact.setState(state.name, isQuantized ? valuesIn(model, state) : model.state(state.name));
  }
  EXPECT_EQ(elements, 2 * 12 * 128 * 128 + 96 * 128); // all matrices except the table of positions
  std::vector<double> prompt;
  for (int64_t i = 0; i < 64; ++i)
    prompt.push_back(double(i * i % 96));
  Values first{{"prompt", prompt}, {"position", {0}}, {"last", {63}}}, next{{"token", {5}}, {"position", {64}}};
  EXPECT_EQ(model.run("prefill", first, 1), exact.run("prefill", first, 1));
  EXPECT_EQ(model.run("decode", next, 1), exact.run("decode", next, 1));
  for (const char *entry : {"decode", "prefill"}) // no launch dequantizes a weight
    EXPECT_EQ(launchesOf(model, entry), launchesOf(exact, entry));
}

TEST(QuantizedWeights, HaveTheirValuesOnAnEmulatedDevice) {
  setenv("CUDA_EMU_EFFORT", "least", /*overwrite=*/1); // each kernel runs some times
  useCudaDoubles(/*devices=*/1, /*seed=*/5);
  for (const Product &product : {Product{64, 64}, Product{96, 64, true}}) {
    CompileOptions plain, blocks = options("q8_0");
    plain.devices = blocks.devices = "cuda:0";
    Compiled exact(product.text(), plain), model(product.text(), blocks);
    std::vector<float> weights = weightsOf(product);
    exact.init(1);
    model.init(1);
    exact.setState("w", quantized(product, weights).values);
    load(model, "w", shapeOf(product), weights);
    Values x{{"x", rowsOf(product, 5)}};
    EXPECT_EQ(model.run("predict", x, 5), exact.run("predict", x, 5)) << product.shape();
  }
}

TEST(QuantizedWeights, AreSavedAsTheirValues) {
  Product product{96, 64};
  Compiled model(product.text(), options("q8_0"));
  model.init(1);
  std::vector<float> weights = weightsOf(product);
  load(model, "w", shapeOf(product), weights);
  TemporaryFolder folder;
  runtime::saveWeights(model.program(), folder / "saved.safetensors");
  runtime::Safetensors saved = runtime::readSafetensors(folder / "saved.safetensors");
  ASSERT_EQ(saved.tensors().size(), 1u);
  EXPECT_EQ(saved.tensors()[0].dtype, runtime::DType::f32);
  std::vector<float> values(size_t(product.size()));
  std::memcpy(values.data(), saved.tensors()[0].data.data(), saved.tensors()[0].data.size());
  EXPECT_EQ(std::vector<double>(values.begin(), values.end()), quantized(product, weights).values);
}

TEST(QuantizedWeights, AreFiniteNumbersOfF16Scales) {
  Product product{16, 32};
  Compiled model(product.text(), options("q8_0"));
  model.init(1);
  for (auto [value, reason] : {std::pair(std::nanf(""), "an element is not finite"),
                               std::pair(std::numeric_limits<float>::infinity(), "an element is not finite"),
                               std::pair(1e7F, "the scale of an element of 10000000.0 exceeds f16")}) {
    std::vector<float> weights(size_t(product.size()), 1.0F);
    weights[40] = value;
    std::string message = messageOf([&] { load(model, "w", shapeOf(product), weights); });
    EXPECT_NE(message.find("cannot quantize"), std::string::npos) << message;
    EXPECT_NE(message.find(reason), std::string::npos) << message;
  }
}
