// Indices that are data: kernels of gather, scatter_add and slices against the reference functions, whatever the order of tasks.
#include "tests/backends/cpu/KernelRun.h"

#include <cmath>
#include <gtest/gtest.h>

namespace sluice::cpu::testing {

using namespace mlir;

namespace {

constexpr int64_t kRowsOfIndices = 7;

constexpr const char *kIndexLayouts =
    "#turned = #sluice.at<layout = affine_map<(d0, d1) -> (d1, d0)>>\n"
    "#tiles = #sluice.at<layout = affine_map<(d0, d1) -> (d0, d1 floordiv 4, d1 mod 4)>>\n"
    "#tilesOfPlaces = #sluice.at<layout = affine_map<(d0, d1) -> (d0 floordiv 4, d1, d0 mod 4)>>\n";

struct Indexed {
  std::vector<std::string> operands;
  std::string op, attributes, result;

  KernelRun kernel(int64_t capacity = kRowsOfIndices) const {
    return KernelRun(operands,
                     "%a = sluice." + op + " %0, %1 {" + attributes + "} : (" + operands[0] + ", " + operands[1] +
                         ") -> " + result,
                     "%a : " + result, capacity, kIndexLayouts);
  }
};

Indexed gatherOf(const std::string &x, const std::string &index, const std::string &y, int axis = 0) {
  return {{x, index}, "gather", "axis = " + std::to_string(axis) + " : i64", y};
}

Indexed scatterOf(const std::string &x, const std::string &index, const std::string &y, int size, int axis = 0) {
  return {{x, index},
          "scatter_add",
          "axis = " + std::to_string(axis) + " : i64, size = " + std::to_string(size) + " : i64",
          y};
}

/// Indices from some below 0 to some too large.
void expectMatches(const Indexed &indexed, double size, double tolerance) {
  SCOPED_TRACE(indexed.op + " " + indexed.operands[0] + ", " + indexed.operands[1] + " -> " + indexed.result);
  KernelRun kernel = indexed.kernel();
  ASSERT_TRUE(kernel.lowered()) << kernel.diagnostics();
  kernel.randomize(-2, size + 2);
  for (int64_t rows : {7, 3, 1, 0}) {
    kernel.run(rows);
    EXPECT_LE(kernel.error(), tolerance) << "with " << rows << " rows\n" << kernel.text();
    auto inOrder = kernel.bytes(0);
    kernel.run(rows, /*seed=*/5);
    EXPECT_LE(kernel.error(), tolerance) << "with " << rows << " rows, in random order";
    EXPECT_TRUE(kernel.bytes(0) == inOrder) << "other bits in another order";
  }
}

} // namespace

// Tests rows of an embedding, narrow and wide, and indices of several dimensions.
TEST(Indices, GathersRows) {
  for (const char *index : {"i32", "i64"})
    for (int64_t width : {1, 3, 16, 33, 200}) {
      std::string x = "tensor<11x" + std::to_string(width) + "x", y = "x" + std::to_string(width) + "x";
      expectMatches(gatherOf(x + "f32>", std::string("tensor<?x") + index + ">", "tensor<?" + y + "f32>"), 11, 0);
      expectMatches(gatherOf(x + "f64>", std::string("tensor<?x4x") + index + ">", "tensor<?x4" + y + "f64>"), 11, 0);
    }
}

TEST(Indices, GathersAlongAnyDimension) {
  expectMatches(gatherOf("tensor<?x9x20xf32>", "tensor<5xi32>", "tensor<?x5x20xf32>", 1), 9, 0);
  expectMatches(gatherOf("tensor<?x9xf32>", "tensor<30xi64>", "tensor<?x30xf32>", 1), 9, 0);
  expectMatches(gatherOf("tensor<3x40xi32>", "tensor<?x2xi32>", "tensor<3x?x2xi32>", 1), 40, 0);
  expectMatches(gatherOf("tensor<9x6xui8>", "tensor<i32>", "tensor<6xui8>"), 9, 0);
  expectMatches(gatherOf("tensor<300xf64>", "tensor<?x33xi64>", "tensor<?x33xf64>"), 300, 0);
}

TEST(Indices, GathersFromAnyLayout) {
  for (const char *layout : {", #turned", ", #tiles", ", #tilesOfPlaces"})
    for (const char *result : {"", ", #tiles"})
      expectMatches(gatherOf(std::string("tensor<11x18xf32") + layout + ">", "tensor<?xi32>",
                             std::string("tensor<?x18xf32") + result + ">"),
                    11, 0);
}

// Tests that the cost of a table counts the bytes read, if fewer than all.
TEST(Indices, CountsWhatIsRead) {
  KernelRun few = gatherOf("tensor<1000x64xf32>", "tensor<?xi32>", "tensor<?x64xf32>").kernel(),
            many = gatherOf("tensor<5x64xf32>", "tensor<?xi32>", "tensor<?x64xf32>").kernel();
  ASSERT_TRUE(few.lowered() && many.lowered()) << few.diagnostics() << many.diagnostics();
  EXPECT_EQ(few.result().work.bytes, 0);
  EXPECT_EQ(few.result().work.bytesPerRow, 4 + 2 * 64 * 4);
  EXPECT_EQ(many.result().work.bytes, 5 * 64 * 4);
  EXPECT_EQ(many.result().work.bytesPerRow, 4 + 64 * 4);
}

// Tests an index that another op of the kernel computes, and ops on the gathered elements.
TEST(Indices, GathersInsideOfKernels) {
  KernelRun kernel(
      {"tensor<10x24xf32>", "tensor<?xi32>", "tensor<?x24xf32>"},
      "%t = sluice.add %1, %1 : (tensor<?xi32>, tensor<?xi32>) -> tensor<?xi32>\n"
      "%g = sluice.gather %0, %t {axis = 0 : i64} : (tensor<10x24xf32>, tensor<?xi32>) -> tensor<?x24xf32>\n"
      "%y = sluice.mul %g, %2 : (tensor<?x24xf32>, tensor<?x24xf32>) -> tensor<?x24xf32>\n"
      "%s = sluice.softmax %y {axis = 1 : i64} : (tensor<?x24xf32>) -> tensor<?x24xf32>",
      "%s : tensor<?x24xf32>", kRowsOfIndices);
  ASSERT_TRUE(kernel.lowered()) << kernel.diagnostics();
  kernel.randomize(-1, 6);
  for (int64_t rows : {7, 1, 0}) {
    kernel.run(rows);
    EXPECT_LE(kernel.error(), 1e-5) << kernel.text();
  }
}

TEST(Indices, AddsRows) {
  for (int64_t width : {1, 3, 16, 33, 200}) {
    std::string y = "tensor<11x" + std::to_string(width) + "x", x = "x" + std::to_string(width) + "x";
    expectMatches(scatterOf("tensor<?" + x + "f32>", "tensor<?xi32>", y + "f32>", 11), 11, 1e-5);
    expectMatches(scatterOf("tensor<?x4" + x + "f64>", "tensor<?x4xi64>", y + "f64>", 11), 11, 1e-14);
  }
  expectMatches(scatterOf("tensor<?x33xf64>", "tensor<?x33xi64>", "tensor<50xf64>", 50), 50, 1e-14);
  expectMatches(scatterOf("tensor<?x5xf16>", "tensor<?xi32>", "tensor<4x5xf16>", 4), 4, 1e-2);
}

TEST(Indices, AddsAlongAnyDimension) {
  expectMatches(scatterOf("tensor<?x5x20xf32>", "tensor<5xi32>", "tensor<?x9x20xf32>", 9, 1), 9, 1e-5);
  expectMatches(scatterOf("tensor<?x30xf32>", "tensor<30xi64>", "tensor<?x9xf32>", 9, 1), 9, 1e-5);
  expectMatches(scatterOf("tensor<70x30xf32>", "tensor<30xi64>", "tensor<70x9xf32>", 9, 1), 9, 1e-5);
  expectMatches(scatterOf("tensor<6xf32>", "tensor<i32>", "tensor<9x6xf32>", 9), 9, 0);
}

TEST(Indices, AddsInAnyLayout) {
  for (const char *layout : {", #turned", ", #tiles", ", #tilesOfPlaces"})
    for (const char *terms : {"", ", #tiles"})
      expectMatches(scatterOf(std::string("tensor<?x18xf32") + terms + ">", "tensor<?xi32>",
                              std::string("tensor<11x18xf32") + layout + ">", 11),
                    11, 1e-5);
}

// Tests that many terms of few columns are also split by index, that each term is added once, and in the order of the
// index's elements. All indices are equal, so that any other order would give other bits.
TEST(Indices, AddsInTheOrderOfTheIndex) {
  for (int64_t width : {1, 24}) {
    std::string columns = std::to_string(width);
    KernelRun kernel =
        scatterOf("tensor<?x9x" + columns + "xf32>", "tensor<?x9xi32>", "tensor<300x" + columns + "xf32>", 300)
            .kernel(3000);
    ASSERT_TRUE(kernel.lowered()) << kernel.diagnostics();
    EXPECT_GE(kernel.result().stages.back().tasks, 4);
    kernel.randomize(-40, 340);
    kernel.run(2500, /*seed=*/3);
    EXPECT_LE(kernel.error(), 1e-4);
    std::fill(kernel.inputs[1].data.begin(), kernel.inputs[1].data.end(), 123);
    for (double &term : kernel.inputs[0].data)
      term = double(float(term / 3));
    kernel.run(2500, /*seed=*/4);
    ir::HostTensor y = kernel.output(0);
    for (int64_t column = 0; column < width; ++column) {
      float sum = 0;
      for (int64_t row = 0; row < 2500 * 9; ++row)
        sum += float(kernel.inputs[0].data[size_t(row * width + column)]);
      EXPECT_EQ(y.at({123, column}), double(sum));
      EXPECT_EQ(y.at({122, column}), 0);
    }
  }
}

namespace {

struct Position {
  std::string x, part, index;
  int axis;

