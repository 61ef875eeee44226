// Matrix products against plain loops in double precision, for every layout, tail and cut of the tasks.
#include "backends/cpu/compiler/product/matmul/MatmulPlan.h"
#include "contraction_runner.h"

#include "backends/cpu/compiler/machine/VectorAccess.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <string>

namespace sluice::cpu::testing {
namespace {

using Layout = Matmul::Layout;
using Rows = Matmul::Rows;

struct Case {
  const char *name;
  int64_t m, n, k;
  Rows rows = Rows::None;
  int64_t call = 0;   // rows of the call
  int64_t factor = 1; // rowsFactor
  bool transposeA = false;
  Layout b = Layout::Strided;
  bool transposeB = false;
  bool panelC = false;
  int64_t batch = 1;
  int64_t l2 = 0; // of the target; 0: its own
};

void PrintTo(const Case &c, std::ostream *os) { *os << c.name; }

class MatmulTest : public ::testing::TestWithParam<Case> {};

// The position of element (i, j) of matrix z.
struct Storage {
  Matmul::Matrix matrix;
  int64_t rows, columns, elements;

  static Storage strided(int64_t buffer, int64_t rows, int64_t columns, bool transposed) {
    Storage s{{}, rows, columns, rows * columns};
    s.matrix.place.buffer = buffer;
    s.matrix.strideI = transposed ? 1 : columns;
    s.matrix.strideJ = transposed ? rows : 1;
    s.matrix.batchStrides = {s.elements};
    return s;
  }
  static Storage panels(int64_t buffer, int64_t rows, int64_t columns, Layout layout, int64_t bits,
                        const Target &target) {
    int64_t cut = layout == Layout::Panels ? columns : rows, whole = layout == Layout::Panels ? rows : columns;
    Storage s{{}, rows, columns, 0};
    s.matrix.place.buffer = buffer;
    s.matrix.layout = layout;
    s.matrix.panel = panelWidth(cut, bits, target);
    s.elements = (cut + s.matrix.panel - 1) / s.matrix.panel * s.matrix.panel * whole;
    s.matrix.batchStrides = {s.elements};
    return s;
  }
  int64_t at(int64_t z, int64_t i, int64_t j) const {
    int64_t p = matrix.panel, base = z * elements;
    if (matrix.layout == Layout::Panels)
      return base + j / p * p * rows + i * p + j % p;
    if (matrix.layout == Layout::PanelsT)
      return base + i / p * p * columns + j * p + i % p;
    return base + i * matrix.strideI + j * matrix.strideJ;
  }
};

template <typename T> Array<T> fill(const Storage &storage, int64_t batch, unsigned seed) {
  Array<T> random = randomArray<T>(storage.elements * batch, seed);
  Array<T> array(storage.elements * batch, T(0));
  for (int64_t z = 0; z < batch; ++z)
    for (int64_t i = 0; i < storage.rows; ++i)
      for (int64_t j = 0; j < storage.columns; ++j)
        array[storage.at(z, i, j)] = random[storage.at(z, i, j)];
  return array;
}

template <typename T> void check(const Case &c, const Target &target) {
  int64_t bits = sizeof(T) * 8;
  Storage a = Storage::strided(0, c.m, c.k, c.transposeA);
  Storage b = c.b == Layout::Strided ? Storage::strided(1, c.k, c.n, c.transposeB)
                                     : Storage::panels(1, c.k, c.n, c.b, bits, target);
  Storage out =
      c.panelC ? Storage::panels(2, c.m, c.n, Layout::Panels, bits, target) : Storage::strided(2, c.m, c.n, false);
  Program program(
      [&](mlir::ModuleOp module, mlir::Location loc, mlir::Type f32, mlir::Type f64) {
        Matmul matmul;
        matmul.element = sizeof(T) == 4 ? f32 : f64;
        if (c.batch > 1 || c.rows == Rows::Batch)
          matmul.batch = {c.batch};
        matmul.m = c.m, matmul.n = c.n, matmul.k = c.k;
        matmul.rows = c.rows, matmul.rowsFactor = c.factor;
        matmul.a = a.matrix, matmul.b = b.matrix, matmul.c = out.matrix;
        matmul.workspace = {3, 0};
        return emitMatmul(module, "product", loc, matmul, target);
      },
      target);

  Array<T> aData = fill<T>(a, c.batch, 1), bData = fill<T>(b, c.batch, 2);
  auto extent = [&](Rows dimension, int64_t size) { return c.rows == dimension ? c.call * c.factor : size; };
  int64_t m = extent(Rows::M, c.m), k = extent(Rows::K, c.k), batch = extent(Rows::Batch, c.batch);
  std::vector<T> expected;
  for (int64_t z = 0; z < batch; ++z)
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < c.n; ++j) {
        double sum = 0;
        for (int64_t l = 0; l < k; ++l)
          sum += static_cast<double>(aData[a.at(z, i, l)]) * static_cast<double>(bData[b.at(z, l, j)]);
        expected.push_back(static_cast<T>(sum));
      }

