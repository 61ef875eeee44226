// Kernels on f16 and bf16: the bits of the interpreter, which rounds each op's results once.
#include "tests/backends/cpu/KernelRun.h"

#include <gtest/gtest.h>

namespace sluice::cpu::testing {
namespace {

class HalfKernels : public ::testing::TestWithParam<const char *> {
protected:
  const std::string element = GetParam();
  const double ulp = element == "bf16" ? 0x1p-7 : 0x1p-10; // the last digit of 1
  const uint16_t infinity = element == "bf16" ? 0x7f80 : 0x7c00;

  std::string tensor(const std::string &shape, const std::string &layout = "") const {
    return "tensor<" + shape + (shape.empty() ? "" : "x") + element + layout + ">";
  }
  float widen(int bits) const {
    return element == "bf16" ? sluice_float_of_bf16(uint16_t(bits)) : sluice_float_of_f16(uint16_t(bits));
  }

  void expectRuns(KernelRun &kernel, double tolerance, double low = -2, double high = 2) const {
    ASSERT_TRUE(kernel.lowered()) << kernel.diagnostics();
    kernel.randomize(low, high);
    for (int64_t rows : {7, 3, 1}) {
      kernel.run(rows);
      EXPECT_LE(kernel.error(), tolerance) << "with " << rows << " rows";
      auto inOrder = kernel.bytes(0);
      kernel.run(rows, /*seed=*/5);
      EXPECT_TRUE(kernel.bytes(0) == inOrder) << "other bits in another order";
    }
  }
  void expectRuns(const std::vector<std::string> &operands, const std::string &body, const std::string &yields,
                  double tolerance, double low = -2, double high = 2) const {
    KernelRun kernel(operands, body, yields, 7,
                     "#nhwc = #sluice.at<layout = affine_map<(d0, d1, d2, d3) -> (d0, d2, d3, d1)>>\n"
                     "#panels = #sluice.at<layout = affine_map<(d0, d1) -> (d0 floordiv 32, d1, d0 mod 32)>>\n");
    expectRuns(kernel, tolerance, low, high);
  }

