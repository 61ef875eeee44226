// Kernels as CUDA C++: run by emulated threads of several blocks, against the reference functions.
#include "backends/cuda/compiler/Prelude.h"
#include "tests/backends/cuda/GridRun.h"
#include "tests/cuda_emu/PinnedNvrtc.h"
#include <deque>
#include <gtest/gtest.h>

using namespace mlir;

namespace sluice::cuda {

namespace {

struct Body {
  std::vector<std::string> operands;
  std::string text, yields;
  double tolerance = 1e-5, low = -2, high = 2;
};

Body unary(const std::string &op, const std::string &x, const std::string &attributes = "",
           const std::string &to = "") {
  std::string y = to.empty() ? x : to;
  return {{x}, "%a = sluice." + op + " %0 " + attributes + " : (" + x + ") -> " + y, "%a : " + y};
}

Body product(const std::string &op, const std::string &a, const std::string &b, const std::string &y,
             const std::string &attributes) {
  return {
      {a, b}, "%a = sluice." + op + " %0, %1 " + attributes + " : (" + a + ", " + b + ") -> " + y, "%a : " + y, 1e-4};
}

/// Rows in every role, tiles that are not full, chunks; images with padding, strides, dilation and odd sizes.
std::vector<Body> products() {
  std::vector<Body> all = {
      product("matmul", "tensor<?x70xf32>", "tensor<70x90xf32>", "tensor<?x90xf32>", ""),
      product("matmul", "tensor<?x300xf64>", "tensor<5x300xf64>", "tensor<?x5xf64>", "{transpose_b}"),
      product("matmul", "tensor<?x20xf32>", "tensor<?x33xf32>", "tensor<20x33xf32>", "{transpose_a}"),
      product("matmul", "tensor<9x20xf32>", "tensor<?x20xf32>", "tensor<9x?xf32>", "{transpose_b}"),
      product("matmul", "tensor<?x4x6xf32>", "tensor<?x5x6xf32>", "tensor<?x4x5xf32>", "{transpose_b}"),
      product("matmul", "tensor<3x4x2x6xf32>", "tensor<3x4x6x5xf32>", "tensor<3x4x2x5xf32>", ""),
  };
  std::string nchw = "tensor<?x3x9x8xf32>", nhwc = "tensor<?x3x9x8xf32, #nhwc>";
  struct Window {
    const char *attributes;
    int height, width;
  };
  for (auto [attributes, height, width] :
       {Window{"stride = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, dilation = array<i64: 1, 1>", 7, 7},
        {"stride = array<i64: 1, 1>, padding = array<i64: 1, 1, 1, 0>, dilation = array<i64: 1, 1>", 9, 8},
        {"stride = array<i64: 2, 3>, padding = array<i64: 1, 0, 1, 2>, dilation = array<i64: 1, 1>", 5, 3},
        {"stride = array<i64: 2, 2>, padding = array<i64: 2, 1, 2, 1>, dilation = array<i64: 2, 1>", 5, 5},
        {"stride = array<i64: 3, 2>, padding = array<i64: 0, 0, 0, 0>, dilation = array<i64: 3, 2>", 1, 3}}) {
    std::string size = std::to_string(height) + "x" + std::to_string(width);
    std::string weight = "tensor<21x3x3x2xf32>", dy = "tensor<?x21x" + size + "xf32";
    std::string given = std::string("{") + attributes + ", groups = 1 : i64";
    all.push_back(product("conv2d", nchw, weight, dy + ">", given + "}"));
    all.push_back(product("conv2d", nhwc, weight, dy + ", #nhwc>", given + "}"));
    all.push_back(product("conv2d_input_grad", dy + ">", weight, nchw, given + ", size = array<i64: 9, 8>}"));
    all.push_back(product("conv2d_input_grad", dy + ", #nhwc>", weight, nhwc, given + ", size = array<i64: 9, 8>}"));
    all.push_back(product("conv2d_weight_grad", nhwc, dy + ">", weight, given + ", size = array<i64: 3, 2>}"));
  }
  // Of 7 rows and 41 x 41 elements: three chunks.
  all.push_back(product("conv2d_weight_grad", "tensor<?x2x41x41xf32>", "tensor<?x4x41x41xf32>", "tensor<4x2x1x1xf32>",
                        "{stride = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, dilation = array<i64: 1, 1>, "
                        "groups = 1 : i64, size = array<i64: 1, 1>}"));
  return all;
}

std::vector<Body> bodies() {
  std::vector<Body> all = {
      unary("square", "tensor<?xf32>"),
      unary("square", "tensor<f32>"),
      unary("neg", "tensor<70x1001xf32>"),
      unary("neg", "tensor<?x256xf32>"),
      unary("exp", "tensor<?x33xf64>"),
      unary("relayout", "tensor<?x5x6x19xf32, #nhwc>", "", "tensor<?x5x6x19xf32>"),
      unary("relayout", "tensor<70x5xf32>", "", "tensor<70x5xf32, #panels>"),
      unary("transpose", "tensor<?x12x40xf32>", "{permutation = array<i64: 0, 2, 1>}", "tensor<?x40x12xf32>"),
  };
  for (auto [axes, result] : {std::pair("0", "tensor<5x6x19xf32>"),
                              {"1", "tensor<?x6x19xf32>"},
                              {"3", "tensor<?x5x6xf32>"},
                              {"0, 2, 3", "tensor<5xf32>"},
                              {"1, 2, 3", "tensor<?xf32>"},
                              {"0, 1, 2, 3", "tensor<f32>"}})
    for (const char *encoding : {"", ", #nhwc"})
      for (const char *op : {"sum", "reduce_max"})
        all.push_back(unary(op, std::string("tensor<?x5x6x19xf32") + encoding + ">",
                            std::string("{axes = array<i64: ") + axes + ">}", result));
  for (const char *op : {"softmax", "log_softmax"}) {
    all.push_back(unary(op, "tensor<?x100xf32>", "{axis = 1 : i64}"));
    all.push_back(unary(op, "tensor<?x21x40xf32>", "{axis = 1 : i64}"));
    all.push_back(unary(op, "tensor<300x37xf32>", "{axis = 0 : i64}"));
  }
  // In chunks: a large sum of a small result; its operand is stored on the way.
  all.push_back({{"tensor<400x13x16xf32>"},
                 "%a = sluice.relu %0 : (tensor<400x13x16xf32>) -> tensor<400x13x16xf32>\n"
                 "%b = sluice.sum %a {axes = array<i64: 0, 1>} : (tensor<400x13x16xf32>) -> tensor<16xf32>",
                 "%b, %a : tensor<16xf32>, tensor<400x13x16xf32>",
                 1e-4});
  all.push_back({{"tensor<?x7xui8>"},
                 "%a = sluice.cast %0 {to = f32} : (tensor<?x7xui8>) -> tensor<?x7xf32>\n"
                 "%b = sluice.exp %a : (tensor<?x7xf32>) -> tensor<?x7xf32>",
                 "%b, %a : tensor<?x7xf32>, tensor<?x7xf32>",
                 1e-5,
                 0,
                 9});
  all.push_back({{"tensor<?x10xf32>", "tensor<?xi32>"},
                 "%a = sluice.softmax_cross_entropy %0, %1 : (tensor<?x10xf32>, tensor<?xi32>) -> tensor<?xf32>\n"
                 "%b = sluice.mean %a {axes = array<i64: 0>} : (tensor<?xf32>) -> tensor<f32>",
                 "%b, %a : tensor<f32>, tensor<?xf32>",
                 1e-5,
                 0,
                 9.99});
  for (Body &body : products())
    all.push_back(std::move(body));
  return all;
}

/// All bodies, written and put together.
struct Grid {
  std::vector<Body> all = bodies();
  std::deque<GridRun> runs;
  std::string kernels = kPrelude, callers;

