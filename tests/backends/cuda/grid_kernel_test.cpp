// Kernels without products as CUDA C++: run by emulated threads of several blocks, against the reference functions.
#include "tests/backends/cuda/GridRun.h"
#include "tests/cuda_emu/PinnedNvrtc.h"
#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <regex>

namespace sluice::cuda::test {

namespace {

/// Whether it casts floats: what no arithmetic gives is among its operand's elements then.
bool castsFloats(const Body &body) {
  return body.text.find("sluice.cast") != std::string::npos && body.operands[0].find("f32") != std::string::npos;
}

/// Halves: steps that are exact but for their rounding, down to subnormals; sums that are not, and chunks of them.
std::vector<Body> halves() {
  std::vector<Body> all;
  std::string x = "tensor<?x256xf32>", two = " : (" + x + ", " + x + ") -> " + x + "\n";
  Body chain{{x, x},
             "%a = sluice.mul %0, %1" + two + "%b = sluice.add %a, %0" + two + "%c = sluice.div %b, %1" + two +
                 "%d = sluice.relu %c : (" + x + ") -> " + x,
             "%d, %b : " + x + ", " + x};
  for (auto [element, ulp] : {std::pair("f16", 0x1p-10), {"bf16", 0x1p-7}}) {
    all.push_back(as(element, chain, 0));
    for (double most : {2.0, 1e-4, 1e-6, 1e-39, 60000.0, 3e38}) {
      Body cast = unary("cast", "tensor<?x33xf32>", std::string("{to = ") + element + "}",
                        std::string("tensor<?x33x") + element + ">");
      cast.tolerance = 0;
      cast.low = -most;
      cast.high = most;
      all.push_back(cast);
    }
    all.push_back(
        as(element,
           unary("transpose", "tensor<?x12x40xf32>", "{permutation = array<i64: 0, 2, 1>}", "tensor<?x40x12xf32>"), 0));
    all.push_back(
        as(element, unary("sum", "tensor<400x13x16xf32>", "{axes = array<i64: 0, 1>}", "tensor<16xf32>"), ulp));
    all.push_back(as(element, unary("softmax", "tensor<?x100xf32>", "{axis = 1 : i64}"), ulp));
    all.push_back({{std::string("tensor<?x3x") + element + ">"},
                   std::string("%a = sluice.constant {value = dense<[1.0, 2.5, -3.0]> : tensor<3x") + element +
                       ">} : () -> tensor<3x" + element +
                       ">\n%b = sluice.expand %a {dims = array<i64: 1>, shape = array<i64: ?, 3>} : "
                       "(tensor<3x" +
                       element + ">) -> tensor<?x3x" + element + ">\n%c = sluice.mul %0, %b : (tensor<?x3x" + element +
                       ">, tensor<?x3x" + element + ">) -> tensor<?x3x" + element + ">",
                   std::string("%c : tensor<?x3x") + element + ">",
                   0});
  }
  return all;
}

/// Random numbers, whose long formulas are functions: of one type in two kernels of a text, and of another one.
std::vector<Body> drawn() {
  auto normal = [](const std::string &value, int stream, const std::string &type) {
    return value + " = sluice.normal %0 {stream = " + std::to_string(stream) +
           " : i64, a = 1.0 : f64, b = 0.5 : f64, type = " + type + "} : (tensor<2xi32>) -> " + type + "\n";
  };
  std::string one = "tensor<31x70xf32>", other = "tensor<9x33xf32>", wide = "tensor<?x33xf64>";
  return {{{"tensor<2xi32>"},
           normal("%a", 3, one) + normal("%b", 4, other),
           "%a, %b : " + one + ", " + other,
           1e-5,
           -9e8,
           9e8},
          {{"tensor<2xi32>"}, normal("%a", 0, wide), "%a : " + wide, 1e-12, -9e8, 9e8}};
}

/// Indices that are data, some of them out of range.
std::vector<Body> indexed() {
  auto body = [](const std::string &op, const std::string &attributes, const std::string &x, const std::string &index,
                 const std::string &y, double size) {
    return Body{{x, index},  "%a = sluice." + op + " %0, %1 {" + attributes + "} : (" + x + ", " + index + ") -> " + y,
                "%a : " + y, op == "gather" ? 0.0 : 1e-4,
                -2,          size + 2};
  };
  auto gather = [&](int axis, const std::string &x, const std::string &index, const std::string &y, double size) {
    return body("gather", "axis = " + std::to_string(axis) + " : i64", x, index, y, size);
  };
  auto scatter = [&](int axis, int size, const std::string &x, const std::string &index, const std::string &y) {
    return body("scatter_add", "axis = " + std::to_string(axis) + " : i64, size = " + std::to_string(size) + " : i64",
                x, index, y, size);
  };
  return {gather(0, "tensor<50x256xf32>", "tensor<?x5xi32>", "tensor<?x5x256xf32>", 50),
          gather(0, "tensor<50x33xf32>", "tensor<?xi64>", "tensor<?x33xf32>", 50),
          gather(0, "tensor<50x3xf64>", "tensor<?x9xi64>", "tensor<?x9x3xf64>", 50),
          gather(1, "tensor<?x40xf32>", "tensor<70xi32>", "tensor<?x70xf32>", 40),
          gather(0, "tensor<50x5x6x19xf32, #nhwc>", "tensor<?xi32>", "tensor<?x5x6x19xf32>", 50),
          scatter(0, 50, "tensor<?x5x256xf32>", "tensor<?x5xi32>", "tensor<50x256xf32>"),
          scatter(0, 50, "tensor<?x33xf32>", "tensor<?xi64>", "tensor<50x33xf32>"),
          scatter(0, 50, "tensor<?x9xf64>", "tensor<?x9xi64>", "tensor<50xf64>"),
          scatter(1, 40, "tensor<?x70xf32>", "tensor<70xi32>", "tensor<?x40xf32>"),
          scatter(0, 30, "tensor<900x20xf32>", "tensor<900xi32>", "tensor<30x20xf32>"),
          scatter(0, 50, "tensor<?x90x64xf32>", "tensor<?x90xi32>", "tensor<50x64xf32>"),
          scatter(0, 3, "tensor<700x3x11xf32>", "tensor<700xi64>", "tensor<3x3x11xf32>"),
          scatter(0, 50, "tensor<?x5x6x19xf32>", "tensor<?xi32>", "tensor<50x5x6x19xf32, #nhwc>")};
}

/// Normalisations by the elements of a row, and their gradients.
std::vector<Body> normalised() {
  std::vector<Body> all;
  auto add = [&](const std::string &x, const std::string &vector, const std::string &attributes) {
    for (bool isGradient : {false, true}) {
      const std::string &last = isGradient ? x : vector;
      all.push_back({{x, vector, last},
                     std::string("%a = sluice.normalize") + (isGradient ? "_grad" : "") + " %0, %1, %2 {" + attributes +
                         ", eps = 1.0e-2 : f64} : (" + x + ", " + vector + ", " + last + ") -> " + x,
                     "%a : " + x,
                     1e-4});
    }
  };
  add("tensor<?x100xf32>", "tensor<100xf32>", "axis = 1 : i64, dims = array<i64: 1>");
  add("tensor<?x5x768xf32>", "tensor<768xf32>", "axis = 2 : i64, dims = array<i64: 2>, rms");
  add("tensor<?x33xf64>", "tensor<f64>", "axis = 1 : i64, dims = array<i64>");
  add("tensor<?x4x3x40xf32>", "tensor<4x3xf32>", "axis = 2 : i64, dims = array<i64: 1, 2>");
  add("tensor<?x5x6x19xf32, #nhwc>", "tensor<5xf32>", "axis = 1 : i64, dims = array<i64: 1>");
  return all;
}

/// A part of a value in place that is computed on the way.
Body computedPart(const std::string &x) {
  return {{"tensor<?x33xf32>", x, "tensor<i32>"},
          "%a = sluice.neg %0 : (tensor<?x33xf32>) -> tensor<?x33xf32>\n"
          "%b = sluice.expand %a {dims = array<i64: 0, 2>, shape = array<i64: ?, 1, 33>} : "
          "(tensor<?x33xf32>) -> tensor<?x1x33xf32>\n"
          "%c = sluice.dynamic_update_slice %1, %b, %2 {axis = 1 : i64, in_place} : (" +
              x + ", tensor<?x1x33xf32>, tensor<i32>) -> " + x,
          "%c, %a : " + x + ", tensor<?x33xf32>",
          0,
          2,
          3};
}

/// Slices at a position that is data; one that is all of it, written in its place.
std::vector<Body> positioned() {
  auto update = [](const std::string &x, const std::string &part, int axis, const std::string &more = "") {
    return Body{{x, part, "tensor<i32>"},
                "%a = sluice.dynamic_update_slice %0, %1, %2 {axis = " + std::to_string(axis) + " : i64" + more +
                    "} : (" + x + ", " + part + ", tensor<i32>) -> " + x,
                "%a : " + x,
                0,
                2,
                3};
  };
  return {{{"tensor<?x9x33xf32>", "tensor<i64>"},
           "%a = sluice.dynamic_slice %0, %1 {axis = 1 : i64, size = 2 : i64} : (tensor<?x9x33xf32>, tensor<i64>) -> "
           "tensor<?x2x33xf32>",
           "%a : tensor<?x2x33xf32>",
           0,
           2,
           9},
          update("tensor<?x9x33xf32>", "tensor<?x1x33xf32>", 1),
          update("tensor<9x40xf64>", "tensor<9x7xf64>", 1),
          update("tensor<?x9x33xf32>", "tensor<?x9x33xf32>", 1, ", in_place"),
          update("tensor<9x40xf64>", "tensor<9x40xf64>", 0, ", in_place"),
          computedPart("tensor<?x1x33xf32>")};
}

/// Rows that are folded by a block: their elements are stored by it, or fold on; and few classes of many rows.
std::vector<Body> longRows() {
  std::vector<Body> all;
  for (const char *op : {"softmax", "log_softmax"})
    for (const char *x : {"tensor<?x10000xf32>", "tensor<3x4099xf64>"})
      all.push_back(unary(op, x, "{axis = 1 : i64}"));
  for (const char *element : {"bf16", "f16"})
    all.push_back(as(element, unary("softmax", "tensor<?x2048xf32>", "{axis = 1 : i64}"), 0x1p-7));
  all.push_back(unary("argmax", "tensor<?x10000xf32>", "{axis = 1 : i64}", "tensor<?xi32>"));
  all.push_back(unary("reduce_max", "tensor<?x3x4000xf32>", "{axes = array<i64: 2>}", "tensor<?x3xf32>"));
  all.push_back(unary("sum", "tensor<3x50001xf32>", "{axes = array<i64: 0, 1>}", "tensor<f32>"));
  all.push_back(unary("sum", "tensor<1024x33xf64>", "{axes = array<i64: 0>}", "tensor<33xf64>"));
  all.push_back(unary("prod", "tensor<?x1500xf32>", "{axes = array<i64: 1>}", "tensor<?xf32>"));
  std::string x = "tensor<?x10000xf32>", row = "tensor<?xf32>", index = "tensor<?xi32>";
  all.push_back({{x, index},
                 "%a = sluice.softmax_cross_entropy %0, %1 : (" + x + ", " + index + ") -> " + row,
                 "%a : " + row,
                 1e-5,
                 0,
                 12});
  // The gradient of one: what is folded, and what is not.
  all.push_back({{x, x},
                 "%a = sluice.softmax %0 {axis = 1 : i64} : (" + x + ") -> " + x + "\n%b = sluice.sub %a, %1 : (" + x +
                     ", " + x + ") -> " + x + "\n%c = sluice.mul %b, %0 : (" + x + ", " + x + ") -> " + x,
                 "%c : " + x});
  std::string few = "tensor<1024x10xf32>", classes = "tensor<1024xi32>", each = "tensor<1024xf32>";
  all.push_back({{few, classes},
                 "%a = sluice.softmax_cross_entropy %0, %1 : (" + few + ", " + classes + ") -> " + each +
                     "\n%b = sluice.mean %a {axes = array<i64: 0>} : (" + each + ") -> tensor<f32>",
                 "%b : tensor<f32>",
                 1e-5,
                 0,
                 9.99});
  all.push_back({{few, classes},
                 "%a = sluice.argmax %0 {axis = 1 : i64} : (" + few + ") -> " + classes +
                     "\n%b = sluice.compare %a, %1 {predicate = #sluice<predicate eq>} : (" + classes + ", " + classes +
                     ") -> tensor<1024xi1>\n%c = sluice.cast %b {to = f32} : (tensor<1024xi1>) -> " + each +
                     "\n%d = sluice.mean %c {axes = array<i64: 0>} : (" + each + ") -> tensor<f32>",
                 "%d : tensor<f32>",
                 1e-5,
                 0,
                 9.99});
  all.push_back(unary("softmax", few, "{axis = 1 : i64}"));
  return all;
}

/// The functions of a run whose tasks are blocks.
size_t blocksOf(const GridRun &run) {
  return llvm::count_if(run.kernel.functions, [](const GridFunction &function) { return function.threads > kWarp; });
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
  all.push_back(einsum("ab,cb->abc", "tensor<?x4xf32>", "tensor<3x4xf32>", "tensor<?x4x3xf32>")); // sums nothing
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
  all.push_back(unary("prod", "tensor<?x21xf32>", "{axes = array<i64: 1>}", "tensor<?xf32>"));
  for (const char *type : {"tensor<?x33xf32>", "tensor<?x33xf64>", "tensor<?x33xi32>", "tensor<?x33xi64>"})
    all.push_back({{},
                   std::string("%a = sluice.iota {start = 3.0 : f64, step = -2.0 : f64, axis = 1 : i64, type = ") +
                       type + "} : () -> " + type,
                   std::string("%a : ") + type,
                   0});
  for (Body &body : longRows())
    all.push_back(std::move(body));
  for (Body &body : normalised())
    all.push_back(std::move(body));
  for (Body &body : drawn())
    all.push_back(std::move(body));
  for (Body &body : indexed())
    all.push_back(std::move(body));
  for (Body &body : positioned())
    all.push_back(std::move(body));
  for (Body &body : halves())
    all.push_back(std::move(body));
  return all;
}

} // namespace

TEST(GridKernel, MatchesTheReference) {
  Grid grid(bodies());
  sluice::test::EmulatedLibrary library;
  library.compile(grid.kernels + grid.callers);
  size_t partial = 0, blocks = 0;
  for (auto [body, run] : llvm::zip_equal(grid.all, grid.runs)) {
    run.randomize(body.low, body.high);
    if (castsFloats(body))
      llvm::copy(std::initializer_list<double>{NAN, sluice_float_of_bits(0x7fffffff), INFINITY, -INFINITY, -0.0,
                                               1 + 0x1p-8, 1 + 0x3p-8, 1 + 0x1p-11, 1 + 0x3p-11, 65519, 65520, 0x1p-25,
                                               0x3p-25, 0x1p-134, 0x3p-134},
                 run.inputs[0].data.begin());
    partial += llvm::count_if(run.kernel.functions, [](const GridFunction &function) {
      return llvm::StringRef(function.name).contains("_partial_");
    });
    blocks += blocksOf(run);
    for (auto [rows, order] : {std::pair(7, "ascending"), {7, "descending"}, {3, "1"}, {1, "descending"}, {0, "2"}}) {
      Schedule schedule(order);
      run.run(library, rows);
      EXPECT_LE(run.error(), body.tolerance) << body.text << "\nwith " << rows << " rows, " << order << "\n"
                                             << run.kernel.text;
    }
  }
  EXPECT_GT(partial, 0u) << "nothing was cut into chunks";
  EXPECT_GE(blocks, 12u) << "long rows are not folded by blocks";
}

/// Whether elements go through shared memory, which they do in one function.
static bool isTransposed(const GridKernel &kernel) {
  return kernel.functions.size() == 1 && llvm::StringRef(kernel.functions.front().name).ends_with("_transpose");
}

// Dimensions of several squares, and of a part of one; rows among the contiguous dimensions of either side, and
// outside.
TEST(GridKernel, MovesSquaresThroughSharedMemory) {
  std::vector<Body> all = {
      unary("transpose", "tensor<?x70x33xf32>", "{permutation = array<i64: 0, 2, 1>}", "tensor<?x33x70xf32>"),
      unary("transpose", "tensor<?x17xf64>", "{permutation = array<i64: 1, 0>}", "tensor<17x?xf64>"),
      unary("transpose", "tensor<17x?xbf16>", "{permutation = array<i64: 1, 0>}", "tensor<?x17xbf16>"),
      unary("transpose", "tensor<16x3x?x20xf16>", "{permutation = array<i64: 3, 2, 1, 0>}", "tensor<20x?x3x16xf16>"),
      unary("transpose", "tensor<64x32xi1>", "{permutation = array<i64: 1, 0>}", "tensor<32x64xi1>"),
      unary("relayout", "tensor<?x20x6x19xf32, #nhwc>", "", "tensor<?x20x6x19xf32>"),
      {{"tensor<?x40x24xf32>"},
       "%a = sluice.slice %0 {start = array<i64: 0, 0, 3>, end = array<i64: ?, 40, 20>, step = "
       "array<i64: 1, 1, 1>} : (tensor<?x40x24xf32>) -> "
       "tensor<?x40x17xf32>\n%b = sluice.transpose %a {permutation = array<i64: 0, 2, 1>} : (tensor<?x40x17xf32>) -> "
       "tensor<?x17x40xf32>",
       "%b : tensor<?x17x40xf32>"}};
  Grid grid(all, {}, /*capacity=*/40);
  sluice::test::EmulatedLibrary library;
  library.compile(grid.kernels + grid.callers);
  for (auto [body, run] : llvm::zip_equal(grid.all, grid.runs)) {
    EXPECT_TRUE(isTransposed(run.kernel)) << body.text;
    EXPECT_TRUE(llvm::StringRef(run.kernel.text).contains("__shared__")) << body.text;
    run.randomize(body.low, body.high);
    for (int64_t rows : {40, 33, 32, 5, 0}) {
      run.run(library, rows);
      EXPECT_LE(run.error(), 0) << body.text << "\nwith " << rows << " rows\n" << run.kernel.text;
    }
  }
}

// Most of a square would be empty; contiguous elements stay contiguous; something is computed.
TEST(GridKernel, MovesNoSquaresThatWouldNotPay) {
  std::string permuted = "{permutation = array<i64: 0, 2, 1>}", x = "tensor<?x40x20xf32>", y = "tensor<?x20x40xf32>";
  for (const Body &body :
       {unary("transpose", "tensor<?x15x40xf32>", permuted, "tensor<?x40x15xf32>"),
        unary("transpose", "tensor<30x?x40xf32>", "{permutation = array<i64: 1, 0, 2>}", "tensor<?x30x40xf32>"),
        Body{{x},
             "%a = sluice.transpose %0 " + permuted + " : (" + x + ") -> " + y + "\n%b = sluice.exp %a : (" + y +
                 ") -> " + y,
             "%b : " + y}})
    EXPECT_FALSE(isTransposed(Grid({body}).runs.front().kernel)) << body.text;
}

// Readers with higher numbers than the writer's see what it wrote, if they have their turns behind it.
TEST(GridKernel, NeedsItsBarriers) {
  constexpr int kThreads = 64;
  std::string text = kPrelude, writes = "if (thread == 0) *held = element;\n", barrier = "  __syncthreads();\n";
  size_t place = text.find(writes + barrier);
  ASSERT_NE(place, std::string::npos);
  text.erase(place + writes.size(), barrier.size());
  sluice::test::EmulatedLibrary library;
  library.compile(text + R"(
extern "C" __global__ void k(int *to, int element) {
  __shared__ int held;
  to[threadIdx.x] = ofFirst((int)threadIdx.x, &held, (int)threadIdx.x + element);
}
extern "C" void call(int *to, int element) { cuda_emu::launch({1}, {64}, [=] { k(to, element); }); }
)");
  auto *call = reinterpret_cast<void (*)(int *, int)>(library.find("call"));
  int element = 0; // of the first thread
  for (auto [order, isRight] : {std::pair("ascending", true), {"descending", false}, {"7", false}}) {
    Schedule schedule(order);
    int found[kThreads];
    call(found, ++element);
    EXPECT_EQ(llvm::count(found, element) == kThreads, isRight) << order;
  }
}

// Compilers split packs of two bytes, and a single half is converted at a quarter of the rate.
TEST(GridKernel, ConvertsAndStoresHalvesTogether) {
  llvm::Expected<Nvrtc> nvrtc = sluice::test::loadPinnedNvrtc();
  if (!nvrtc)
    GTEST_SKIP() << llvm::toString(nvrtc.takeError());
  const std::regex storedAlone(R"(st\.global\S*\.[bu]16\b)"), convertedAlone(R"(cvt\.rn\.b?f16\.f32)"),
      convertedTogether(R"(cvt\.rn\.b?f16x2\.f32)");
  int chains = 0;
  for (const Body &body : halves()) {
    if (body.text.find("sluice.relu") == std::string::npos)
      continue;
    llvm::Expected<DeviceCode> code = nvrtc->compile(Grid({body}).kernels, "compute_80");
    ASSERT_TRUE(bool(code)) << llvm::toString(code.takeError());
    EXPECT_FALSE(std::regex_search(code->bytes, storedAlone)) << code->bytes;
    EXPECT_FALSE(std::regex_search(code->bytes, convertedAlone)) << code->bytes;
    EXPECT_TRUE(std::regex_search(code->bytes, convertedTogether)) << code->bytes;
    ++chains;
  }
  EXPECT_EQ(chains, 2) << "f16 and bf16";
}

// A thread has four neighbours of one row, whatever the length of rows, if none of them ends among these.
TEST(GridKernel, TakesNeighboursOfShortRowsTogether) {
  auto ofChannels = [](int64_t channels) {
    std::string x = fmt::format("tensor<?x{}x60x56xf32, #nhwc>", channels),
                of = fmt::format("tensor<{}xf32>", channels);
    return Body{{x, of},
                fmt::format("%a = sluice.expand %1 {{dims = array<i64: 1>, shape = array<i64: ?, {}, "
                            "60, 56>}} : ({}) -> {}\n%b = sluice.mul %0, %a : ({}, {}) -> {}",
                            channels, of, x, x, x, x),
                "%b : " + x,
                1e-7};
  };
  auto depthwise = [](int64_t channels) {
    std::string x = fmt::format("tensor<?x{}x60x56xf32, #nhwc>", channels),
                w = fmt::format(
                    "tensor<{}x1x3x3xf32, #sluice.at<layout = affine_map<(d0, d1, d2, d3) -> (d2, d3, d1, d0)>>>",
                    channels);
    return Body{
        {x, w},
        fmt::format(
            "%a = sluice.conv2d %0, %1 {{stride = array<i64: 1, 1>, padding = array<i64: 1, 1, 1, 1>, dilation = "
            "array<i64: 1, 1>, groups = {} : i64}} : ({}, {}) -> {}",
            channels, x, w, x),
        "%a : " + x,
        1e-5};
  };
  const Body cut{
      {"tensor<?x16x128xf32>"},
      "%a = sluice.slice %0 {start = array<i64: 0, 0, 0>, end = array<i64: ?, 16, 102>, step = "
      "array<i64: 1, 1, 1>} : (tensor<?x16x128xf32>) -> tensor<?x16x102xf32>\n"
      "%b = sluice.pad %a {low = array<i64: 0, 0, 0>, high = array<i64: 0, 0, 26>, interior = array<i64: 0, 0, "
      "0>} : (tensor<?x16x102xf32>) -> tensor<?x16x128xf32>",
      "%b : tensor<?x16x128xf32>",
      0};
  std::vector<Body> together = {ofChannels(24), as("bf16", ofChannels(24), 0x1p-8), depthwise(24),
                                as("bf16", depthwise(24), 0x1p-7)};
  std::vector<Body> apart = {cut, ofChannels(6)};
  std::vector<Body> all = together;
  llvm::append_range(all, apart);
  Grid grid(all);
  for (auto [number, run] : llvm::enumerate(grid.runs)) {
    bool loadsSingles = run.kernel.text.find(" *)b0)[") != std::string::npos;
    EXPECT_EQ(loadsSingles, number >= together.size()) << run.kernel.text;
  }
  sluice::test::EmulatedLibrary library;
  library.compile(grid.kernels + grid.callers);
  for (auto [body, run] : llvm::zip_equal(grid.all, grid.runs)) {
    run.randomize(body.low, body.high);
    for (int64_t rows : {7, 3}) {
      run.run(library, rows);
      EXPECT_LE(run.error(), body.tolerance) << body.text << run.kernel.text;
    }
  }
}

// The part lies where its position says, and nothing else is written.
TEST(GridKernel, StoresPartsWhereTheirPositionsSay) {
  Grid grid({computedPart("tensor<?x9x33xf32>")});
  sluice::test::EmulatedLibrary library;
  library.compile(grid.kernels + grid.callers);
  GridRun &run = grid.runs.front();
  run.randomize(1, 2);
  for (int64_t position : {0, 5, 8}) {
    run.inputs[2].data = {double(position)};
    run.run(library, kCapacity);
    ir::forEachIndex({kCapacity, 9, 33}, [&](llvm::ArrayRef<int64_t> index) {
      double computed = -run.inputs[0].at({index[0], index[2]}), found = run.output(0).at(index);
      EXPECT_EQ(index[1] == position, found == computed) << "at " << index[1] << " of " << position;
    });
  }
}

/// Sums over the rows of large rows, which are few: each row is cut into parts, whose sums lanes add.
std::vector<Body> sumsOfLargeRows() {
  return {unary("sum", "tensor<?x40x40x16xf32>", "{axes = array<i64: 0, 1, 2>}", "tensor<16xf32>"),
          unary("sum", "tensor<?x48x36x36xf32, #nhwc>", "{axes = array<i64: 0, 2, 3>}", "tensor<48xf32>"),
          unary("mean", "tensor<?x197x400xf32>", "{axes = array<i64: 0, 1>}", "tensor<400xf32>"),
          as("bf16", unary("reduce_max", "tensor<?x40x40x16xf32>", "{axes = array<i64: 0, 1, 2>}", "tensor<16xf32>"),
             0x1p-8)};
}

TEST(GridKernel, CutsLargeRows) {
  for (int64_t capacity : {int64_t(1), kCapacity}) {
    Grid grid(sumsOfLargeRows(), {}, capacity);
    sluice::test::EmulatedLibrary library;
    library.compile(grid.kernels + grid.callers);
    for (auto [body, run] : llvm::zip_equal(grid.all, grid.runs)) {
      SCOPED_TRACE(body.text);
      const GridFunction &first = run.kernel.functions.front();
      EXPECT_EQ(llvm::StringRef(first.name).contains("_partial_"), capacity > 1);
      EXPECT_TRUE(capacity == 1 || (first.rowsPerTask == 1 && first.tasks > 1)) << "rows are whole";
      run.randomize(body.low, body.high);
      for (int64_t rows : {kCapacity, int64_t(3), int64_t(1), int64_t(0)}) {
        if (rows > capacity)
          continue;
        run.run(library, rows);
        EXPECT_LE(run.error(), 1e-4) << rows << " rows\n" << run.kernel.text;
      }
    }
  }
}

// A chunk of rows of which the last call has few: no row after them is read, which would be beyond the buffer.
TEST(GridKernel, SumsReadNoRowBehindTheLast) {
  for (int64_t capacity : {17, 23, 31}) {
    Grid grid({unary("sum", "tensor<?x4032xf32>", "{axes = array<i64: 0>}", "tensor<4032xf32>"),
               unary("sum", "tensor<?x4x1008xf32>", "{axes = array<i64: 0, 1>}", "tensor<1008xf32>")},
              {}, capacity);
    sluice::test::EmulatedLibrary library;
    library.compile(grid.kernels + grid.callers);
    for (GridRun &run : grid.runs) {
      EXPECT_GT(run.kernel.functions.size(), 1u) << run.kernel.text;
      run.randomize(-2, 2);
      for (int64_t rows : {capacity, int64_t(8), int64_t(1), int64_t(0)}) {
        run.run(library, rows);
        EXPECT_LE(run.error(), 1e-4) << rows << " of " << capacity << " rows\n" << run.kernel.text;
      }
    }
  }
}

// Each row is made of itself alone, in one order.
TEST(GridKernel, LongRowsDoNotDependOnOthers) {
  std::string x = "tensor<?x3001xf32>";
  Grid grid({unary("softmax", x, "{axis = 1 : i64}"), unary("log_softmax", x, "{axis = 1 : i64}"),
             unary("sum", x, "{axes = array<i64: 1>}", "tensor<?xf32>")});
  sluice::test::EmulatedLibrary library;
  library.compile(grid.kernels + grid.callers);
  for (GridRun &run : grid.runs) {
    EXPECT_EQ(blocksOf(run), 1u) << run.kernel.text;
    run.randomize(-2, 2);
    run.run(library, kCapacity);
    ir::HostTensor all = run.output(0);
    run.run(library, 2);
    ir::HostTensor few = run.output(0);
    ASSERT_LT(few.size(), all.size());
    EXPECT_TRUE(std::equal(few.data.begin(), few.data.end(), all.data.begin()));
  }
}

// Lane i has the elements i, i + lanes, ...; four lanes of each of 512 threads come together first, then the threads.
TEST(GridKernel, LongRowsAreAddedInOneOrder) {
  constexpr size_t kSize = 10000, kThreads = 512, kOfThread = 4, kLanes = kThreads * kOfThread;
  Grid grid({unary("sum", "tensor<?x10000xf32>", "{axes = array<i64: 1>}", "tensor<?xf32>")});
  sluice::test::EmulatedLibrary library;
  library.compile(grid.kernels + grid.callers);
  GridRun &run = grid.runs[0];
  ASSERT_EQ(run.kernel.functions[0].threads, int64_t(kThreads));
  run.randomize(-2, 2);
  run.run(library, 2);
  for (size_t row = 0; row < 2; ++row) {
    std::vector<float> lanes(kLanes, 0);
    for (size_t i = 0; i < kSize; ++i)
      lanes[i % kLanes] += float(run.inputs[0].data[row * kSize + i]);
    for (size_t thread = 0; thread < kThreads; ++thread) {
      float *own = &lanes[thread * kOfThread];
      own[0] = (own[0] + own[2]) + (own[1] + own[3]);
    }
    for (size_t half = kThreads / 2; half > 0; half /= 2)
      for (size_t thread = 0; thread < half; ++thread)
        lanes[thread * kOfThread] += lanes[(thread + half) * kOfThread];
    EXPECT_EQ(float(run.output(0).data[row]), lanes[0]);
  }
}

// Each chunk of 64 terms is summed separately, then the chunks.
TEST(GridKernel, RowsAtIndicesAreAddedInOneOrder) {
  constexpr int64_t kTerms = 700, kPlaces = 5, kColumns = 36, kChunk = 64;
  std::string x = "tensor<?x100x36xf32>", index = "tensor<?x100xi32>", y = "tensor<5x36xf32>";
  Grid grid({{{x, index},
              "%a = sluice.scatter_add %0, %1 {axis = 0 : i64, size = 5 : i64} : (" + x + ", " + index + ") -> " + y,
              "%a : " + y}});
  sluice::test::EmulatedLibrary library;
  library.compile(grid.kernels + grid.callers);
  GridRun &run = grid.runs[0];
  ASSERT_EQ(run.kernel.functions.size(), 3u) << run.kernel.text;
  run.randomize(-2, 2);
  for (size_t term = 0; term < size_t(kTerms); ++term)
    run.inputs[1].data[term] = double(term * term % 7 % kPlaces);
  for (int64_t rows : {7, 3}) {
    run.run(library, rows);
    for (int64_t place = 0; place < kPlaces; ++place)
      for (int64_t column = 0; column < kColumns; ++column) {
        float sum = 0;
        for (int64_t chunk = 0; chunk < rows * 100; chunk += kChunk) {
          float part = 0;
          for (int64_t term = chunk; term < std::min(chunk + kChunk, rows * 100); ++term)
            if (run.inputs[1].data[size_t(term)] == double(place))
              part += float(run.inputs[0].data[size_t(term * kColumns + column)]);
          sum += part;
        }
        EXPECT_EQ(float(run.output(0).at({place, column})), sum) << place << ", " << column << " of " << rows;
      }
  }
}

// Only the task that has all of a row folds it.
TEST(GridKernel, LongRowsAreFoldedOnce) {
  Grid grid({unary("softmax", "tensor<?x10000xf32>", "{axis = 1 : i64}"),
             unary("softmax", "tensor<?x700xf32>", "{axis = 1 : i64}")});
  for (const GridRun &run : grid.runs) {
    ASSERT_EQ(run.kernel.functions.size(), 1u);
    EXPECT_EQ(run.kernel.functions[0].tasks, 1);
    EXPECT_EQ(run.kernel.functions[0].rowsPerTask, 1);
  }
}

TEST(GridKernel, LongRowsOfTiesAndNoNumbers) {
  constexpr int64_t kSize = 1500;
  std::string x = "tensor<?x1500xf32>";
  Grid grid({unary("argmax", x, "{axis = 1 : i64}", "tensor<?xi32>"), unary("softmax", x, "{axis = 1 : i64}"),
             unary("log_softmax", x, "{axis = 1 : i64}"),
             unary("reduce_max", x, "{axes = array<i64: 1>}", "tensor<?xf32>")});
  sluice::test::EmulatedLibrary library;
  library.compile(grid.kernels + grid.callers);
  for (GridRun &run : grid.runs) {
    EXPECT_EQ(blocksOf(run), 1u) << run.kernel.text;
    run.randomize(-2, 2);
    auto row = [&](int64_t number) { return llvm::MutableArrayRef(run.inputs[0].data).slice(number * kSize, kSize); };
    for (int64_t place : {1499, 700, 513, 37})
      row(0)[place] = 5;
    std::ranges::fill(row(1), -INFINITY);
    row(2)[900] = NAN;
    row(3)[1400] = INFINITY;
    std::ranges::fill(row(4), 1.5);
    std::ranges::fill(row(5), -INFINITY);
    row(5)[1498] = row(5)[1010] = -3;
    row(6)[1499] = 7;
    run.run(library, kCapacity);
    EXPECT_LE(run.error(), 1e-5) << run.kernel.text;
  }
}

TEST(GridKernel, CompilesForDevices) {
  llvm::Expected<Nvrtc> nvrtc = sluice::test::loadPinnedNvrtc();
  if (!nvrtc)
    GTEST_SKIP() << llvm::toString(nvrtc.takeError());
  Grid grid(bodies());
  llvm::Expected<DeviceCode> code = nvrtc->compile(grid.kernels, "sm_90");
  ASSERT_TRUE(bool(code)) << llvm::toString(code.takeError());
  EXPECT_EQ(code->kernels.size(), grid.functions());
  for (const KernelResources &kernel : code->kernels)
    EXPECT_EQ(kernel.spillStores + kernel.spillLoads, 0) << kernel.name;
}

} // namespace sluice::cuda::test
