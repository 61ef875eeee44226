// Rows that threads load once: softmax, norms and losses, by their values, their order of sums and the loads of their machine
// code.
#include "backends/cuda/compiler/emit/KeptLoads.h"
#include "tests/backends/cuda/GridRun.h"
#include "tests/cuda_emu/PinnedNvrtc.h"
#include <cmath>
#include <fmt/format.h>
#include <regex>

namespace sluice::cuda::test {

namespace {

constexpr double kUlpOfBF16 = 0x1p-7;

/// The same in f32, with a tolerance for values below 1, and in bf16.
std::vector<Body> inBoth(Body body, double tolerance) {
  body.tolerance = tolerance;
  return {body, as("bf16", body, kUlpOfBF16)};
}

std::vector<Body> softmax(const std::string &op, int64_t size) {
  return inBoth(unary(op, fmt::format("tensor<?x{}xf32>", size), "{axis = 1 : i64}"), op == "softmax" ? 2e-7 : 2e-6);
}

std::vector<Body> norm(int64_t size, bool isGradient) {
  std::string x = fmt::format("tensor<?x{}xf32>", size), vector = fmt::format("tensor<{}xf32>", size),
              last = isGradient ? x : vector;
  return inBoth({{x, vector, last},
                 fmt::format("%a = sluice.normalize{} %0, %1, %2 {{axis = 1 : i64, dims = array<i64: 1>, eps = 1.0e-2 "
                             ": f64}} : ({}, {}, {}) -> {}",
                             isGradient ? "_grad" : "", x, vector, last, x),
                 "%a : " + x},
                1e-5);
}

Body loss(int64_t size) {
  std::string x = fmt::format("tensor<?x{}xf32>", size);
  return {{x, "tensor<?xi32>"},
          "%a = sluice.softmax_cross_entropy %0, %1 : (" + x + ", tensor<?xi32>) -> tensor<?xf32>",
          "%a : tensor<?xf32>",
          2e-6,
          0,
          double(size) - 0.01};
}

/// Of rows of so many elements.
std::vector<Body> rowsOf(int64_t size) {
  std::vector<Body> all = {loss(size)};
  for (std::vector<Body> both :
       {softmax("softmax", size), softmax("log_softmax", size), norm(size, false), norm(size, true)})
    llvm::append_range(all, both);
  return all;
}

/// The elements of `x` from `from` to `to`, as `name`.
std::string sliced(const std::string &name, int64_t from, int64_t to) {
  return fmt::format("{0} = sluice.slice %0 {{start = array<i64: 0, {1}>, end = array<i64: ?, {2}>, "
                     "step = array<i64: 1, 1>}} : (tensor<?x1000xf32>) -> tensor<?x{3}xf32>\n",
                     name, from, to, to - from);
}

/// Sums over a part of a row, and the softmax of another: loops with other starts, fewer trips, or fewer trailing
/// lanes.
Body parts(int64_t from, int64_t to, int64_t otherFrom, int64_t otherTo) {
  auto type = [](int64_t size) { return fmt::format("tensor<?x{}xf32>", size); };
  int64_t size = otherTo - otherFrom;
  std::string column = "tensor<?x1xf32>", other = type(size);
  return {{"tensor<?x1000xf32>"},
          sliced("%p", from, to) + sliced("%q", otherFrom, otherTo) +
              fmt::format("%s = sluice.sum %p {{axes = array<i64: 1>}} : ({}) -> tensor<?xf32>\n"
                          "%e = sluice.expand %s {{dims = array<i64: 0>, shape = array<i64: ?, {}>}} "
                          ": (tensor<?xf32>) -> {}\n",
                          type(to - from), size, other) +
              fmt::format("%m = sluice.softmax %q {{axis = 1 : i64}} : ({0}) -> {0}\n"
                          "%a = sluice.add %m, %e : ({0}, {0}) -> {0}",
                          other),
          "%a : " + other};
}

/// Rows of elements that lie where data says, and rows with padding around them.
std::vector<Body> indirect() {
  std::string y = "tensor<?x70xf32>", then = "\n%a = sluice.softmax %g {axis = 1 : i64} : (" + y + ") -> " + y;
  return {{{"tensor<?x40xf32>", "tensor<70xi32>"},
           "%g = sluice.gather %0, %1 {axis = 1 : i64} : (tensor<?x40xf32>, tensor<70xi32>) -> " + y + then,
           "%a : " + y,
           2e-7,
           -2,
           42},
          {{"tensor<?x60xf32>"},
           "%g = sluice.pad %0 {low = array<i64: 0, 3>, high = array<i64: 0, 7>, interior = array<i64: 0, 0>} : "
           "(tensor<?x60xf32>) -> " +
               y + then,
           "%a : " + y,
           2e-7}};
}

/// Whether loops over a row read what is kept, more than what is behind their last trip.
bool keeps(const GridRun &run) { return llvm::StringRef(run.kernel.text).contains("_Pragma(\"unroll\") for (Index"); }

/// What a thread loads from global memory, in bytes, if its PTX has no loops and no memory of its own.
int64_t bytesLoadedOnce(const std::string &ptx) {
  const std::regex load(R"(ld\.global(?:\.nc)?(?:\.v(\d))?\.[bfus](\d+))"), branch(R"(bra(?:\.uni)?\s+(\$\w+);)");
  EXPECT_EQ(ptx.find("__local_depot"), std::string::npos) << ptx;
  for (std::sregex_iterator at(ptx.begin(), ptx.end(), branch), none; at != none; ++at)
    EXPECT_GT(ptx.find("\n" + (*at)[1].str() + ":"), size_t(at->position())) << "a loop\n" << ptx;
  int64_t bytes = 0;
  for (std::sregex_iterator at(ptx.begin(), ptx.end(), load), none; at != none; ++at)
    bytes += ((*at)[1].matched ? std::stoi((*at)[1]) : 1) * std::stoi((*at)[2]) / 8;
  return bytes;
}

} // namespace

TEST(KeptLoads, MatchTheReference) {
  std::vector<Body> all;
  for (int64_t size : {1, 32, 77, 768, 1000, 2048, 4100, 40000})
    llvm::append_range(all, rowsOf(size));
  Grid grid(all);
  sluice::test::EmulatedLibrary library;
  library.compile(grid.kernels + grid.callers);
  for (auto [body, run] : llvm::zip_equal(grid.all, grid.runs)) {
    SCOPED_TRACE(body.text);
    EXPECT_EQ(keeps(run), body.text.find("?x1x") == std::string::npos && body.text.find("x40000x") == std::string::npos)
        << run.kernel.text;
    run.randomize(body.low, body.high);
    for (int64_t rows : {kCapacity, int64_t(3), int64_t(0)}) {
      run.run(library, rows);
      EXPECT_LE(run.error(), body.tolerance) << rows << " rows\n" << run.kernel.text;
    }
  }
}

TEST(KeptLoads, AreOfTheSameElements) {
  std::vector<Body> all = {parts(0, 96, 4, 100), parts(0, 64, 0, 96), parts(0, 96, 0, 64), parts(0, 996, 0, 1000),
                           parts(0, 1000, 0, 996)};
  llvm::append_range(all, indirect());
  Grid grid(all);
  sluice::test::EmulatedLibrary library;
  library.compile(grid.kernels + grid.callers);
  for (auto [body, run] : llvm::zip_equal(grid.all, grid.runs)) {
    run.randomize(body.low, body.high);
    run.run(library, kCapacity);
    EXPECT_LE(run.error(), body.tolerance) << body.text << run.kernel.text;
  }
}

// A task of several rows keeps one at a time.
TEST(KeptLoads, AreOfTheirRow) {
  constexpr int64_t kRows = 8192;
  Grid grid({unary("softmax", "tensor<?x40xf32>", "{axis = 1 : i64}")}, {}, kRows);
  GridRun &run = grid.runs.front();
  EXPECT_GT(run.kernel.functions.front().rowsPerTask, 1);
  EXPECT_TRUE(keeps(run)) << run.kernel.text;
  sluice::test::EmulatedLibrary library;
  library.compile(grid.kernels + grid.callers);
  run.randomize(-2, 2);
  run.run(library, 99);
  EXPECT_LE(run.error(), 2e-7) << run.kernel.text;
}

// Lane i has the elements i, i + 32, ...; then the lanes come together.
TEST(KeptLoads, AreAddedInOneOrder) {
  constexpr size_t kSize = 1000, kLanes = 32, kRows = 4096; // of which none is cut
  std::string x = "tensor<?x1000xf32>";
  Grid grid({{{x},
              "%s = sluice.sum %0 {axes = array<i64: 1>} : (" + x +
                  ") -> tensor<?xf32>\n%e = sluice.expand %s {dims = array<i64: 0>, shape = array<i64: "
                  "?, 1000>} : (tensor<?xf32>) -> " +
                  x + "\n%a = sluice.sub %0, %e : (" + x + ", " + x + ") -> " + x,
              "%a : " + x}},
            {}, kRows);
  GridRun &run = grid.runs.front();
  ASSERT_TRUE(keeps(run)) << run.kernel.text;
  sluice::test::EmulatedLibrary library;
  library.compile(grid.kernels + grid.callers);
  run.randomize(-2, 2);
  run.run(library, 2);
  for (size_t row = 0; row < 2; ++row) {
    const double *own = &run.inputs[0].data[row * kSize];
    float lanes[kLanes] = {};
    for (size_t i = 0; i < kSize; ++i)
      lanes[i % kLanes] += float(own[i]);
    for (size_t half = kLanes / 2; half > 0; half /= 2)
      for (size_t lane = 0; lane < half; ++lane)
        lanes[lane] += lanes[lane + half];
    for (size_t i = 0; i < kSize; ++i)
      ASSERT_EQ(float(run.output(0).data[row * kSize + i]), float(own[i]) - lanes[0]) << i << " of " << row;
  }
}

// Each element once, whatever is folded: by a warp one by one, by a block several together.
TEST(KeptLoads, AreMadeOnce) {
  llvm::Expected<Nvrtc> nvrtc = sluice::test::loadPinnedNvrtc();
  if (!nvrtc)
    GTEST_SKIP() << llvm::toString(nvrtc.takeError());
  for (auto [size, capacity] : {std::pair(77, 2048), {640, 4096}, {4096, 512}})
    for (const Body &body : rowsOf(size)) {
      SCOPED_TRACE(body.text);
      Grid grid({body}, {}, capacity); // no row is cut
      ASSERT_EQ(grid.functions(), 1u);
      llvm::Expected<DeviceCode> code = nvrtc->compile(grid.kernels, "compute_90");
      ASSERT_TRUE(bool(code)) << llvm::toString(code.takeError());
      int64_t threads = grid.runs.front().kernel.functions.front().threads, bytes = 0;
      for (const std::string &operand : body.operands) {
        bool isOfRow = operand != "tensor<?xi32>";
        int64_t elements = isOfRow ? (size + threads - 1) / threads : 1;
        bytes += elements * (operand.find("bf16") == std::string::npos ? 4 : 2);
      }
      EXPECT_EQ(bytesLoadedOnce(code->bytes), bytes) << grid.runs.front().kernel.text;
    }
}

static LoopLoads loads(const std::vector<LoopLoads::Load> &all) {
  LoopLoads loads;
  for (const LoopLoads::Load &load : all)
    loads.add(load);
  for (unsigned loop : {0, 1, 2, 3})
    loads.addLoop(loop, 100);
  return loads;
}

TEST(KeptLoads, AreThoseOfSeveralLoops) {
  LoopLoads some = loads({{"x", 1, 0, 24}, {"y", 1, 1, 24}, {"x", 2, 0, 24}, {"", 2, 0, 24}, {"y", 1, 1, 24}});
  EXPECT_EQ(some.chosen(), (KeptLoads{0, {}, 0, {}, {}}));
}

TEST(KeptLoads, AreNotOfWhatIsStored) {
  LoopLoads some = loads({{"x", 1, 0, 24}, {"y", 1, 1, 24}, {"x", 2, 0, 24}, {"y", 2, 1, 24}});
  some.addStore(0);
  EXPECT_EQ(some.chosen(), (KeptLoads{{}, 0, {}, 0}));
}

// The loads that most loops share come first.
TEST(KeptLoads, FitIntoRegisters) {
  LoopLoads some = loads({{"x", 1, 0, 60}, {"y", 1, 1, 60}, {"x", 2, 0, 60}, {"y", 2, 1, 60}, {"y", 3, 1, 60}});
  EXPECT_EQ(some.chosen(), (KeptLoads{{}, 0, {}, 0, 0}));
}

// A loop with much text is not unrolled: it repeats its loads.
TEST(KeptLoads, AreNotOfLargeLoops) {
  LoopLoads some = loads({{"x", 1, 0, 24}, {"x", 2, 0, 24}, {"x", 3, 0, 24}});
  some.addLoop(3, 1e6);
  EXPECT_EQ(some.chosen(), (KeptLoads{0, 0, {}}));
}

} // namespace sluice::cuda::test
