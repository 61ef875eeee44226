#include "backends/cuda/runtime/PreparedPart.h"

#include "backends/cuda/runtime/Error.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <limits>
#include <numeric>
#include <set>
#include <sstream>
#include <type_traits>
#include <utility>

namespace sluice::cuda {

// The alignment of buffers, which the compile half requires (compiler/Plugin.cpp).
static constexpr uint32_t kPromisedAlignment = 256;
static constexpr uint32_t kWorkspaceAlignment = 16; // required by the library
static constexpr size_t kScratchAlignment = 256;    // the same as for buffers
static constexpr int kMostChoices = 8;

std::unique_ptr<PreparedPart> PreparedPart::prepare(const BlasLt &blas, BlasHandle handle, const ProductPart &part,
                                                    const std::string &name, const TimingPlace &timing) {
  std::unique_ptr<PreparedPart> prepared(new PreparedPart(blas, handle, part, name));
  prepared->describe();
  return prepared->choose(timing) ? std::move(prepared) : nullptr;
}

static BlasType typeOf(const ImageProduct &product) {
  return product.type == "f64"    ? BlasType::F64
         : product.type == "f16"  ? BlasType::F16
         : product.type == "bf16" ? BlasType::BF16
                                  : BlasType::F32;
}

/// The type in which terms are added, and the type of the scalars of sums.
static BlasType sumTypeOf(const ImageProduct &product) { return product.type == "f64" ? BlasType::F64 : BlasType::F32; }

static BlasEpilogue epilogueOf(const ImageProduct &product) {
  bool hasBias = product.bias >= 0;
  if (product.sums >= 0)
    return product.sumsSecond ? BlasEpilogue::SumsOfB : BlasEpilogue::SumsOfA;
  if (product.activation == "gelu_gradient")
    return BlasEpilogue::GeluGradient;
  if (product.activation == "relu")
    return hasBias ? BlasEpilogue::ReluBias : BlasEpilogue::Relu;
  if (product.activation == "gelu")
    return hasBias ? BlasEpilogue::GeluBias : BlasEpilogue::Gelu;
  return hasBias ? BlasEpilogue::Bias : BlasEpilogue::None;
}

/// The buffer of the epilogue, in addition to the matrices; -1 if none.
static int64_t vectorOf(const ImageProduct &product) { return product.sums >= 0 ? product.sums : product.bias; }

/// The alignment of an address this many bytes after the start of a buffer.
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
  if (product.input >= 0) {
    setDescription(DescriptionAttribute::InputLeading, product.result.leading);
    setDescription(DescriptionAttribute::InputBatchStride, product.result.batchStride);
  }
  uintptr_t vector = alignmentAt(part.offsets.vector), input = alignmentAt(part.offsets.result);
  // These addresses are not accessed: the library's heuristics use their alignment.
  setBeside(reinterpret_cast<const void *>(vector), reinterpret_cast<const void *>(input));
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
  blas.check(blas.setDescription(description, attribute, static_cast<const void *>(&value), sizeof value), name);
}

template <typename Value> void PreparedPart::setLayout(BlasLayout layout, LayoutAttribute attribute, Value value) {
  blas.check(blas.setLayout(layout, attribute, &value, sizeof value), name);
}