  /// One op on every element of `values`, which a tensor of f32 or of halves holds, with bitwise equal results.
  void expectConverts(const std::vector<double> &values, bool toHalf) const {
    std::string size = std::to_string(values.size()), half = tensor(size), wide = "tensor<" + size + "xf32>";
    KernelRun kernel({toHalf ? wide : half},
                     "%a = sluice.cast %0 {to = " + (toHalf ? element : "f32") + "} : (" + (toHalf ? wide : half) +
                         ") -> " + (toHalf ? half : wide),
                     "%a : " + (toHalf ? half : wide), 7);
    ASSERT_TRUE(kernel.lowered()) << kernel.diagnostics();
    kernel.randomize(0, 1);
    kernel.inputs[0].data = values;
    kernel.run(7);
    std::vector<ir::HostTensor> wanted = kernel.expected();
    ir::HostTensor got = kernel.output(0);
    for (size_t i = 0; i < values.size(); ++i)
      ASSERT_TRUE(got.data[i] == wanted[0].data[i] || (std::isnan(got.data[i]) && std::isnan(values[i])))
          << values[i] << " became " << got.data[i] << " and not " << wanted[0].data[i];
  }
};

// Tests all values: subnormals, infinities and NaNs among them.
TEST_P(HalfKernels, WidenAllValues) {
  std::vector<double> values;
  for (int bits = 0; bits <= 0xffff; ++bits)
    values.push_back(widen(bits));
  expectConverts(values, /*toHalf=*/false);
}

// Tests the midpoints of adjacent values and the floats next to them, including subnormals.
TEST_P(HalfKernels, RoundToNearestEven) {
  std::vector<double> values{NAN, INFINITY, -INFINITY, 0x1p-149, -0x1p-149, 0x1.fffffep127};
  for (int bits = 0; bits + 1 < infinity; ++bits) {
    auto middle = float((double(widen(bits)) + double(widen(bits + 1))) / 2);
    for (float value : {std::nextafter(middle, 0.0f), middle, std::nextafter(middle, INFINITY)})
      values.insert(values.end(), {value, -value});
  }
  expectConverts(values, /*toHalf=*/true);
}

// Tests that intermediate values are rounded as if stored: each step is exact apart from its rounding.
TEST_P(HalfKernels, RoundBetweenFusedOps) {
  std::string x = tensor("?x21");
  std::string two = " : (" + x + ", " + x + ") -> " + x + "\n";
  expectRuns({x, x},
             "%a = sluice.mul %0, %1" + two + "%b = sluice.add %a, %0" + two + "%c = sluice.sub %b, %1" + two +
                 "%d = sluice.mul %c, %c" + two + "%e = sluice.relu %d : (" + x + ") -> " + x +
                 "\n%f = sluice.sqrt %e : (" + x + ") -> " + x + "\n%g = sluice.div %f, %0" + two,
             "%g, %b : " + x + ", " + x, 0);
}

TEST_P(HalfKernels, ChooseWithoutRounding) {
  std::string x = tensor("?x33"), i1 = "tensor<?x33xi1>";
  expectRuns({x, x},
             "%a = sluice.max %0, %1 : (" + x + ", " + x + ") -> " + x + "\n%b = sluice.neg %a : (" + x + ") -> " + x +
                 "\n%c = sluice.compare %0, %1 {predicate = #sluice<predicate lt>} : (" + x + ", " + x + ") -> " + i1 +
                 "\n%d = sluice.where %c, %b, %0 : (" + i1 + ", " + x + ", " + x + ") -> " + x +
                 "\n%e = sluice.clip %d {min = -0.7 : f64, max = 1.1 : f64} : (" + x + ") -> " + x,
             "%e, %c : " + x + ", " + i1, 0);
}

TEST_P(HalfKernels, ComputeFunctionsInSinglePrecision) {
  std::string x = tensor("?x19");
  for (const char *function : {"exp", "tanh", "sigmoid", "erf", "gelu", "softplus"})
    expectRuns({x}, std::string("%a = sluice.") + function + " %0 : (" + x + ") -> " + x, "%a : " + x, 4 * ulp);
}

TEST_P(HalfKernels, CastFromAndToOtherTypes) {
  for (std::string other : {"f64", "i32", "i64", "ui8", "i1"}) {
    std::string x = "tensor<?x21x" + other + ">", y = tensor("?x21");
    bool isBool = other == "i1", isByte = other == "ui8";
    expectRuns({x}, "%a = sluice.cast %0 {to = " + element + "} : (" + x + ") -> " + y, "%a : " + y, 0,
               isByte || isBool ? 0 : -3000,
               isBool   ? 2
               : isByte ? 256
                        : 3000);
    expectRuns({y}, "%a = sluice.cast %0 {to = " + other + "} : (" + y + ") -> " + x, "%a : " + x, 0, -300, 300);
  }
}

// Tests sums whose intermediate values exceed halves: 4096 ones and more.
TEST_P(HalfKernels, AddUpInSinglePrecision) {
  std::string x = tensor("?x5000"), y = tensor("?"), rows = tensor("5000");
  for (const char *op : {"sum", "mean", "reduce_max"})
    expectRuns({x}, std::string("%a = sluice.") + op + " %0 {axes = array<i64: 1>} : (" + x + ") -> " + y, "%a : " + y,
               ulp, 0.9, 1.1);
  expectRuns({x}, "%a = sluice.sum %0 {axes = array<i64: 0>} : (" + x + ") -> " + rows, "%a : " + rows, ulp);
  std::string big = tensor("400x13x16"), small = tensor("16");
  expectRuns({big},
             "%a = sluice.relu %0 : (" + big + ") -> " + big + "\n%b = sluice.sum %a {axes = array<i64: 0, 1>} : (" +
                 big + ") -> " + small,
             "%b, %a : " + small + ", " + big, ulp);
  std::string s = tensor("?x100");
  expectRuns({s}, "%a = sluice.softmax %0 {axis = 1 : i64} : (" + s + ") -> " + s, "%a : " + s, ulp);
  std::string vector = tensor("100");
  expectRuns({s, vector, vector},
             "%a = sluice.normalize %0, %1, %2 {axis = 1 : i64, dims = array<i64: 1>, eps = 1.0e-3 : f64} : (" + s +
                 ", " + vector + ", " + vector + ") -> " + s,
             "%a : " + s, 2 * ulp);
  std::string index = "tensor<?xi32>";
  expectRuns({s}, "%a = sluice.argmax %0 {axis = 1 : i64} : (" + s + ") -> " + index, "%a : " + index, 0);
}

// Tests loads that are not vectors: transposed, strided, padded, of a constant, in panels.
TEST_P(HalfKernels, MoveElements) {
  std::string x = tensor("?x4x6"), t = tensor("?x6x4"), p = tensor("?x8x9");
  expectRuns({x},
             "%a = sluice.transpose %0 {permutation = array<i64: 0, 2, 1>} : (" + x + ") -> " + t +
                 "\n%b = sluice.pad %a {low = array<i64: 0, 1, 2>, high = array<i64: 0, 1, 3>, interior = array<i64: "
                 "0, 0, 0>, value = 0.5 : f64} : (" +
                 t + ") -> " + p,
             "%b : " + p, 0);
  std::string image = tensor("?x3x5x6"), nhwc = tensor("?x3x5x6", ", #nhwc");
  expectRuns({image}, "%a = sluice.relayout %0 : (" + image + ") -> " + nhwc, "%a : " + nhwc, 0);
  std::string plain = tensor("70x9"), panels = tensor("70x9", ", #panels");
  expectRuns({plain},
             "%a = sluice.relayout %0 : (" + plain + ") -> " + panels + "\n%b = sluice.neg %a : (" + panels + ") -> " +
                 panels,
             "%b : " + panels, 0);
  std::string row = tensor("3"), y = tensor("?x3");
  expectRuns({y},
             "%a = sluice.constant {value = dense<[1.0, 2.5, -3.0]> : " + row + "} : () -> " + row +
                 "\n%e = sluice.expand %a {dims = array<i64: 1>, shape = array<i64: ?, 3>} : (" + row + ") -> " + y +
                 "\n%b = sluice.mul %0, %e : (" + y + ", " + y + ") -> " + y,
             "%b : " + y, 0);
}

INSTANTIATE_TEST_SUITE_P(Elements, HalfKernels, ::testing::Values("f16", "bf16"),
                         [](const auto &info) { return std::string(info.param); });

} // namespace
} // namespace sluice::cpu::testing
