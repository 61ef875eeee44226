#include "backends/cuda/runtime/PreparedProduct.h"

#include <array>

namespace sluice::cuda {

// Buffers of a plan begin at multiples of that.
static constexpr uint32_t kPromisedAlignment = 64;
static constexpr int kMostChoices = 8;

std::unique_ptr<PreparedProduct> PreparedProduct::prepare(const BlasLt &blas, BlasHandle handle,
                                                          const ImageProduct &product) {
  std::unique_ptr<PreparedProduct> prepared(new PreparedProduct(blas, handle, product));
  return prepared->choose() ? std::move(prepared) : nullptr;
}

static BlasType typeOf(const ImageProduct &product) {
  return product.type == "f64"    ? BlasType::F64
         : product.type == "f16"  ? BlasType::F16
         : product.type == "bf16" ? BlasType::BF16
                                  : BlasType::F32;
}

/// In which terms are added, and of the numbers that sums are multiplied with.
static BlasType sumTypeOf(const ImageProduct &product) { return product.type == "f64" ? BlasType::F64 : BlasType::F32; }

static BlasEpilogue epilogueOf(const ImageProduct &product) {
  bool hasBias = product.bias >= 0;
  return product.hasRelu ? hasBias ? BlasEpilogue::ReluBias : BlasEpilogue::Relu
         : hasBias       ? BlasEpilogue::Bias
                         : BlasEpilogue::None;
}

PreparedProduct::PreparedProduct(const BlasLt &blas, BlasHandle handle, const ImageProduct &product)
    : blas(blas), handle(handle), product(product) {
  BlasType type = typeOf(product);
  BlasCompute compute = product.type == "f64"    ? BlasCompute::F64
                        : product.type == "tf32" ? BlasCompute::Tf32
                                                 : BlasCompute::F32;
  blas.createDescription(&description, compute, sumTypeOf(product));
  auto transpose = [&](DescriptionAttribute attribute, bool isTransposed) {
    BlasOp op = isTransposed ? BlasOp::Transposed : BlasOp::Plain;
    blas.setDescription(description, attribute, &op, sizeof op);
  };
  transpose(DescriptionAttribute::TransposeA, product.first.isTransposed);
  transpose(DescriptionAttribute::TransposeB, product.second.isTransposed);
  BlasEpilogue epilogue = epilogueOf(product);
  blas.setDescription(description, DescriptionAttribute::Epilogue, &epilogue, sizeof epilogue);
  setBias(reinterpret_cast<const void *>(uintptr_t(kPromisedAlignment))); // not read: heuristics look at its alignment
  for (auto [layout, matrix] :
       {std::pair(&first, &product.first), {&second, &product.second}, {&result, &product.result}}) {
    blas.createLayout(layout, type, 1, 1, matrix->leading);
    blas.setLayout(*layout, LayoutAttribute::BatchStride, &matrix->batchStride, sizeof matrix->batchStride);
  }
}

PreparedProduct::~PreparedProduct() {
  for (BlasLayout layout : {first, second, result})
    if (layout)
      blas.destroyLayout(layout);
  if (description)
    blas.destroyDescription(description);
}

void PreparedProduct::setBias(const void *address) {
  if (product.bias >= 0)
    blas.setDescription(description, DescriptionAttribute::BiasPointer, &address, sizeof address);
}

void PreparedProduct::setRows(int64_t rows) {
  auto set = [&](BlasLayout layout, bool isTransposed, int64_t height, int64_t width) {
    uint64_t stored[] = {uint64_t(isTransposed ? width : height), uint64_t(isTransposed ? height : width)};
    int32_t batch = int32_t(product.batch.with(rows));
    blas.setLayout(layout, LayoutAttribute::Rows, &stored[0], sizeof stored[0]);
    blas.setLayout(layout, LayoutAttribute::Columns, &stored[1], sizeof stored[1]);
    blas.setLayout(layout, LayoutAttribute::BatchCount, &batch, sizeof batch);
  };
  int64_t p = product.p.with(rows), q = product.q.with(rows), k = product.k.with(rows);
  set(first, product.first.isTransposed, p, k);
  set(second, product.second.isTransposed, k, q);
  set(result, false, p, q);
  rowsSet = rows;
}

bool PreparedProduct::choose() {
  if (!description || !first || !second || !result)
    return false;
  setRows(product.capacity);
  BlasPreference preference = nullptr;
  if (blas.createPreference(&preference) != 0)
    return false;
  auto workspace = uint64_t(product.workspaceBytes);
  uint32_t oneSum = 0;
  blas.setPreference(preference, PreferenceAttribute::WorkspaceBytes, &workspace, sizeof workspace);
  blas.setPreference(preference, PreferenceAttribute::ReductionSchemes, &oneSum, sizeof oneSum);
  for (PreferenceAttribute attribute : {PreferenceAttribute::AlignmentA, PreferenceAttribute::AlignmentB,
                                        PreferenceAttribute::AlignmentC, PreferenceAttribute::AlignmentD})
    blas.setPreference(preference, attribute, &kPromisedAlignment, sizeof kPromisedAlignment);
  std::array<BlasChoice, kMostChoices> choices{};
  int found = 0;
  int status =
      blas.choose(handle, description, first, second, result, result, preference, kMostChoices, choices.data(), &found);
  blas.destroyPreference(preference);
  for (int i = 0; status == 0 && i < found; ++i) // the best first
    if (choices[size_t(i)].status == 0 && choices[size_t(i)].workspaceBytes <= workspace) {
      algorithm = choices[size_t(i)].algorithm;
      return doesRowsSet = true;
    }
  return false;
}

bool PreparedProduct::does(int64_t rows) {
  if (rows == rowsSet)
    return doesRowsSet;
  setRows(rows);
  bool isEmpty = product.p.with(rows) == 0 || product.q.with(rows) == 0 || product.k.with(rows) == 0 ||
                 product.batch.with(rows) == 0;
  BlasChoice checked{};
  doesRowsSet = !isEmpty && blas.check(handle, description, first, second, result, result, &algorithm, &checked) == 0 &&
                checked.workspaceBytes <= size_t(product.workspaceBytes);
  return doesRowsSet;
}

int PreparedProduct::launch(int64_t rows, void *const *addresses, void *workspace, DriverStream stream) {
  if (rows != rowsSet)
    setRows(rows);
  static constexpr float kOne = 1, kZero = 0;
  static constexpr double kWideOne = 1, kWideZero = 0;
  bool isWide = sumTypeOf(product) == BlasType::F64;
  const void *alpha = isWide ? static_cast<const void *>(&kWideOne) : &kOne;
  const void *beta = isWide ? static_cast<const void *>(&kWideZero) : &kZero;
  setBias(product.bias >= 0 ? addresses[product.bias] : nullptr);
  void *to = addresses[product.result.buffer];
  return blas.multiply(handle, description, alpha, addresses[product.first.buffer], first,
                       addresses[product.second.buffer], second, beta, to, result, to, result, &algorithm, workspace,
                       size_t(product.workspaceBytes), stream);
}

} // namespace sluice::cuda
