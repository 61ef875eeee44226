// Grouped convolutions and their two gradients, natively and as one convolution per group. Sums of small integers are
// exact in any order, so that every bit must match; other results differ by rounding.
#include "backends/cpu/compiler/Plugin.h"
#include "ir/Dialect.h"
#include "tests/Worse.h"
#include "tests/e2e/Harness.h"
#include "tools/compiler/Backends.h"
#include <cmath>
#include <gtest/gtest.h>
#include <random>

using namespace sluice::test;

namespace {

struct Shape {
  int64_t channels, outputs, groups, kernel = 3, stride = 1, dilation = 1, size = 7;

  /// Whether the CPU expands the groups into products.
  bool hasLargeGroups() const { return std::min(channels, outputs) / groups >= 32; }
  int64_t padding() const { return kernel / 2; }
  int64_t positions() const { return (size + 2 * padding() - dilation * (kernel - 1) - 1) / stride + 1; }
};

constexpr int64_t kRows = 3;

std::string tensor(std::initializer_list<int64_t> sizes) {
  std::string text = "tensor<";
  for (int64_t size : sizes)
    text += (size < 0 ? "?" : std::to_string(size)) + "x";
  return text + "f32>";
}

std::string numbers(std::initializer_list<int64_t> list) {
  std::string text;
  for (int64_t number : list)
    text += (text.empty() ? "" : ", ") + std::to_string(number);
  return "array<i64: " + text + ">";
}

constexpr const char *kOnSim = "  sluice.device \"cpu\" = \"cpu\" 0\n  sluice.device \"acc0\" = \"sim\" 0 first\n";

std::string textOf(const Shape &s, const std::string &devices = "") {
  std::string x = tensor({-1, s.channels, s.size, s.size}),
              w = tensor({s.outputs, s.channels / s.groups, s.kernel, s.kernel}),
              y = tensor({-1, s.outputs, s.positions(), s.positions()});
  std::string rest = "stride = " + numbers({s.stride, s.stride}) +
                     ", padding = " + numbers({s.padding(), s.padding(), s.padding(), s.padding()}) +
                     ", dilation = " + numbers({s.dilation, s.dilation}) + ", groups = " + std::to_string(s.groups) +
                     " : i64}";
  return "module {\n  sluice.model \"m\" format 2 phase \"train\" capacity 3 copies insert\n" + devices +
         "  sluice.entry @predict [\"x\", \"w\", \"dy\"] -> [\"y\", \"dx\", \"dw\"] (%x: " + x + ", %w: " + w +
         ", %dy: " + y + ") {\n    %y = sluice.conv2d %x, %w {" + rest + " : (" + x + ", " + w + ") -> " + y +
         "\n    %dx = sluice.conv2d_input_grad %dy, %w {size = " + numbers({s.size, s.size}) + ", " + rest + " : (" +
         y + ", " + w + ") -> " + x +
         "\n    %dw = sluice.conv2d_weight_grad %x, %dy {size = " + numbers({s.kernel, s.kernel}) + ", " + rest +
         " : (" + x + ", " + y + ") -> " + w + "\n    sluice.return %y, %dx, %dw : " + y + ", " + x + ", " + w +
         "\n  }\n}\n";
}

using Supports = decltype(sluice_backend_compile::supports);

/// Accepts all convolutions in their original form.
sluice_status supportsAll(sluice_session *, const sluice_kernel_view *) { return SLUICE_OK; }

/// Rejects grouped convolutions.
sluice_status supportsOneGroup(sluice_session *, const sluice_kernel_view *view) {
  auto product = llvm::dyn_cast<sluice::ir::ContractionOp>(static_cast<mlir::Operation *>(view->operation));
  return product && product.getGroups() > 1 ? SLUICE_UNSUPPORTED : SLUICE_OK;
}

struct Result {
  Values outputs;
  size_t launches;
};

Result run(const std::string &text, const sluice::passes::PipelineInputs &how, const Values &inputs) {
  Compiled model(text, {}, {}, how);
  return {model.run("predict", inputs, kRows), model.plan().findEntry("predict")->launches().size()};
}

Result run(const Shape &shape, Supports supports, const Values &inputs) {
  sluice_backend_compile table = *sluice_cpu_backend_compile();
  table.supports = supports;
  sluice::passes::PipelineInputs how;
  how.compileFrom = "train";
  how.backends = {&table}; // takes precedence over the backend of this name in the folders
  return run(textOf(shape), how, inputs);
}

/// The same on a virtual accelerator, whose kernels are host code; the host's backend is unchanged.
Result runOnSim(const Shape &shape, Supports supports, const Values &inputs) {
  sluice_backend_compile table = **sluice::compiler::findBackend("sim");
  table.supports = supports;
  sluice::passes::PipelineInputs how;
  how.compileFrom = "train";
  how.backends = {&table};
  return run(textOf(shape, kOnSim), how, inputs);
}

std::vector<double> draw(std::mt19937 &random, int64_t count, bool whole) {
  std::vector<double> data;
  for (int64_t i = 0; i < count; ++i)
    data.push_back(whole ? double(random() % 9) - 4 : double(float(double(random()) / 0x1p31 - 1)));
  return data;
}

Values inputsFor(const Shape &s, bool whole) {
  std::mt19937 random{7};
  return {{"x", draw(random, kRows * s.channels * s.size * s.size, whole)},
          {"w", draw(random, s.outputs * (s.channels / s.groups) * s.kernel * s.kernel, whole)},
          {"dy", draw(random, kRows * s.outputs * s.positions() * s.positions(), whole)}};
}

/// The largest difference, relative to the number of terms of an element, which are products of two numbers up to 1.
double differenceOf(const std::vector<double> &a, const std::vector<double> &b) {
  double worst = a.size() == b.size() ? 0 : INFINITY;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i)
    worst = worse(worst, std::fabs(a[i] - b[i]) / std::max(1.0, std::fabs(a[i])));
  return worst;
}

