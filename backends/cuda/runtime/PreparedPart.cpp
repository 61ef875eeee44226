#include "backends/cuda/runtime/PreparedPart.h"

#include <array>
#include <numeric>

namespace sluice::cuda {

// Buffers of a plan begin at multiples of that.
static constexpr uint32_t kPromisedAlignment = 64;
static constexpr int kMostChoices = 8;

std::unique_ptr<PreparedPart> PreparedPart::prepare(const BlasLt &blas, BlasHandle handle, const ProductPart &part) {
  std::unique_ptr<PreparedPart> prepared(new PreparedPart(blas, handle, part));
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

/// What a part's addresses are multiples of, so many bytes behind where the buffer begins.
static uint32_t alignmentAt(int64_t offset) {
  return std::gcd(kPromisedAlignment, uint32_t(offset % kPromisedAlignment));
}

PreparedPart::PreparedPart(const BlasLt &blas, BlasHandle handle, const ProductPart &part)
    : blas(blas), handle(handle), part(part), product(this->part.product) {
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
  uintptr_t bias = alignmentAt(part.offsets.bias);
  setBias(reinterpret_cast<const void *>(bias)); // not read: heuristics look at its alignment
  for (auto [layout, matrix] :
       {std::pair(&first, &product.first), {&second, &product.second}, {&result, &product.result}}) {
    blas.createLayout(layout, type, 1, 1, matrix->leading);
    blas.setLayout(*layout, LayoutAttribute::BatchStride, &matrix->batchStride, sizeof matrix->batchStride);
  }
}

PreparedPart::~PreparedPart() {
  for (BlasLayout layout : {first, second, result})
    if (layout)
      blas.destroyLayout(layout);
  if (description)
    blas.destroyDescription(description);
}

void PreparedPart::setBias(const void *address) {
  if (product.bias >= 0)
    blas.setDescription(description, DescriptionAttribute::BiasPointer, &address, sizeof address);
}

void PreparedPart::setRows(int64_t rows) {
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

bool PreparedPart::choose() {
  if (!description || !first || !second || !result)
    return false;
  setRows(product.capacity);
  BlasPreference preference = nullptr;
  if (blas.createPreference(&preference) != 0)
    return false;
  auto workspace = uint64_t(product.workspaceBytes);
  uint32_t schemes = kReductionInWorkspace;
  blas.setPreference(preference, PreferenceAttribute::WorkspaceBytes, &workspace, sizeof workspace);
  blas.setPreference(preference, PreferenceAttribute::ReductionSchemes, &schemes, sizeof schemes);
  for (auto [attribute, offset] : {std::pair(PreferenceAttribute::AlignmentA, part.offsets.first),
                                   {PreferenceAttribute::AlignmentB, part.offsets.second},
                                   {PreferenceAttribute::AlignmentC, part.offsets.result},
                                   {PreferenceAttribute::AlignmentD, part.offsets.result}}) {
    uint32_t alignment = alignmentAt(offset);
    blas.setPreference(preference, attribute, &alignment, sizeof alignment);
  }
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

bool PreparedPart::does(int64_t rows) {
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

int PreparedPart::launch(int64_t rows, void *const *addresses, void *workspace, DriverStream stream) {
  if (rows != rowsSet)
    setRows(rows);
  static constexpr float kNumbers[] = {0, 1};
  static constexpr double kWideNumbers[] = {0, 1};
  bool isWide = sumTypeOf(product) == BlasType::F64;
  auto number = [&](bool isOne) { return isWide ? static_cast<const void *>(&kWideNumbers[isOne]) : &kNumbers[isOne]; };
  auto at = [&](int64_t buffer, int64_t offset) { return static_cast<std::byte *>(addresses[buffer]) + offset; };
  setBias(product.bias >= 0 ? at(product.bias, part.offsets.bias) : nullptr);
  void *to = at(product.result.buffer, part.offsets.result);
  return blas.multiply(handle, description, number(true), at(product.first.buffer, part.offsets.first), first,
                       at(product.second.buffer, part.offsets.second), second, number(part.addsToResult), to, result,
                       to, result, &algorithm, workspace, size_t(product.workspaceBytes), stream);
}

} // namespace sluice::cuda
