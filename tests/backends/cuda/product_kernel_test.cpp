// Products as CUDA C++, alone and with epilogues: run by emulated threads of several blocks, compared with the
// reference functions, with the same bits for all tiles.
#include "backends/cuda/compiler/product/ProductKernel.h"
#include "tests/backends/cuda/Budgets.h"
#include "tests/backends/cuda/GridRun.h"
#include "tests/cuda_emu/PinnedNvrtc.h"
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fmt/format.h>
#include <set>

namespace sluice::cuda::test {

namespace {

/// Rows in every role, tiles that are not full, chunks; images with padding, strides, dilation and odd sizes.
std::vector<Body> products() {
  std::vector<Body> all = {
      einsum("ab,bc->ac", "tensor<?x70xf32>", "tensor<70x90xf32>", "tensor<?x90xf32>"),
      einsum("ab,cb->ac", "tensor<?x300xf64>", "tensor<5x300xf64>", "tensor<?x5xf64>"),
      einsum("ab,ac->bc", "tensor<?x20xf32>", "tensor<?x33xf32>", "tensor<20x33xf32>"),
      einsum("ab,cb->ac", "tensor<9x20xf32>", "tensor<?x20xf32>", "tensor<9x?xf32>"),
      einsum("abc,adc->abd", "tensor<?x4x6xf32>", "tensor<?x5x6xf32>", "tensor<?x4x5xf32>"),
      einsum("ab,bc->ac", "tensor<1x20xf32>", "tensor<20x33xf32>", "tensor<1x33xf32>"),
      einsum("ab,bc->ac", "tensor<?x20xf32>", "tensor<20x1xf32>", "tensor<?x1xf32>"),
      einsum("ab,bc->ac", "tensor<?x3000xf32>", "tensor<3000x34xf32>", "tensor<?x34xf32>"),
      einsum("abcd,abde->abce", "tensor<3x4x2x6xf32>", "tensor<3x4x6x5xf32>", "tensor<3x4x2x5xf32>"),
      // Several letters in each role; the rows among them, outermost or not.
      einsum("abc,dc->abd", "tensor<?x9x20xf32>", "tensor<33x20xf32>", "tensor<?x9x33xf32>"),
      einsum("abc,abd->cd", "tensor<?x9x20xf32>", "tensor<?x9x33xf32>", "tensor<20x33xf32>"),
      einsum("abc,adc->bd", "tensor<9x20x?xf32>", "tensor<9x33x?xf32>", "tensor<20x33xf32>"),
      einsum("abcd,aecd->acbe", "tensor<?x9x2x20xf32>", "tensor<?x11x2x20xf32>", "tensor<?x2x9x11xf32>"),
      einsum("abcd,befc->adef", "tensor<5x3x4x7xf64>", "tensor<3x6x2x4xf64>", "tensor<5x7x6x2xf64>"),
      einsum("abc,cde->adbe", "tensor<3x?x20xf32>", "tensor<20x4x5xf32>", "tensor<3x4x?x5xf32>"),
      einsum("abc,acd->bda", "tensor<3x9x20xf32>", "tensor<3x20x11xf32>", "tensor<9x11x3xf32>"),
      // Padded columns, of a sum in one piece and in chunks.
      einsum("ab,bc->ac", "tensor<9x20xf32>", "tensor<20x33xf32, #columns>", "tensor<9x33xf32, #columns>"),
      einsum("ab,bc->ac", "tensor<9x3000xf32>", "tensor<3000x33xf32, #columns>", "tensor<9x33xf32, #columns>"),
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
  // One channel, and windows that lie side by side without being aligned.
  const std::string plain =
      "{stride = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, dilation = array<i64: 1, 1>, "
      "groups = 1 : i64}";
  all.push_back(product("conv2d", "tensor<?x3x4x6xf32>", "tensor<1x3x3x1xf32>", "tensor<?x1x2x6xf32>", plain));
  all.push_back(product("conv2d", "tensor<?x3x4x6xf32>", "tensor<21x3x3x1xf32>", "tensor<?x21x2x6xf32>", plain));
  // Of 7 rows and 41 x 41 elements, which have no equal parts: a chunk for each row; of 32 x 32: four for each.
  for (int64_t size : {41, 32})
    all.push_back(product("conv2d_weight_grad", fmt::format("tensor<?x2x{0}x{0}xf32>", size),
                          fmt::format("tensor<?x4x{0}x{0}xf32>", size), "tensor<4x2x1x1xf32>",
                          "{stride = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, dilation = array<i64: 1, 1>, "
                          "groups = 1 : i64, size = array<i64: 1, 1>}"));
  llvm::append_range(all, productsOfHeads());
  return all;
}

/// Without letters in some roles.
std::vector<Body> vectors() {
  return {einsum("ab,b->a", "tensor<?x40xf32>", "tensor<40xf32>", "tensor<?xf32>"),
          einsum("ab,ab->a", "tensor<?x40xf32>", "tensor<?x40xf32>", "tensor<?xf32>"),
          einsum("ab,ab->", "tensor<?x40xf32>", "tensor<?x40xf32>", "tensor<f32>"),
          einsum("a,a->", "tensor<40xf32>", "tensor<40xf32>", "tensor<f32>"),
          einsum("a,ab->b", "tensor<40xf32>", "tensor<40x9xf32>", "tensor<9xf32>"),
          einsum("a,ba->b", "tensor<1xf32>", "tensor<9x1xf32>", "tensor<9xf32>"),
          einsum("abc,acb->ca", "tensor<3x40x5xf32>", "tensor<3x5x40xf32>", "tensor<5x3xf32>"),
          einsum("abcd,bacd->bc", "tensor<4x3x5x20xf32>", "tensor<3x4x5x20xf32>", "tensor<3x5xf32>")};
}

/// The bodies, each followed by an elementwise op.
std::vector<Body> activated(std::vector<Body> bodies) {
  for (Body &body : bodies) {
    std::string type = body.yields.substr(body.yields.find(": ") + 2);
    body.text += fmt::format("\n%s = sluice.tanh %a : ({0}) -> {0}", type);
    body.yields = "%s : " + type;
  }
  return bodies;
}

/// Products of f32 in the types of two bytes, in turn, which are rounded once, at the end.
std::vector<Body> ofHalves(const std::vector<Body> &bodies) {
  std::vector<Body> all;
  for (const Body &body : bodies)
    if (body.text.find("f64") == std::string::npos)
      all.push_back(all.size() % 2 ? as("f16", body, 0x1p-10) : as("bf16", body, 0x1p-7));
  return all;
}

/// Halves of which each load takes several: in fewer steps than there are stages, and in many, in chunks, with tiles that are
/// not full, and of images beyond whose edges there is nothing.
std::vector<Body> copiedAhead() {
  std::vector<Body> all = {
      einsum("ab,bc->ac", "tensor<?x24xf32>", "tensor<24x40xf32>", "tensor<?x40xf32>"),
      einsum("ab,cb->ac", "tensor<140x600xf32>", "tensor<152x600xf32>", "tensor<140x152xf32>"),
      einsum("ab,ac->bc", "tensor<?x136xf32>", "tensor<?x72xf32>", "tensor<136x72xf32>"),
      einsum("ab,ac->bc", "tensor<2048x24xf32>", "tensor<2048x40xf32>", "tensor<24x40xf32>"),
      einsum("abc,acd->abd", "tensor<?x24x40xf32>", "tensor<?x40x16xf32>", "tensor<?x24x16xf32>"),
  };
  std::string x = "tensor<?x16x9x8xf32, #nhwc>", weight = "tensor<24x16x3x2xf32, #nhwc>";
  for (auto [attributes, size] :
       {std::pair("stride = array<i64: 1, 1>, padding = array<i64: 1, 1, 1, 0>, dilation = array<i64: 1, 1>", "9x8"),
        {"stride = array<i64: 2, 2>, padding = array<i64: 2, 1, 2, 1>, dilation = array<i64: 2, 1>", "5x5"}}) {
    std::string dy = fmt::format("tensor<?x24x{}xf32, #nhwc>", size),
                given = fmt::format("{{{}, groups = 1 : i64", attributes);
    all.push_back(product("conv2d", x, weight, dy, given + "}"));
    all.push_back(product("conv2d_input_grad", dy, weight, x, given + ", size = array<i64: 9, 8>}"));
    all.push_back(product("conv2d_weight_grad", x, dy, weight, given + ", size = array<i64: 3, 2>}"));
  }
  return ofHalves(all);
}

/// Convolutions of halves, of images of three channels, with which networks begin: three are no pairs, so each element is loaded
/// by itself.
std::vector<Body> ofThreeChannels(int64_t size) {
  Body single = product("conv2d", fmt::format("tensor<?x3x{0}x{0}xf32, #nhwc>", size), "tensor<70x3x3x3xf32, #nhwc>",
                        fmt::format("tensor<?x70x{0}x{0}xf32, #nhwc>", size),
                        "{stride = array<i64: 1, 1>, padding = array<i64: 1, 1, 1, 1>, dilation = array<i64: 1, 1>, "
                        "groups = 1 : i64}");
  return ofHalves({single, single});
}

/// Those, and their gradients, with a fourth channel of zeros: all of a pixel's are loaded together. Of rows of the call, and of two.
std::vector<Body> ofPaddedChannels(int64_t size) {
  std::vector<Body> all;
  std::string
      weight = "tensor<72x3x3x3xf32, #image>",
      given =
          "{stride = array<i64: 2, 2>, padding = array<i64: 1, 0, 1, 0>, dilation = array<i64: 1, 1>, groups = 1 : i64";
  for (const char *rows : {"?", "2"}) {
    std::string x = fmt::format("tensor<{0}x3x{1}x{1}xf32, #image>", rows, size),
                dy = fmt::format("tensor<{}x72x{}x{}xf32, #nhwc>", rows, (size + 1) / 2, (size - 1) / 2);
    all.push_back(product("conv2d", x, weight, dy, given + "}"));
    all.push_back(product("conv2d_weight_grad", x, dy, weight, given + ", size = array<i64: 3, 3>}"));
    all.push_back(
        product("conv2d_input_grad", dy, weight, x, fmt::format("{0}, size = array<i64: {1}, {1}>}}", given, size)));
  }
  return all;
}

/// The ops after a product in a kernel.
enum class Behind {
  Activation, ///< bias, residual, ReLU and where it is positive: three results
  Mask,       ///< a gradient where a mask holds
  Update,     ///< an optimizer's step
};

/// A product's body followed by `behind`. The bias is along dimension `channel`.
Body with(Behind behind, Body product, int channel) {
  const std::string y = product.yields.substr(product.yields.find(": ") + 2);
  auto [dims, encoding] = llvm::StringRef(y).drop_front(strlen("tensor<")).drop_back(1).split(", ");
  auto [shape, element] = dims.rsplit('x');
  llvm::SmallVector<llvm::StringRef> sizes;
  shape.split(sizes, 'x');
  std::string mask = fmt::format("tensor<{}xi1{}>", shape.str(), encoding.empty() ? "" : ", " + encoding.str());
  std::string expanded;
  for (llvm::StringRef size : sizes)
    expanded += (expanded.empty() ? "" : ", ") + size.str();
  std::string type = element.str(), of = fmt::format("({0}, {0}) -> {0}", y);
  std::string bias = fmt::format("tensor<{}x{}>", sizes[size_t(channel)].str(), type),
              scalar = fmt::format("tensor<{}>", type);
  auto expand = [&](const std::string &operand, const std::string &along) {
    return fmt::format("%e = sluice.expand {} {{dims = array<i64{}>, shape = array<i64: {}>}} : ({}) -> {}\n", operand,
                       along, expanded, along.empty() ? scalar : bias, y);
  };
  std::string zero = fmt::format("%z = sluice.full {{type = {}, value = 0.0 : f64}} : () -> {}\n", y, y);
  product.text += "\n";
  switch (behind) {
  case Behind::Activation:
    product.operands.insert(product.operands.end(), {bias, y});
    product.text +=
        expand("%2", fmt::format(": {}", channel)) + "%b = sluice.add %a, %e : " + of + "\n" +
        "%r = sluice.add %b, %3 : " + of + "\n" + fmt::format("%s = sluice.relu %r : ({0}) -> {0}\n", y) + zero +
        fmt::format("%t = sluice.compare %s, %z {{predicate = #sluice<predicate gt>}} : ({0}, {0}) -> {1}\n", y, mask);
    product.yields = fmt::format("%s, %t, %a : {0}, {1}, {0}", y, mask);
    break;
  case Behind::Mask:
    product.operands.push_back(mask);
    product.text += zero + fmt::format("%s = sluice.where %2, %a, %z : ({1}, {0}, {0}) -> {0}\n", y, mask);
    product.yields = "%s : " + y;
    break;
  case Behind::Update:
    product.operands.insert(product.operands.end(), {scalar, y, y});
    product.text += expand("%2", "") + "%m = sluice.add %4, %a : " + of + "\n%b = sluice.mul %e, %m : " + of +
                    "\n%s = sluice.sub %3, %b : " + of + "\n";
    product.yields = fmt::format("%s, %m : {0}, {0}", y);
    break;
  }
  return product;
}

/// Every product with every kind of ops behind it, in both layouts.
std::vector<Body> fused() {
  std::vector<Body> all;
  for (const Body &product : products()) {
    int channel = llvm::StringRef(product.yields).contains("tensor<?") ? 1 : 0; // not along rows of the call
    for (Behind behind : {Behind::Activation, Behind::Mask, Behind::Update})
      all.push_back(with(behind, product, channel));
  }
  return all;
}

/// Several tiles of 128 rows and columns, of one chain of terms and of several.
std::vector<Body> large() {
  return {einsum("ab,bc->ac", "tensor<200x160xf32>", "tensor<160x300xf32>", "tensor<200x300xf32>"),
          einsum("ab,cb->ac", "tensor<140x600xf32>", "tensor<150x600xf32>", "tensor<140x150xf32>"),
          einsum("ab,ac->bc", "tensor<300x136xf32>", "tensor<300x130xf32>", "tensor<136x130xf32>"),
          einsum("ab,bc->ac", "tensor<70x130xf64>", "tensor<130x150xf64>", "tensor<70x150xf64>")};
}

void expectTheReference(Grid &grid) {
  sluice::test::EmulatedLibrary library;
  library.compile(grid.kernels + grid.callers);
  for (auto [body, run] : llvm::zip_equal(grid.all, grid.runs)) {
    ASSERT_FALSE(run.kernel.functions.empty());
    EXPECT_EQ(run.kernel.functions[0].threads, 256) << "the product has no tiles: " << body.text;
    run.randomize(body.low, body.high);
    for (auto [rows, order] : {std::pair(7, "ascending"), {3, "descending"}, {1, "3"}, {0, "ascending"}}) {
      Schedule schedule(order);
      run.run(library, rows);
      EXPECT_LE(run.error(), body.tolerance) << body.text << "\nwith " << rows << " rows, " << order << "\n"
                                             << run.kernel.text;
    }
  }
}

/// Runs these with tiles of different sizes: results are equal.
void expectTheSameBits(const std::vector<Body> &bodies) {
  std::vector<std::vector<sluice::test::Bytes>> first;
  std::set<std::string> texts;
  for (int64_t largest : {16, 32, 64, 128}) {
    Grid grid(bodies, {.largestTile = largest, .wantedBlocks = 1});
    texts.insert(grid.runs.front().kernel.text);
    sluice::test::EmulatedLibrary library;
    library.compile(grid.kernels + grid.callers);
    std::vector<std::vector<sluice::test::Bytes>> results;
    for (auto [body, run] : llvm::zip_equal(grid.all, grid.runs)) {
      run.randomize(body.low, body.high);
      run.run(library, kCapacity);
      std::vector<sluice::test::Bytes> &bytes = results.emplace_back();
      for (unsigned i = 0; i < run.results(); ++i)
        bytes.push_back(run.bytes(i));
    }
    if (first.empty())
      first = results;
    for (size_t i = 0; i < bodies.size(); ++i)
      EXPECT_TRUE(results[i] == first[i]) << bodies[i].text << "\nwith tiles of at most " << largest;
  }
  EXPECT_GE(texts.size(), 3u) << "tiles were not what was asked for";
}

/// Functions that add chunks.
size_t chunked(const Grid &grid) {
  return size_t(llvm::count_if(grid.runs, [](const GridRun &run) { return run.kernel.functions.size() > 1; }));
}

} // namespace

TEST(ProductKernel, MatchesTheReference) {
  std::vector<Body> bodies = products();
  llvm::append_range(bodies, vectors());
  llvm::append_range(bodies, activated(vectors()));
  Grid grid(bodies);
  expectTheReference(grid);
  EXPECT_GT(chunked(grid), 1u);
}

// Where devices have no tensor cores for them.
TEST(ProductKernel, WidensHalves) {
  Grid grid(ofHalves(products()), {.halfCores = false});
  expectTheReference(grid);
  EXPECT_GT(chunked(grid), 1u);
}

TEST(ProductKernel, TakesTheOpsBehindIt) {
  Grid grid(fused());
  expectTheReference(grid);
  EXPECT_GT(chunked(grid), 3u);
}

TEST(ProductKernel, SumsOperandsBesideIt) {
  std::vector<Body> bodies = productsWithSums();
  for (const Body &body : productsWithSums())
    bodies.push_back(bodies.size() % 2 ? as("f16", body, 0x1p-10) : as("bf16", body, 0x1p-7));
  Grid grid(bodies);
  expectTheReference(grid);
  for (const GridRun &run : grid.runs)
    EXPECT_EQ(run.kernel.functions.back().followsLibrary, FollowsLibrary::ForSum)
        << "where a library sums, nobody else does";
}

// Where no library does it, it costs what it costs alone.
TEST(ProductKernel, SumsOperandsAsAKernelOfTheSumDoes) {
  const std::string x = "tensor<?x6000x6xf32>", dy = "tensor<?x6000x5xf32>";
  Body product = einsum("abc,abd->cd", x, dy, "tensor<6x5xf32>");
  GridRun both("k", {x, dy}, withSum(product, 1, "0, 1", "tensor<5xf32>").text,
               "%s, %a : tensor<5xf32>, tensor<6x5xf32>");
  Body alone = unary("sum", dy, "{axes = array<i64: 0, 1>}", "tensor<5xf32>");
  GridRun sum("k", alone.operands, alone.text, alone.yields);
  auto beside = [](const GridFunction &function) { return function.followsLibrary == FollowsLibrary::ForSum; };
  llvm::SmallVector<GridFunction> found(llvm::make_filter_range(both.kernel.functions, beside));
  ASSERT_EQ(found.size(), sum.kernel.functions.size());
  EXPECT_GT(found.size(), 1u) << "it is no long sum";
  for (auto [its, wanted] : llvm::zip_equal(found, sum.kernel.functions)) {
    EXPECT_EQ(its.tasks, wanted.tasks);
    EXPECT_EQ(its.rowsPerTask, wanted.rowsPerTask);
    EXPECT_EQ(its.threads, wanted.threads);
  }
}

// Terms are added in one order, whatever the tiles.
TEST(ProductKernel, GivesTheSameBitsForAnyTile) {
  std::vector<Body> bodies = large(), all = products();
  for (size_t i = 0; i < all.size(); i += std::getenv("SLUICE_TEST_FULL") ? 1 : 4) // of each kind some
    bodies.push_back(all[i]);
  expectTheSameBits(bodies);
  expectTheSameBits(ofHalves(large()));
}

/// Products of f32, in several chains and in chunks, with rows and batches; some with ops behind them.
std::vector<Body> ofSingles() {
  std::vector<Body> all = products(), behind = fused();
  llvm::append_range(all, large());
  for (size_t i = 0; i < behind.size(); i += 4) // each kind of ops in its turn
    all.push_back(behind[i]);
  llvm::erase_if(all, [](const Body &body) { return body.text.find("xf64") != std::string::npos; });
  return all;
}

// Numbers of at most 11 bits are not rounded: results equal the reference.
TEST(ProductKernel, MultipliesOnTensorCores) {
  Grid grid(ofSingles(), {.math = SLUICE_MATH_TF32});
  sluice::test::EmulatedLibrary library;
  library.compile(grid.kernels + grid.callers);
  for (auto [body, run] : llvm::zip_equal(grid.all, grid.runs)) {
    EXPECT_NE(run.kernel.text.find("multiplyTf32("), std::string::npos) << body.text;
    run.randomize(body.low, body.high);
    for (ir::HostTensor &input : run.inputs)
      for (double &value : input.data)
        value = std::nearbyint(value * 256) / 256;
    for (int64_t rows : {7, 3, 0}) {
      run.run(library, rows);
      EXPECT_TRUE(run.error() <= body.tolerance) << body.text << "\nwith " << rows << " rows: " << run.error();
    }
  }
}

// Each operand errs by at most 2^-11 of itself, so a sum by twice that of the sum of its terms' magnitudes.
TEST(ProductKernel, RoundsOperandsForTensorCores) {
  const std::vector<Body> all = {large()[0], large()[1], large()[2]};
  constexpr double kTerms[] = {160, 600, 300}, kOfTerm = 2 * 0x1p-11 + 0x1p-20;
  Grid strict(all), rounded(all, {.math = SLUICE_MATH_TF32});
  sluice::test::EmulatedLibrary strictLibrary, library;
  strictLibrary.compile(strict.kernels + strict.callers);
  library.compile(rounded.kernels + rounded.callers);
  for (size_t i = 0; i < all.size(); ++i) {
    GridRun &run = rounded.runs[i], &without = strict.runs[i];
    EXPECT_EQ(without.kernel.text.find("Tf32"), std::string::npos) << "it was not asked for";
    run.randomize(all[i].low, all[i].high);
    without.randomize(all[i].low, all[i].high);
    run.run(library, kCapacity);
    without.run(strictLibrary, kCapacity);
    // Terms are uniform in magnitude up to 2 * 2, so their mean magnitude is 1.
    EXPECT_TRUE(run.error() <= 1.5 * kOfTerm * kTerms[i]) << run.error();
    EXPECT_GT(run.error(), 1e-3) << "nothing was rounded";
    EXPECT_TRUE(without.error() <= all[i].tolerance) << without.error();
  }
}

// Each product is exact and results are rounded once: sums in f32 cause no other visible error.
TEST(ProductKernel, MultipliesHalvesOnTensorCores) {
  std::vector<Body> all = ofHalves(products());
  llvm::append_range(all, ofHalves(ofSingles()));
  Grid grid(all);
  for (const GridRun &run : grid.runs)
    EXPECT_TRUE(run.kernel.text.find("multiplyBF16(") != std::string::npos ||
                run.kernel.text.find("multiplyF16(") != std::string::npos)
        << run.kernel.text;
  for (const char *arrangement : {"loadMatrices<true>(aPart", "loadMatrices<false>(aPart", "loadMatrices<true>(bPart",
                                  "loadMatrices<false>(bPart"})
    EXPECT_NE(grid.kernels.find(arrangement), std::string::npos) << arrangement;
  expectTheReference(grid);
  EXPECT_GT(chunked(grid), 2u);
}

// A few, which sanitizers watch whenever tests run (sanitized_test.py).
TEST(ProductKernel, TakesTheOpsBehindItOnAnyCores) {
  std::vector<Body> all = fused(), some;
  for (size_t i = 0; i < all.size(); i += 19) // each kind of ops in its turn
    some.push_back(all[i]);
  llvm::append_range(some, ofHalves(some));
  Grid grid(some);
  expectTheReference(grid);
}

TEST(ProductKernel, TakesShortStepsWhereEachElementIsLoadedByItself) {
  Grid grid(ofThreeChannels(9), {.wantedBlocks = 1});
  for (const GridRun &run : grid.runs)
    EXPECT_NE(run.kernel.text.find("asked[2][16]"), std::string::npos) << run.kernel.text;
  expectTheReference(grid);
}

TEST(ProductKernel, LoadsPaddedChannelsTogether) {
  std::vector<Body> halves = ofHalves(ofPaddedChannels(9)), singles = ofPaddedChannels(5);
  halves.erase(halves.begin() + 3, halves.end() - 1); // which take as long to compile as all others
  Grid grid(halves, {.wantedBlocks = 1}), ofSingles(singles);
  for (const GridRun &run : grid.runs)
    EXPECT_NE(run.kernel.text.find("beginCopy<8>"), std::string::npos) << run.kernel.text;
  expectTheReference(grid);
  EXPECT_GE(chunked(grid), 1u);
  EXPECT_EQ(grid.runs.back().kernel.functions.back().followsLibrary, FollowsLibrary::Always)
      << "no library clears padding";
  expectTheReference(ofSingles);
}

// Behind three of five channels there are more, and no zeros.
TEST(ProductKernel, SumsNoMoreOfASliceThanItHas) {
  const std::string x = "tensor<?x5x6x6xf32, #image>", weight = "tensor<8x5x1x1xf32, #image>";
  Body body = product("conv2d", "tensor<?x3x6x6xf32>", "tensor<8x3x1x1xf32>", "tensor<?x8x6x6xf32, #nhwc>",
                      "{stride = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, dilation = array<i64: 1, 1>, "
                      "groups = 1 : i64}");
  auto slice = [](const std::string &name, const std::string &of, const std::string &from, const std::string &to,
                  const std::string &end) {
    return fmt::format("{} = sluice.slice {} {{start = array<i64: 0, 0, 0, 0>, end = array<i64: {}>, "
                       "step = array<i64: 1, 1, 1, 1>}} : ({}) -> {}\n",
                       name, of, end, from, to);
  };
  body.text = slice("%s", "%0", x, body.operands[0], "0, 3, 6, 6") +
              slice("%t", "%1", weight, body.operands[1], "8, 3, 1, 1") +
              body.text.replace(body.text.find("%0, %1"), 6, "%s, %t");
  body.operands = {x, weight};
  Grid grid({body});
  expectTheReference(grid);
}

TEST(ProductKernel, CopiesTilesAhead) {
  for (int64_t largest : {32, 128}) {
    Grid grid(copiedAhead(), {.largestTile = largest, .wantedBlocks = 1});
    for (const GridRun &run : grid.runs) {
      EXPECT_NE(run.kernel.text.find("beginCopy<"), std::string::npos) << run.kernel.text;
      EXPECT_GT(run.kernel.functions[0].sharedBytes, 0);
    }
    expectTheReference(grid);
    EXPECT_GE(chunked(grid), 1u);
  }
}

// What is computed is none, nor are single elements.
TEST(ProductKernel, ReadsPacksThroughWhatMovesElements) {
  auto reads = [](const Body &body) {
    GridRun run("k", body.operands, body.text, body.yields);
    llvm::SmallVector<mlir::Operation *> ops = run.ops();
    return readsPacksThrough(ops.back(), ops, kCapacity, {});
  };
  /// `op` of %0 in front of a product's first operand.
  auto behind = [](Body body, const std::string &op, const std::string &from) {
    std::string to = body.operands[0];
    body.text =
        "%t = sluice." + op + " : (" + from + ") -> " + to + "\n" + body.text.replace(body.text.find("%0"), 2, "%t");
    body.operands[0] = from;
    return body;
  };
  const std::string turn = "transpose %0 {permutation = array<i64: 1, 0>}";
  Body packs = einsum("ab,bc->ac", "tensor<48x64xf32>", "tensor<64x96xf32>", "tensor<48x96xf32>"),
       single = einsum("ab,bc->ac", "tensor<63x47xf32>", "tensor<47x96xf32>", "tensor<63x96xf32>");
  for (const Body &body : productsOfHeads())
    for (const Body &its : {body, as("bf16", body, 0)})
      EXPECT_TRUE(reads(its)) << its.text;
  EXPECT_TRUE(reads(behind(packs, turn, "tensor<64x48xf32>"))) << "its rows lie side by side";
  EXPECT_FALSE(reads(behind(packs, "neg %0", packs.operands[0]))) << "it is computed";
  EXPECT_FALSE(reads(behind(single, turn, "tensor<47x63xf32>"))) << "63 columns are no packs";
}

// The cost of a launch of these.
TEST(ProductKernel, SaysWhatItsTilesFill) {
  Grid grid(large(), {.wantedBlocks = 1});
  EXPECT_DOUBLE_EQ(grid.runs[0].kernel.lanes, 200.0 / 256 * 300 / 384); // in tiles of 128 x 128
  EXPECT_DOUBLE_EQ(grid.runs[3].kernel.lanes, 70.0 / 128 * 150 / 192);  // in tiles of 64 x 64
}

TEST(ProductKernel, NamesInstructionsOfTheDevice) {
  llvm::Expected<Nvrtc> nvrtc = sluice::test::loadPinnedNvrtc();
  if (!nvrtc)
    GTEST_SKIP() << llvm::toString(nvrtc.takeError());
  Body single = einsum("ab,bc->ac", "tensor<?x70xf32>", "tensor<70x90xf32>", "tensor<?x90xf32>");
  for (std::string type : {"bf16", "f16"}) {
    Grid grid({as(type, single, 0)}), without({as(type, single, 0)}, {.halfCores = false});
    llvm::Expected<DeviceCode> code = nvrtc->compile(grid.kernels, "compute_80");
    ASSERT_TRUE(bool(code)) << llvm::toString(code.takeError());
    EXPECT_NE(code->bytes.find("mma.sync.aligned.m16n8k16.row.col.f32." + type + "." + type + ".f32"),
              std::string::npos);
    llvm::Expected<DeviceCode> older = nvrtc->compile(without.kernels, "sm_75");
    EXPECT_TRUE(bool(older)) << llvm::toString(older.takeError());
  }
}

TEST(ProductKernel, FitsItsBudgets) {
  llvm::Expected<Nvrtc> nvrtc = sluice::test::loadPinnedNvrtc();
  if (!nvrtc)
    GTEST_SKIP() << llvm::toString(nvrtc.takeError());
  std::vector<Body> bodies = large();
  llvm::append_range(bodies, products());
  auto expect = [&](const std::vector<Body> &all, const GridOptions &options, const char *architecture) {
    Grid grid(all, options);
    llvm::Expected<DeviceCode> code = nvrtc->compile(grid.kernels, architecture);
    ASSERT_TRUE(bool(code)) << llvm::toString(code.takeError());
    std::vector<GridFunction> functions;
    for (const GridRun &run : grid.runs)
      llvm::append_range(functions, run.kernel.functions);
    expectBudgets(*code, functions);
  };
  for (const GridOptions &options :
       {GridOptions(), GridOptions{.wantedBlocks = 1}, GridOptions{.math = SLUICE_MATH_TF32}})
    expect(bodies, options, "sm_90");
  expect(ofHalves(bodies), {}, "sm_90");
  std::vector<const char *> architectures{"sm_90"};
  if (std::getenv("SLUICE_TEST_FULL"))
    architectures.push_back("sm_80"); // with as many registers
  for (const char *architecture : architectures)
    for (const std::vector<Body> &halves :
         {ofHalves(large()), copiedAhead(), ofThreeChannels(256), ofHalves(ofPaddedChannels(256))})
      expect(halves, {.wantedBlocks = 1}, architecture);
}

} // namespace sluice::cuda::test