constexpr Shape kShapes[] = {{64, 64, 2},      {96, 64, 2, 1},      {64, 128, 2, 3, 2},   {8, 8, 8},
                             {6, 12, 3, 3, 2}, {4, 20, 2, 5, 1, 1}, {12, 12, 4, 3, 1, 2}, {40, 72, 2, 3, 1, 1, 5}};

} // namespace

TEST(GroupedConvolution, NativeAndExpandedGiveTheSameBits) {
  for (const Shape &shape : kShapes) {
    Values inputs = inputsFor(shape, /*whole=*/true);
    Result native = run(shape, supportsAll, inputs), expanded = run(shape, supportsOneGroup, inputs);
    EXPECT_GE(expanded.launches, native.launches + 3 * size_t(shape.groups - 1)) << "nothing was expanded";
    for (const char *name : {"y", "dx", "dw"})
      EXPECT_EQ(native.outputs.at(name), expanded.outputs.at(name)) << name << " of\n" << textOf(shape);
  }
}

TEST(GroupedConvolution, NativeAndExpandedDifferByRoundings) {
  for (const Shape &shape : kShapes) {
    Values inputs = inputsFor(shape, /*whole=*/false);
    Result native = run(shape, supportsAll, inputs), expanded = run(shape, supportsOneGroup, inputs);
    for (const char *name : {"y", "dx", "dw"})
      EXPECT_LE(differenceOf(native.outputs.at(name), expanded.outputs.at(name)), 2e-5) << name << " of\n"
                                                                                        << textOf(shape);
  }
}

// The backend selects one of the two forms, by the shape alone.
TEST(GroupedConvolution, TheCpuExpandsLargeGroupsAlone) {
  Supports its = sluice_cpu_backend_compile()->supports;
  for (const Shape &shape : kShapes) {
    bool isLarge = shape.hasLargeGroups();
    Values inputs = inputsFor(shape, /*whole=*/false);
    Result chosen = run(shape, its, inputs), same = run(shape, isLarge ? supportsOneGroup : supportsAll, inputs);
    EXPECT_EQ(chosen.launches, same.launches);
    EXPECT_EQ(chosen.outputs, same.outputs) << textOf(shape);
  }
}

// Devices with one instruction set compute the same bits, whatever kernels their backends have.
TEST(GroupedConvolution, ADeviceWithMoreKernelsThanTheHostGivesItsBits) {
  Supports its = sluice_cpu_backend_compile()->supports;
  for (const Shape &shape : kShapes) {
    Values inputs = inputsFor(shape, /*whole=*/false);
    EXPECT_EQ(runOnSim(shape, supportsAll, inputs).outputs, run(shape, its, inputs).outputs) << textOf(shape);
  }
}

TEST(GroupedConvolution, ADeviceWithFewerKernelsThanTheHostIsRefused) {
  for (const Shape &shape : kShapes) {
    Values inputs = inputsFor(shape, /*whole=*/false);
    std::string error;
    try {
      runOnSim(shape, supportsOneGroup, inputs);
    } catch (const std::runtime_error &refused) {
      error = refused.what();
    }
    if (shape.hasLargeGroups())
      EXPECT_EQ(error, "");
    else
      EXPECT_NE(error.find("would give other bits than on the host"), std::string::npos) << error << textOf(shape);
  }
}