void PreparedPart::setBeside(const void *vector, const void *input) {
  if (vectorOf(product) >= 0)
    setDescription(DescriptionAttribute::BiasPointer, vector);
  if (product.input >= 0)
    setDescription(DescriptionAttribute::InputPointer, input);
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

/// Everything that determines the algorithm of a part, on any device of this name.
static std::string timingKey(const ProductPart &part, const std::string &device, const std::string &version) {
  const ImageProduct &product = part.product;
  std::ostringstream key;
  key << device << '\n' << version << '\n' << product.type;
  for (const ImageProduct::Extent &extent : {product.p, product.q, product.k, product.batch})
    key << ' ' << extent.size << ' ' << extent.perRow;
  for (const ImageProduct::Matrix &matrix : {product.first, product.second, product.result})
    key << ' ' << matrix.leading << ' ' << matrix.batchStride << ' ' << matrix.isTransposed;
  key << ' ' << (product.bias >= 0) << ' ' << product.activation << ' ' << (product.sums >= 0) << ' '
      << product.sumsSecond << ' ' << product.capacity << ' ' << product.workspaceBytes;
  for (int64_t offset : {part.offsets.first, part.offsets.second, part.offsets.result, part.offsets.vector})
    key << ' ' << alignmentAt(offset);
  key << ' ' << part.addsToResult;
  return key.str();
}

bool PreparedPart::choose(const TimingPlace &timing) {
  if (isEmpty(product.capacity))
    return false;
  std::vector<BlasAlgorithm> all = candidates(product.isTimed ? kMostChoices : 1);
  if (all.empty() || !product.isTimed)
    return !all.empty();
  auto fastest = [&] { return all.size() == 1 ? all.front() : fastestOf(all, timing); };
  return take(timing.fastest.find(timingKey(part, timing.device, blas.version), fastest));
}

/// At most this many algorithms that support all row counts, in the library's order of preference.
std::vector<BlasAlgorithm> PreparedPart::candidates(size_t most) {
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
  std::vector<BlasAlgorithm> candidates;
  for (int i = 0; status == 0 && i < found && candidates.size() < most; ++i) {
    const BlasChoice &choice = choices[size_t(i)];
    if (choice.status == 0 && choice.workspaceBytes <= workspace && take(choice.algorithm))
      candidates.push_back(choice.algorithm);
  }
  return candidates;
}

/// The bytes of a matrix at capacity.
static size_t bytesAt(const ImageProduct &product, const ImageProduct::Matrix &matrix, ImageProduct::Extent height,
                      ImageProduct::Extent width) {
  if (matrix.isTransposed)
    std::swap(height, width);
  int64_t rows = product.capacity;
  int64_t elements =
      (width.with(rows) - 1) * matrix.leading + height.with(rows) + (product.batch.with(rows) - 1) * matrix.batchStride;
  return size_t(elements) * bytesOf(typeOf(product));
}

BlasAlgorithm PreparedPart::fastestOf(const std::vector<BlasAlgorithm> &candidates, const TimingPlace &timing) {
  size_t result = bytesAt(product, product.result, product.p, product.q);
  size_t bytes[] = {bytesAt(product, product.first, product.p, product.k),
                    bytesAt(product, product.second, product.k, product.q),
                    result,
                    size_t(product.sideOfSums().with(product.capacity)) * bytesOf(typeOf(product)),
                    product.input >= 0 ? result : 0,
                    size_t(product.workspaceBytes)};
  size_t all = 0, begins[std::size(bytes)];
  for (size_t i = 0; i < std::size(bytes); ++i)
    begins[i] = std::exchange(all, all + (bytes[i] + kScratchAlignment - 1) / kScratchAlignment * kScratchAlignment);
  ScratchMemory scratch(timing, all);
  if (!scratch.begin())
    return candidates.front();
  Places places{scratch.begin() + begins[0], scratch.begin() + begins[1], scratch.begin() + begins[2],
                scratch.begin() + begins[3], scratch.begin() + begins[4]};
  setRows(product.capacity);
  StreamTimer timer(timing);
  auto fastest = candidates.begin();
  float least = std::numeric_limits<float>::infinity();
  for (auto candidate = candidates.begin(); candidate != candidates.end(); ++candidate) {
    algorithm = *candidate;
    float taken = timer.best([&] { return multiply(places, scratch.begin() + begins[5], timing.stream); });
    if (taken < least)
      least = taken, fastest = candidate;
  }
  return *fastest;
}

/// The row counts that are checked when code is loaded (PreparedPart.h). If the sum is over rows, each count is a
/// different product, so others are checked when they occur.
static std::set<int64_t> rowsToCheck(const ImageProduct &product) {
  constexpr int64_t kEach = 64;
  int64_t capacity = product.capacity;
  if (!product.p.perRow && !product.q.perRow && !product.batch.perRow)
    return {capacity};
  std::set<int64_t> numbers{std::max<int64_t>(capacity - 1, 1), capacity};
  for (int64_t rows = 1; rows <= std::min(capacity, kEach); ++rows)
    numbers.insert(rows);
  for (int64_t power = kEach; power <= capacity; power *= 2)
    for (int64_t rows : {power - 1, power, power + 1})
      numbers.insert(std::min(rows, capacity));
  return numbers;
}

/// Whether the algorithm supports all row counts.
bool PreparedPart::take(const BlasAlgorithm &wanted) {
  algorithm = wanted;
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
  for (int64_t buffer :
       {product.first.buffer, product.second.buffer, product.result.buffer, vectorOf(product), product.input})
    if (buffer >= 0)
      check(addresses[buffer], kPromisedAlignment, "buffer " + std::to_string(buffer));
  check(workspace, kWorkspaceAlignment, "the workspace");
}

int PreparedPart::multiply(const Places &places, void *workspace, DriverStream stream) {
  static constexpr float kNumbers[] = {0, 1};
  static constexpr double kWideNumbers[] = {0, 1};
  bool isWide = sumTypeOf(product) == BlasType::F64;
  auto number = [&](bool isOne) { return isWide ? static_cast<const void *>(&kWideNumbers[isOne]) : &kNumbers[isOne]; };
  setBeside(places.vector, places.input);
  return blas.multiply(handle, description, number(true), places.first, first, places.second, second,
                       number(part.addsToResult), places.result, result, places.result, result, &algorithm, workspace,
                       size_t(product.workspaceBytes), stream);
}

void PreparedPart::launch(int64_t rows, void *const *addresses, void *workspace, DriverStream stream) {
  checkAligned(addresses, workspace);
  if (rows != rowsSet)
    setRows(rows);
  auto at = [&](int64_t buffer, int64_t offset) { return static_cast<std::byte *>(addresses[buffer]) + offset; };
  Places places{at(product.first.buffer, part.offsets.first), at(product.second.buffer, part.offsets.second),
                at(product.result.buffer, part.offsets.result),
                vectorOf(product) >= 0 ? at(vectorOf(product), part.offsets.vector) : nullptr,
                product.input >= 0 ? at(product.input, part.offsets.result) : nullptr};
  blas.check(multiply(places, workspace, stream), name);
}

} // namespace sluice::cuda
