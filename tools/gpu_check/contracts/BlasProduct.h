// A product as requested from cublasLt, its operands, and its expected result.
#pragma once

#include "backends/cuda/runtime/BlasLt.h"
#include "tools/gpu_check/contracts/Machine.h"

namespace sluice::gpu_check {

/// The loaded library; throws NotTried if there is none.
const cuda::BlasLt &blasLibrary();

/// D[m, n] = epilogue(beta C + A[m, k] B[k, n] + bias), column-major; C is D. The epilogue's input has the layout of D.
/// Sums of an operand are written to the bias.
struct BlasShape {
  uint64_t m = 24, n = 16, k = 40;
  cuda::BlasType type = cuda::BlasType::F32;
  cuda::BlasCompute compute = cuda::BlasCompute::F32;
  bool transposed[2] = {}; ///< A and B are [k, m] and [n, k] in memory
  int64_t padding = 0;     ///< elements between the columns of each matrix
  int32_t batch = 1;
  int64_t betweenBatches = 0; ///< elements between the matrices of a batch
  bool sharesB = false;       ///< one B for the whole batch
  cuda::BlasEpilogue epilogue = cuda::BlasEpilogue::None;
  uint32_t alignment = 256; ///< promised, and the largest power of two that divides addresses
  uint64_t workspace = 0;   ///< limit in bytes
};

class BlasProduct {
public:
  /// Operands are integers from -4 to 4, so every sum is exact.
  BlasProduct(Machine &machine, const BlasShape &shape);

  /// The heuristic's algorithms, the best first; stores the status in `status` if given.
  std::vector<cuda::BlasChoice> choose(int *status = nullptr);
  /// Takes the first of these; throws Contradicted if there is none.
  void takeBest();
  int check(cuda::BlasChoice &result);
  /// Launches it on the stream with a workspace of this size; returns the library's status.
  int launch(double beta, uint64_t workspaceBytes);
  void setColumns(uint64_t n);    ///< of B and D
  void setRowsOfB(uint64_t rows); ///< in memory
  void setBias(cuda::DeviceAddress address);
  void setInput(cuda::DeviceAddress address);

  // Of the numbers, in memory order.
  double sumOf(uint64_t row, uint64_t column, int32_t number = 0) const { return sumsOf(row, column, number).first; }
  void upload();
  std::vector<double> download() { return download(placeOfD, d.size()); }
  std::vector<double> downloadSums() { return download(placeOfBias, expectedSums().size()); }
  std::vector<double> expected(double beta) const; ///< exact sums, rounded once
  std::vector<double> expectedSums() const;        ///< the same for the operand summed by the epilogue
  /// Uploads, multiplies and compares all of D, including the gaps between its columns.
  void expectExact(double beta = 0);
  void expectSame(const std::vector<double> &found, const std::vector<double> &wanted) const;
  /// Multiplies and compares: the allowed error is this share of the sum of an element's |a b|.
  void expectWithin(double share);

  Machine &machine;
  BlasShape shape;
  cuda::DriverStream stream;
  cuda::BlasAlgorithm algorithm{};
  std::vector<double> a, b, d, bias, input; ///< `d`: initial value
  cuda::DeviceAddress placeOfA, placeOfB, placeOfD, placeOfBias, placeOfInput, workspace;

  size_t indexIn(int operand, uint64_t row, uint64_t column, int32_t number) const; ///< of A, B and D

private:
  struct Matrix {
    uint64_t rows, columns;
    int64_t stride;
    size_t leading(int64_t padding) const { return rows + size_t(padding); }
  };
  Matrix matrixOf(int operand) const;
  size_t extentOf(int operand) const;
  cuda::BlasLayout layoutOf(int operand) const;
  void describe();
  cuda::DeviceAddress reserve(size_t elements);
  bool hasSums() const {
    return shape.epilogue == cuda::BlasEpilogue::SumsOfA || shape.epilogue == cuda::BlasEpilogue::SumsOfB;
  }
  std::vector<double> download(cuda::DeviceAddress place, size_t count);
  std::vector<double> rounded(const std::vector<double> &numbers) const;
  bool hasInput() const { return shape.epilogue == cuda::BlasEpilogue::GeluGradient; }
  void set(cuda::DescriptionAttribute attribute, const void *value, size_t bytes, const char *what);
  /// Sums of a b and |a b|.
  std::pair<double, double> sumsOf(uint64_t row, uint64_t column, int32_t number) const;

  cuda::BlasDescription description = nullptr;
  cuda::BlasLayout layouts[3] = {};
};

} // namespace sluice::gpu_check
