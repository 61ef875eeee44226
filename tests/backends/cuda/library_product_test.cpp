// Products as matrices for a library: plain loops over the matrices that are found give what the reference functions give.
#include "backends/cuda/compiler/LibraryProduct.h"
#include "tests/backends/cuda/GridRun.h"

#include <gtest/gtest.h>

using namespace mlir;

namespace sluice::cuda::test {

namespace {

class LibraryRun : public GridRun {
public:
  LibraryRun(const std::string &op, const std::string &a, const std::string &b, const std::string &y,
             const std::string &attributes = "")
      : GridRun("k", {a, b}, "%a = sluice." + op + " %0, %1 " + attributes + " : (" + a + ", " + b + ") -> " + y,
                "%a : " + y) {
    loops::Formulas formulas;
    Operation *product = &KernelCase::op.getBody().front().front();
    if (std::optional<loops::Product> found = loops::findProduct(formulas, product, kCapacity))
      library = findLibraryProduct(*found, product, kCapacity);
  }

  /// The largest error of the loops over the matrices.
  double multiply(int64_t rows) {
    randomize(-2, 2);
    std::vector<void *> buffers = begin(rows, 0);
    library->type == "f64" ? multiply<double>(rows, buffers) : multiply<float>(rows, buffers);
    return error();
  }

  std::optional<LibraryProduct> library;

private:
  template <typename T> void multiply(int64_t rows, const std::vector<void *> &buffers) {
    auto count = [&](const LibraryProduct::Extent &extent) { return extent.perRow ? extent.size * rows : extent.size; };
    auto at = [&](const LibraryProduct::Matrix &matrix, int64_t batch, int64_t row, int64_t column) -> T & {
      if (matrix.isTransposed)
        std::swap(row, column);
      return static_cast<T *>(
          buffers[size_t(matrix.buffer)])[batch * matrix.batchStride + column * matrix.leading + row];
    };
    for (int64_t batch = 0; batch < count(library->batch); ++batch)
      for (int64_t p = 0; p < count(library->p); ++p)
        for (int64_t q = 0; q < count(library->q); ++q) {
          double sum = 0;
          for (int64_t k = 0; k < count(library->k); ++k)
            sum += double(at(library->first, batch, p, k)) * double(at(library->second, batch, k, q));
          at(library->result, batch, p, q) = T(sum);
        }
  }
};

std::string oneByOne(const char *stride, const char *padding) {
  return std::string("{stride = array<i64: ") + stride + ">, padding = array<i64: " + padding +
         ">, dilation = array<i64: 1, 1>, groups = 1 : i64}";
}

} // namespace

TEST(LibraryProduct, IsWhatTheOpIs) {
  LibraryRun all[] = {
      {"einsum \"ab,bc->ac\"", "tensor<?x20xf32>", "tensor<20x9xf32>", "tensor<?x9xf32>"},
      {"einsum \"ab,cb->ac\"", "tensor<?x20xf64>", "tensor<9x20xf64>", "tensor<?x9xf64>"},
      {"einsum \"ab,ac->bc\"", "tensor<?x20xf32>", "tensor<?x9xf32>", "tensor<20x9xf32>"},
      {"einsum \"ab,cb->ac\"", "tensor<9x20xf32>", "tensor<?x20xf32>", "tensor<9x?xf32>"},
      {"einsum \"ab,bc->ac\"", "tensor<?x1xf32>", "tensor<1x9xf32>", "tensor<?x9xf32>"},
      {"einsum \"ab,bc->ac\"", "tensor<1x20xf32>", "tensor<20x1xf32>", "tensor<1x1xf32>"},
      {"einsum \"abc,adc->abd\"", "tensor<?x4x6xf32>", "tensor<?x5x6xf32>", "tensor<?x4x5xf32>"},
      {"einsum \"abcd,abde->abce\"", "tensor<3x4x2x6xf64>", "tensor<3x4x6x5xf64>", "tensor<3x4x2x5xf64>"},
      {"einsum \"abc,dc->abd\"", "tensor<?x4x6xf32>", "tensor<5x6xf32>", "tensor<?x4x5xf32>"},
      {"einsum \"abc,abd->cd\"", "tensor<?x4x6xf32>", "tensor<?x4x5xf32>", "tensor<6x5xf32>"},
      {"conv2d", "tensor<?x5x4x3xf32, #nhwc>", "tensor<8x5x1x1xf32>", "tensor<?x8x4x3xf32, #nhwc>",
       oneByOne("1, 1", "0, 0, 0, 0")},
  };
  for (LibraryRun &run : all) {
    ASSERT_TRUE(run.library) << run.diagnostics() << run.kernel.text;
    for (int64_t rows : {7, 3, 1}) {
      double error = run.multiply(rows);
      EXPECT_TRUE(error <= 1e-4) << error << " with " << rows << " rows of\n" << run.kernel.text;
    }
  }
}

TEST(LibraryProduct, LeavesOutWhatDoesNotMerge) {
  // Images whose channels lie apart, strides, padding: no matrices.
  EXPECT_FALSE(LibraryRun("conv2d", "tensor<?x5x4x3xf32>", "tensor<8x5x1x1xf32>", "tensor<?x8x4x3xf32>",
                          oneByOne("1, 1", "0, 0, 0, 0"))
                   .library);
  EXPECT_FALSE(LibraryRun("conv2d", "tensor<?x5x4x3xf32, #nhwc>", "tensor<8x5x1x1xf32>", "tensor<?x8x2x2xf32, #nhwc>",
                          oneByOne("2, 2", "0, 0, 0, 0"))
                   .library);
  EXPECT_FALSE(LibraryRun("conv2d", "tensor<?x5x4x3xf32, #nhwc>", "tensor<8x5x1x1xf32>", "tensor<?x8x6x5xf32, #nhwc>",
                          oneByOne("1, 1", "1, 1, 1, 1"))
                   .library);
}

} // namespace sluice::cuda::test
