#include "backends/cuda/runtime/PreparedPart.h"

#include "backends/cuda/runtime/Error.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <set>
#include <type_traits>

namespace sluice::cuda {

// Buffers of a plan begin at multiples of that.
static constexpr uint32_t kPromisedAlignment = 64;
static constexpr uint32_t kWorkspaceAlignment = 16; // which the library asks for
static constexpr int kMostChoices = 8;

std::unique_ptr<PreparedPart> PreparedPart::prepare(const BlasLt &blas, BlasHandle handle, const ProductPart &part,
                                                    const std::string &name) {
  std::unique_ptr<PreparedPart> prepared(new PreparedPart(blas, handle, part, name));
  prepared->describe();
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
  if (product.activation == "relu")
    return hasBias ? BlasEpilogue::ReluBias : BlasEpilogue::Relu;
  if (product.activation == "gelu")
    return hasBias ? BlasEpilogue::GeluBias : BlasEpilogue::Gelu;
  return hasBias ? BlasEpilogue::Bias : BlasEpilogue::None;
}

/// What a part's addresses are multiples of, so many bytes behind where the buffer begins.
static uint32_t alignmentAt(int64_t offset) {
  return std::gcd(kPromisedAlignment, uint32_t(offset % kPromisedAlignment));
}

PreparedPart::PreparedPart(const BlasLt &blas, BlasHandle handle, const ProductPart &part, const std::string &name)
    : blas(blas), handle(handle), part(part), product(this->part.product), name(name) {}

void PreparedPart::describe() {
  BlasType type = typeOf(product);
  BlasCompute compute = product.type == "f64"    ? BlasCompute::F64
                        : product.type == "tf32" ? BlasCompute::Tf32
                                                 : BlasCompute::F32;
  blas.check(blas.createDescription(&description, compute, sumTypeOf(product)), name);
  auto transpose = [&](DescriptionAttribute attribute, bool isTransposed) {
    BlasOp op = isTransposed ? BlasOp::Transposed : BlasOp::Plain;
    setDescription(attribute, op);
  };
  transpose(DescriptionAttribute::TransposeA, product.first.isTransposed);
  transpose(DescriptionAttribute::TransposeB, product.second.isTransposed);
  setDescription(DescriptionAttribute::Epilogue, epilogueOf(product));
  uintptr_t bias = alignmentAt(part.offsets.bias);
  setBias(reinterpret_cast<const void *>(bias)); // not read: heuristics look at its alignment
  for (auto [layout, matrix] :
       {std::pair(&first, &product.first), {&second, &product.second}, {&result, &product.result}}) {
    blas.check(blas.createLayout(layout, type, 1, 1, matrix->leading), name);
    setLayout(*layout, LayoutAttribute::BatchStride, matrix->batchStride);
  }
}

PreparedPart::~PreparedPart() {
  for (BlasLayout layout : {first, second, result})
    if (layout)
      blas.destroyLayout(layout);
  if (description)
    blas.destroyDescription(description);
}

template <typename Value> void PreparedPart::setDescription(DescriptionAttribute attribute, Value value) {
  blas.check(blas.setDescription(description, attribute, &value, sizeof value), name);
}

template <typename Value> void PreparedPart::setLayout(BlasLayout layout, LayoutAttribute attribute, Value value) {
  blas.check(blas.setLayout(layout, attribute, &value, sizeof value), name);
}

void PreparedPart::setBias(const void *address) {
  if (product.bias >= 0)
    setDescription(DescriptionAttribute::BiasPointer, address);
}

void PreparedPart::setRows(int64_t rows) {
  auto set = [&](BlasLayout layout, bool isTransposed, int64_t height, int64_t width) {
    setLayout(layout, LayoutAttribute::Rows, uint64_t(isTransposed ? width : height));
    setLayout(layout, LayoutAttribute::Columns, uint64_t(isTransposed ? height : width));
    setLayout(layout, LayoutAttribute::BatchCount, int32_t(product.batch.with(rows)));
  };
  int64_t p = product.p.with(rows), q = product.q.with(rows), k = product.k.with(rows);
  set(first, product.first.isTransposed, p, k);
  set(second, product.second.isTransposed, k, q);
  set(result, false, p, q);
  rowsSet = rows;
}

bool PreparedPart::isEmpty(int64_t rows) const {
  return product.p.with(rows) == 0 || product.q.with(rows) == 0 || product.k.with(rows) == 0 ||
         product.batch.with(rows) == 0;
}

bool PreparedPart::choose() {
  if (isEmpty(product.capacity))
    return false;
  setRows(product.capacity);
  BlasPreference created = nullptr;
  blas.check(blas.createPreference(&created), name);
  std::unique_ptr<std::remove_pointer_t<BlasPreference>, decltype(blas.destroyPreference)> preference(
      created, blas.destroyPreference);
  auto prefer = [&](PreferenceAttribute attribute, auto value) {
    blas.check(blas.setPreference(preference.get(), attribute, &value, sizeof value), name);
  };
  auto workspace = uint64_t(product.workspaceBytes);
  prefer(PreferenceAttribute::WorkspaceBytes, workspace);
  prefer(PreferenceAttribute::ReductionSchemes, kReductionInWorkspace);
  prefer(PreferenceAttribute::AlignmentA, alignmentAt(part.offsets.first));
  prefer(PreferenceAttribute::AlignmentB, alignmentAt(part.offsets.second));
  prefer(PreferenceAttribute::AlignmentC, alignmentAt(part.offsets.result));
  prefer(PreferenceAttribute::AlignmentD, alignmentAt(part.offsets.result));
  std::array<BlasChoice, kMostChoices> choices{};
  int found = 0;
  int status = blas.choose(handle, description, first, second, result, result, preference.get(), kMostChoices,
                           choices.data(), &found);
  for (int i = 0; status == 0 && i < found; ++i) // the best first
    if (choices[size_t(i)].status == 0 && choices[size_t(i)].workspaceBytes <= workspace) {
      algorithm = choices[size_t(i)].algorithm;
      if (doesAllRows())
        return true;
    }
  return false;
}

/// Numbers of rows that stand for all that calls may have.
static std::set<int64_t> rowsToCheck(const ImageProduct &product) {
  constexpr int64_t kEach = 64;
  int64_t capacity = product.capacity;
  if (!product.p.perRow && !product.q.perRow && !product.k.perRow && !product.batch.perRow)
    return {capacity};
  std::set<int64_t> numbers{std::max<int64_t>(capacity - 1, 1), capacity};
  for (int64_t rows = 1; rows <= std::min(capacity, kEach); ++rows)
    numbers.insert(rows);
  for (int64_t power = kEach; power <= capacity; power *= 2)
    for (int64_t rows : {power - 1, power, power + 1})
      numbers.insert(std::min(rows, capacity));
  return numbers;
}

bool PreparedPart::doesAllRows() {
  checked.clear();
  std::set<int64_t> numbers = rowsToCheck(product);
  return std::all_of(numbers.begin(), numbers.end(), [&](int64_t rows) { return does(rows); });
}

bool PreparedPart::check(int64_t rows) {
  if (rows != rowsSet)
    setRows(rows);
  BlasChoice found{};
  return blas.checkAlgorithm(handle, description, first, second, result, result, &algorithm, &found) == 0 &&
         found.workspaceBytes <= size_t(product.workspaceBytes);
}

bool PreparedPart::does(int64_t rows) {
  if (isEmpty(rows))
    return false;
  auto [known, isNew] = checked.try_emplace(rows);
  if (isNew)
    known->second = check(rows);
  return known->second;
}

void PreparedPart::checkAligned(void *const *addresses, const void *workspace) const {
  auto check = [&](const void *address, uint32_t alignment, const std::string &what) {
    auto number = reinterpret_cast<uintptr_t>(address);
    if (number % alignment != 0)
      throw Error(SLUICE_INTERNAL, name + ": " + what + " lies " + std::to_string(number % alignment) +
                                       " bytes behind a multiple of " + std::to_string(alignment) +
                                       ", where cublasLt was promised one");
  };
  for (int64_t buffer : {product.first.buffer, product.second.buffer, product.result.buffer, product.bias})
    if (buffer >= 0)
      check(addresses[buffer], kPromisedAlignment, "buffer " + std::to_string(buffer));
  check(workspace, kWorkspaceAlignment, "the workspace");
}

void PreparedPart::launch(int64_t rows, void *const *addresses, void *workspace, DriverStream stream) {
  checkAligned(addresses, workspace);
  if (rows != rowsSet)
    setRows(rows);
  static constexpr float kNumbers[] = {0, 1};
  static constexpr double kWideNumbers[] = {0, 1};
  bool isWide = sumTypeOf(product) == BlasType::F64;
  auto number = [&](bool isOne) { return isWide ? static_cast<const void *>(&kWideNumbers[isOne]) : &kNumbers[isOne]; };
  auto at = [&](int64_t buffer, int64_t offset) { return static_cast<std::byte *>(addresses[buffer]) + offset; };
  setBias(product.bias >= 0 ? at(product.bias, part.offsets.bias) : nullptr);
  void *to = at(product.result.buffer, part.offsets.result);
  blas.check(blas.multiply(handle, description, number(true), at(product.first.buffer, part.offsets.first), first,
                           at(product.second.buffer, part.offsets.second), second, number(part.addsToResult), to,
                           result, to, result, &algorithm, workspace, size_t(product.workspaceBytes), stream),
             name);
}

} // namespace sluice::cuda