  Grid() {
    for (const Body &body : all) {
      GridRun &run = runs.emplace_back("k" + std::to_string(runs.size()), body.operands, body.text, body.yields);
      kernels += run.kernel.text;
      callers += run.callers();
    }
  }
};

} // namespace

TEST(GridKernel, MatchesTheReference) {
  Grid grid;
  test::EmulatedLibrary library;
  library.compile(grid.kernels + grid.callers);
  size_t partial = 0, blocks = 0;
  for (auto [body, run] : llvm::zip_equal(grid.all, grid.runs)) {
    run.randomize(body.low, body.high);
    partial += llvm::count_if(run.kernel.functions, [](const GridFunction &function) {
      return llvm::StringRef(function.name).contains("_partial_");
    });
    blocks +=
        llvm::count_if(run.kernel.functions, [](const GridFunction &function) { return function.threads > kWarp; });
    for (int64_t rows : {7, 3, 1, 0}) {
      run.run(library, rows);
      EXPECT_LE(run.error(), body.tolerance) << body.text << "\nwith " << rows << " rows\n" << run.kernel.text;
    }
  }
  EXPECT_GT(partial, 0u) << "nothing was cut into chunks";
  EXPECT_EQ(blocks, products().size()) << "a product has no tiles";
}

TEST(GridKernel, CompilesForDevices) {
  llvm::Expected<Nvrtc> nvrtc = test::loadPinnedNvrtc();
  if (!nvrtc)
    GTEST_SKIP() << llvm::toString(nvrtc.takeError());
  Grid grid;
  size_t functions = 0;
  for (const GridRun &run : grid.runs)
    functions += run.kernel.functions.size();
  llvm::Expected<DeviceCode> code = nvrtc->compile(grid.kernels, "sm_90");
  ASSERT_TRUE(bool(code)) << llvm::toString(code.takeError());
  EXPECT_EQ(code->kernels.size(), functions);
  for (const KernelResources &kernel : code->kernels)
    EXPECT_EQ(kernel.spillStores + kernel.spillLoads, 0) << kernel.name;
}

} // namespace sluice::cuda