  std::vector<T> first;
  for (Order order : {Order::AllAtOnce, Order::OneByOne, Order::Backwards}) {
    Array<T> cData(out.elements * c.batch, T(777));
    Array<T> workspace(program.contraction.workspaceBytes / sizeof(T) + 1, T(std::nan("")));
    program.run({aData.data(), bData.data(), cData.data(), workspace.data()}, c.call, order);
    std::vector<T> all(cData.data(), cData.data() + cData.size());
    if (first.empty())
      first = all;
    ASSERT_EQ(std::memcmp(first.data(), all.data(), all.size() * sizeof(T)), 0)
        << "the order of tasks changed the bits";
    size_t next = 0;
    size_t written = 0;
    double tolerance = (sizeof(T) == 4 ? 1e-6 : 1e-14) * std::sqrt(static_cast<double>(k) + 1) * 4;
    for (int64_t z = 0; z < batch; ++z)
      for (int64_t i = 0; i < m; ++i)
        for (int64_t j = 0; j < c.n; ++j, ++next)
          ASSERT_NEAR(cData[out.at(z, i, j)], expected[next], tolerance)
              << "at " << z << "," << i << "," << j << " with vectors of " << target.vectorBits;
    for (size_t i = 0; i < cData.size(); ++i)
      written += cData[i] != T(777);
    ASSERT_EQ(written, expected.size()) << "something else was written too";
  }
}

TEST_P(MatmulTest, AgreesWithPlainLoops) {
  std::vector<Target> targets = testTargets();
  if (GetParam().l2)
    for (Target &target : targets)
      target.l2 = GetParam().l2;
  for (size_t number = 0; number < 2 * targets.size(); ++number)
    if (isSampled(number, 2 * targets.size(), GetParam().name))
      (number % 2 ? check<double> : check<float>)(GetParam(), targets[number / 2]);
}

const Case cases[] = {
    {.name = "one", .m = 1, .n = 1, .k = 1},
    {.name = "square", .m = 64, .n = 64, .k = 64},
    {.name = "odd", .m = 37, .n = 53, .k = 29},
    {.name = "narrow", .m = 256, .n = 10, .k = 128},
    {.name = "row_vector", .m = 1, .n = 300, .k = 70},
    {.name = "column_vector", .m = 300, .n = 1, .k = 70},
    {.name = "transposed_a", .m = 45, .n = 70, .k = 33, .transposeA = true},
    {.name = "transposed_b", .m = 45, .n = 70, .k = 33, .transposeB = true},
    {.name = "transposed_both", .m = 45, .n = 71, .k = 64, .transposeA = true, .transposeB = true},
    {.name = "panels", .m = 50, .n = 150, .k = 40, .b = Layout::Panels},
    {.name = "panels_of_one_row", .m = 1, .n = 150, .k = 40, .b = Layout::Panels, .batch = 2},
    {.name = "packed_for_one_row", .m = 1, .n = 150, .k = 40, .transposeB = true, .batch = 2},
    {.name = "panels_narrow", .m = 50, .n = 20, .k = 40, .b = Layout::Panels},
    {.name = "panels_transposed", .m = 50, .n = 150, .k = 70, .b = Layout::PanelsT},
    {.name = "panels_transposed_10", .m = 50, .n = 128, .k = 10, .b = Layout::PanelsT},
    {.name = "packed_rows", .m = 200, .n = 260, .k = 100},
    {.name = "long_sums", .m = 20, .n = 50, .k = 1500, .b = Layout::Panels},
    {.name = "rows_m", .m = 64, .n = 50, .k = 40, .rows = Rows::M, .call = 64, .b = Layout::Panels},
    {.name = "rows_m_short", .m = 64, .n = 50, .k = 40, .rows = Rows::M, .call = 17, .b = Layout::Panels},
    {.name = "rows_m_one", .m = 64, .n = 130, .k = 40, .rows = Rows::M, .call = 1, .b = Layout::Panels},
    {.name = "rows_m_none", .m = 64, .n = 130, .k = 40, .rows = Rows::M, .call = 0, .b = Layout::Panels},
    {.name = "rows_m_factor", .m = 16 * 9, .n = 50, .k = 40, .rows = Rows::M, .call = 13, .factor = 9},
    {.name = "rows_m_linear_dx", .m = 64, .n = 800, .k = 128, .rows = Rows::M, .call = 61, .b = Layout::PanelsT},
    {.name = "rows_k", .m = 80, .n = 128, .k = 64, .rows = Rows::K, .call = 64, .transposeA = true, .panelC = true},
    {.name = "rows_k_short",
     .m = 81,
     .n = 50,
     .k = 64,
     .rows = Rows::K,
     .call = 19,
     .transposeA = true,
     .panelC = true},
    {.name = "rows_k_none", .m = 8, .n = 50, .k = 64, .rows = Rows::K, .call = 0, .transposeA = true, .panelC = true},
    {.name = "rows_k_split",
     .m = 20,
     .n = 10,
     .k = 8192,
     .rows = Rows::K,
     .call = 8000,
     .transposeA = true,
     .panelC = true},
    {.name = "rows_k_split_factor",
     .m = 20,
     .n = 70,
     .k = 9 * 900,
     .rows = Rows::K,
     .call = 801,
     .factor = 9,
     .transposeA = true},
    {.name = "rows_k_parts",
     .m = 41,
     .n = 150,
     .k = 3 * 190,
     .rows = Rows::K,
     .call = 180,
     .factor = 3,
     .transposeA = true,
     .panelC = true},
    {.name = "rows_k_parts_none",
     .m = 41,
     .n = 150,
     .k = 520,
     .rows = Rows::K,
     .call = 0,
     .transposeA = true,
     .panelC = true},
    {.name = "parts", .m = 40, .n = 21, .k = 600, .transposeA = true, .batch = 2},
    {.name = "parts_panels", .m = 35, .n = 70, .k = 520, .transposeA = true, .b = Layout::Panels},
    {.name = "parts_packed", .m = 35, .n = 70, .k = 530, .transposeA = true, .transposeB = true},
    {.name = "rows_batch_parts",
     .m = 40,
     .n = 30,
     .k = 600,
     .rows = Rows::Batch,
     .call = 2,
     .transposeA = true,
     .batch = 3},
    {.name = "long_panels", .m = 70, .n = 150, .k = 5000, .b = Layout::Panels},
    {.name = "long_panels_rows", .m = 64, .n = 130, .k = 4300, .rows = Rows::M, .call = 37, .b = Layout::Panels},
    {.name = "long_panels_one_row", .m = 64, .n = 50, .k = 4300, .rows = Rows::M, .call = 1, .b = Layout::Panels},
    {.name = "long_panels_none", .m = 64, .n = 50, .k = 4300, .rows = Rows::M, .call = 0, .b = Layout::Panels},
    {.name = "long_panels_large_factor",
     .m = 2 * 401,
     .n = 30,
     .k = 4300,
     .rows = Rows::M,
     .call = 2,
     .factor = 401,
     .b = Layout::Panels},
    {.name = "row_in_blocks", .m = 401, .n = 120, .k = 64, .rows = Rows::M, .call = 1, .factor = 401},
    {.name = "row_in_whole_blocks",
     .m = 392,
     .n = 64,
     .k = 96,
     .rows = Rows::M,
     .call = 1,
     .factor = 392,
     .b = Layout::Panels},
    {.name = "rows_in_blocks",
     .m = 3 * 150,
     .n = 90,
     .k = 70,
     .rows = Rows::M,
     .call = 2,
     .factor = 150,
     .b = Layout::Panels},
    {.name = "long_row_in_blocks",
     .m = 201,
     .n = 50,
     .k = 4300,
     .rows = Rows::M,
     .call = 1,
     .factor = 201,
     .b = Layout::Panels},
    // Some of the last tiles have a row less, so that no tile of one row remains.
    {.name = "short_tiles", .m = 67, .n = 32, .k = 70, .b = Layout::Panels},
    {.name = "short_tiles_rows",
     .m = 3 * 49,
     .n = 40,
     .k = 70,
     .rows = Rows::M,
     .call = 2,
     .factor = 49,
     .b = Layout::Panels},
    {.name = "short_tiles_in_parts",
     .m = 3 * 57,
     .n = 50,
     .k = 8300,
     .rows = Rows::M,
     .call = 2,
     .factor = 57,
     .b = Layout::Panels,
     .l2 = 1 << 20},
    {.name = "long_panels_batch",
     .m = 33,
     .n = 50,
     .k = 4300,
     .rows = Rows::Batch,
     .call = 2,
     .b = Layout::Panels,
     .batch = 3},
    {.name = "long_transposed_b", .m = 40, .n = 70, .k = 3101, .transposeB = true},
    {.name = "long_panels_transposed", .m = 40, .n = 150, .k = 3101, .b = Layout::PanelsT},
    {.name = "long_panels_transposed_rows",
     .m = 64,
     .n = 70,
     .k = 1100,
     .rows = Rows::M,
     .call = 37,
     .b = Layout::PanelsT},
    {.name = "panels_transposed_many", .m = 200, .n = 150, .k = 70, .b = Layout::PanelsT},
    {.name = "transposed_b_many", .m = 200, .n = 70, .k = 530, .transposeB = true},
    {.name = "rows_of_b_apart", .m = 100, .n = 520, .k = 300},
    {.name = "rows_of_b_apart_in_parts", .m = 45, .n = 520, .k = 1100, .rows = Rows::M, .call = 41},
    // B exceeds the second-level cache, and there are several blocks of rows: consecutive tasks share columns of B.
    {.name = "large_b", .m = 60, .n = 150, .k = 70, .b = Layout::Panels, .l2 = 32 << 10},
    {.name = "large_b_rows",
     .m = 60,
     .n = 150,
     .k = 70,
     .rows = Rows::M,
     .call = 41,
     .b = Layout::Panels,
     .l2 = 32 << 10},
    {.name = "large_b_none",
     .m = 60,
     .n = 150,
     .k = 70,
     .rows = Rows::M,
     .call = 0,
     .b = Layout::Panels,
     .l2 = 32 << 10},
    {.name = "large_b_factor",
     .m = 60,
     .n = 150,
     .k = 70,
     .rows = Rows::M,
     .call = 3,
     .factor = 15,
     .b = Layout::Panels,
     .l2 = 32 << 10},
    // Tiles prefetch the next columns of B after some terms. A last part of the terms remains.
    {.name = "large_b_rest",
     .m = 90,
     .n = 150,
     .k = 71,
     .rows = Rows::M,
     .call = 87,
     .b = Layout::Panels,
     .l2 = 32 << 10},
    {.name = "large_b_parts_rest", .m = 200, .n = 150, .k = 1068, .b = Layout::Panels, .l2 = 264 << 10},
    {.name = "batch", .m = 30, .n = 40, .k = 20, .batch = 3},
    {.name = "batch_transposed", .m = 30, .n = 40, .k = 20, .transposeB = true, .batch = 3},
    {.name = "rows_batch", .m = 30, .n = 40, .k = 20, .rows = Rows::Batch, .call = 5, .batch = 7},
    {.name = "rows_batch_factor", .m = 30, .n = 40, .k = 20, .rows = Rows::Batch, .call = 5, .factor = 2, .batch = 14},
};

INSTANTIATE_TEST_SUITE_P(Shapes, MatmulTest, ::testing::ValuesIn(cases),
                         [](const auto &info) { return std::string(info.param.name); });

// Tests that the epilogue receives logical indices and existing columns only: it adds a bias and stores to another
// buffer.
// Tests which numbers of rows end with tiles that have a row less. A tile of 6 x 16 has twelve sums; eight do not wait
// for each other.
TEST(MatmulTiles, NoSmallTileRemains) {
  auto hasShortTiles = [](int64_t rows) {
    mlir::MLIRContext context;
    Target target = llvm::cantFail(Target::of("x86-64-v3"));
    Matmul matmul;
    matmul.element = mlir::Float32Type::get(&context);
    matmul.m = rows, matmul.n = 16, matmul.k = 64;
    matmul.a.strideI = 64;
    matmul.b.layout = Layout::Panels, matmul.b.panel = 16;
    return MatmulPlan(matmul, target).hasShortTiles(6, 2);
  };
  EXPECT_TRUE(hasShortTiles(49) && hasShortTiles(50) && hasShortTiles(51));
  EXPECT_FALSE(hasShortTiles(52) || hasShortTiles(54)); // the last tile has eight sums, or is whole
  EXPECT_FALSE(hasShortTiles(13));                      // there are too few tiles
}

TEST(MatmulEpilogue, AddsABias) {
  constexpr int64_t m = 9, n = 21, k = 7;
  Program program(
      [&](mlir::ModuleOp module, mlir::Location loc, mlir::Type f32, mlir::Type) {
        Matmul matmul;
        matmul.element = f32;
        matmul.m = m, matmul.n = n, matmul.k = k;
        matmul.a = Storage::strided(0, m, k, false).matrix;
        matmul.b = Storage::strided(1, k, n, false).matrix;
        matmul.epilogue.store = [&](StageFunction &stage, mlir::OpBuilder &b, mlir::Location at,
                                    llvm::ArrayRef<mlir::Value> index, mlir::Value sums) {
          auto type = mlir::cast<mlir::VectorType>(sums.getType());
          mlir::Value bias = loadVector(b, at, type, elementAddress(b, at, f32, stage.buffer(3), index[1]));
          mlir::Value row = b.create<mlir::arith::MulIOp>(at, index[0], constantI64(b, at, n));
          mlir::Value place = b.create<mlir::arith::AddIOp>(at, row, index[1]);
          storeVector(b, at, b.create<mlir::arith::AddFOp>(at, sums, bias),
                      elementAddress(b, at, f32, stage.buffer(2), place));
        };
        return emitMatmul(module, "biased", loc, matmul, Target::host());
      },
      Target::host());
  Array<float> a(m * k, 1.0f), b(k * n, 2.0f), c(m * n), bias(n);
  for (int64_t j = 0; j < n; ++j)
    bias[j] = static_cast<float>(j);

  program.run({a.data(), b.data(), c.data(), bias.data()}, 0, Order::AllAtOnce);

  EXPECT_EQ(c[0], 14.0f);
  EXPECT_EQ(c[m * n - 1], 14.0f + n - 1);
}

// Tests that rounding errors do not grow with the length of a sum. In a running sum of this length, 0.1 would be added
// to thousands and lose most of its digits.
TEST(MatmulAccuracy, LongSumsLoseLittle) {
  constexpr int64_t n = 16, k = 1 << 16;
  Program program(
      [&](mlir::ModuleOp module, mlir::Location loc, mlir::Type f32, mlir::Type) {
        Matmul matmul;
        matmul.element = f32;
        matmul.n = n, matmul.k = k;
        matmul.a = Storage::strided(0, 1, k, false).matrix;
        matmul.b = Storage::strided(1, k, n, false).matrix;
        matmul.c = Storage::strided(2, 1, n, false).matrix;
        return emitMatmul(module, "long", loc, matmul, Target::host());
      },
      Target::host());
  Array<float> a(k, 1.0f), b(k * n, 0.1f), c(n);

  program.run({a.data(), b.data(), c.data()}, 0, Order::AllAtOnce);

  EXPECT_NEAR(c[0], k * double(0.1f), 1e-5 * k * 0.1);
}

} // namespace
} // namespace sluice::cpu::testing