  KernelRun update(const std::string &more = "") const {
    return KernelRun({x, part, index},
                     "%a = sluice.dynamic_update_slice %0, %1, %2 {axis = " + std::to_string(axis) + " : i64" + more +
                         "} : (" + x + ", " + part + ", " + index + ") -> " + x,
                     "%a : " + x, kRowsOfIndices, kIndexLayouts);
  }
  KernelRun slice(int size) const {
    return KernelRun({x, index},
                     "%a = sluice.dynamic_slice %0, %1 {axis = " + std::to_string(axis) +
                         " : i64, size = " + std::to_string(size) + " : i64} : (" + x + ", " + index + ") -> " + part,
                     "%a : " + part, kRowsOfIndices, kIndexLayouts);
  }
};

/// At each position, and beyond the first and the last.
void expectAtAllPositions(KernelRun kernel, size_t index, int size) {
  ASSERT_TRUE(kernel.lowered()) << kernel.diagnostics();
  kernel.randomize(-2, 2);
  for (int position = -2; position < size + 2; ++position) {
    kernel.inputs[index].data = {double(position)};
    for (int64_t rows : {7, 3, 0}) {
      kernel.run(rows, /*seed=*/5);
      EXPECT_EQ(kernel.error(), 0) << "at " << position << " with " << rows << " rows\n" << kernel.text();
    }
  }
}

} // namespace

TEST(Indices, SlicesAndUpdatesAtAPosition) {
  for (const Position &at : {Position{"tensor<?x9x20xf32>", "tensor<?x1x20xf32>", "tensor<i32>", 1},
                             {"tensor<?x9xf64>", "tensor<?x4xf64>", "tensor<i64>", 1},
                             {"tensor<9x?x33xf32>", "tensor<2x?x33xf32>", "tensor<i32>", 0},
                             {"tensor<9x6xui8>", "tensor<9x6xui8>", "tensor<i32>", 0},
                             {"tensor<3x9xf32, #tiles>", "tensor<3x2xf32>", "tensor<i32>", 1}}) {
    SCOPED_TRACE(at.x);
    expectAtAllPositions(at.update(), 2, 9);
    if (at.x.find('#') == std::string::npos)
      expectAtAllPositions(at.slice(at.axis == 1      ? (at.x == "tensor<?x9xf64>" ? 4 : 1)
                                    : at.part == at.x ? 9
                                                      : 2),
                           1, 9);
  }
}

// Tests that an in-place update writes only the part, and does not read the rest.
TEST(Indices, UpdatesInPlace) {
  for (const Position &at : {Position{"tensor<?x9x20xf32>", "tensor<?x1x20xf32>", "tensor<i32>", 1},
                             {"tensor<?x9x3xf64>", "tensor<?x4x3xf64>", "tensor<i64>", 1}}) {
    KernelRun kernel = at.update(", in_place");
    ASSERT_TRUE(kernel.lowered()) << kernel.diagnostics();
    kernel.randomize(-2, 2);
    kernel.inputs[2].data = {3};
    kernel.run(5);
    ir::HostTensor x = kernel.inputs[0], y = kernel.output(0), part = kernel.inputs[1];
    ir::forEachIndex(y.shape, [&](ArrayRef<int64_t> index) {
      SmallVector<int64_t> in(index);
      in[1] -= 3;
      if (in[1] >= 0 && in[1] < part.shape[1])
        EXPECT_EQ(y.at(index), part.at(in));
      else
        EXPECT_NE(y.at(index), x.at(index));
    });
    auto elements = [](const ir::HostTensor &tensor) { return tensor.size() / kRowsOfIndices; };
    EXPECT_EQ(kernel.result().work.bytesPerRow, 2 * elements(part) * (at.x.find("f64") == std::string::npos ? 4 : 8));
    EXPECT_EQ(kernel.result().work.flops + kernel.result().work.flopsPerRow, 0);
  }
}

// Tests that computed or additionally read values are stored in parts of other values by the only loop.
TEST(Indices, StoresPartsOfWhatIsComputed) {
  const std::string a = "tensor<?x20xf32>", x = "tensor<?x9x20xf32>", part = "tensor<?x1x20xf32>";
  auto stored = [&](const std::string &value, const std::string &in, const std::string &name) {
    return "%p" + name + " = sluice.expand " + value + " {dims = array<i64: 0, 2>, shape = array<i64: ?, 1, 20>} : (" +
           a + ") -> " + part + "\n%" + name + " = sluice.dynamic_update_slice " + in + ", %p" + name +
           ", %3 {axis = 1 : i64, in_place} : (" + x + ", " + part + ", tensor<i32>) -> " + x + "\n";
  };
  KernelRun kernel({a, x, x, "tensor<i32>"},
                   "%b = sluice.add %0, %0 : (" + a + ", " + a + ") -> " + a + "\n" + stored("%b", "%1", "c") +
                       stored("%0", "%2", "d"),
                   "%b, %c, %d : " + a + ", " + x + ", " + x, kRowsOfIndices);
  ASSERT_TRUE(kernel.lowered()) << kernel.diagnostics();
  EXPECT_EQ(kernel.result().stages.size(), 1u);
  kernel.randomize(-2, 2);
  for (int64_t position : {0, 5, 8}) {
    kernel.inputs[3].data = {double(position)};
    kernel.run(5, /*seed=*/3);
    ir::forEachIndex({5, 9, 20}, [&](ArrayRef<int64_t> index) {
      double read = kernel.inputs[0].at({index[0], index[2]});
      for (auto [number, expected] : {std::pair(0, 2 * read), std::pair(1, read)}) {
        double found = kernel.output(unsigned(number) + 1).at(index);
        if (index[1] == position)
          EXPECT_EQ(found, expected);
        else
          EXPECT_NE(found, kernel.inputs[size_t(number) + 1].at(index));
      }
      EXPECT_EQ(kernel.output(0).at({index[0], index[2]}), 2 * read);
    });
  }
  EXPECT_EQ(kernel.result().work.bytesPerRow, 4 * 20 * 4) << "one value read, and three written";
}

} // namespace sluice::cpu::testing
