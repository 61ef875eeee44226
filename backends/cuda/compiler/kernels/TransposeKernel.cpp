#include "backends/cuda/compiler/kernels/TransposeKernel.h"

#include "backends/cuda/compiler/emit/Prelude.h"
#include "backends/cuda/compiler/emit/ThreadEmitter.h"
#include "backends/loops/LinearIndex.h"
#include "backends/loops/Padding.h"
#include "backends/loops/ReadThrough.h"
#include "llvm/Support/MathExtras.h"
#include <algorithm>
#include <fmt/format.h>
#include <optional>

namespace sluice::cuda {

using namespace mlir;
using namespace loops;

// Size of a square; its rows in shared memory are one element longer, so that a column is in different banks.
static constexpr int64_t kSideOfSquare = 32, kThreadsOfSquare = 256;
// With shorter dimensions most of a square would be empty.
static constexpr int64_t kShort = 16;

namespace {

/// A dimension of the result, and its stride in elements.
struct Dim {
  int64_t size; ///< at capacity
  bool hasRows;
  int64_t inResult, inOperand;
};

struct Transposition {
  unsigned operand; ///< of the kernel
  int64_t offset;   ///< of the first element in it
  SmallVector<Dim> others;
  Dim ofResult, ofOperand; ///< the contiguous dimension of the result, and of the operand
};

} // namespace

/// The stride along each dimension, then the offset of the first element. None if the offset is not a linear function
/// of the indices.
static std::optional<SmallVector<int64_t>> stridesOf(const IndexSpace &space, AffineExpr offset, size_t dims) {
  LinearIndex linear = space.analyze(offset);
  SmallVector<int64_t> strides(dims + 1, 0);
  strides.back() = linear.constant;
  for (const LinearIndex::Term &term : linear.terms) {
    auto variable = dyn_cast<AffineDimExpr>(term.atom);
    if (!variable || term.coefficient < 0)
      return std::nullopt;
    strides[variable.getPosition()] = term.coefficient;
  }
  return strides;
}

/// Merges dimensions that are nested contiguously on both sides.
static SmallVector<Dim> merged(SmallVector<Dim> dims) {
  llvm::sort(dims, [](const Dim &a, const Dim &b) { return a.inResult > b.inResult; });
  SmallVector<Dim> all;
  for (const Dim &inner : dims) {
    Dim *outer = all.empty() ? nullptr : &all.back();
    bool isOne = outer && !outer->hasRows && !inner.hasRows && outer->inResult == inner.inResult * inner.size &&
                 outer->inOperand == inner.inOperand * inner.size;
    if (isOne)
      *outer = {outer->size * inner.size, false, inner.inResult, inner.inOperand};
    else
      all.push_back(inner);
  }
  return all;
}

static std::optional<Transposition> findTransposition(ir::KernelOp kernel, int64_t capacity) {
  auto yield = cast<ir::YieldOp>(kernel.getBody().front().getTerminator());
  if (yield->getNumOperands() != 1)
    return std::nullopt;
  Value result = yield->getOperand(0);
  auto type = cast<RankedTensorType>(result.getType());
  if (!paddedDims(type, PaddingOf::AllTiles).empty())
    return std::nullopt;
  IndexSpace space(kernel.getContext());
  SmallVector<AffineExpr> index;
  for (int64_t size : type.getShape())
    index.push_back(space.addVariable({}, {0, (ShapedType::isDynamic(size) ? capacity : size) - 1}, /*keep=*/true));
  Value moved = result;
  while (auto relayout = moved.getDefiningOp<ir::RelayoutOp>())
    moved = relayout.getOperand();
  Formulas formulas;
  PlaceInMemory place = placeInMemory(formulas, moved, index);
  auto operand = dyn_cast<BlockArgument>(place.memory);
  if (!operand)
    return std::nullopt;
  auto inResult = stridesOf(space, offsetIn(type, index, capacity), index.size());
  auto inOperand =
      stridesOf(space, offsetIn(cast<RankedTensorType>(operand.getType()), place.index, capacity), index.size());
  if (!inResult || !inOperand)
    return std::nullopt;
  SmallVector<Dim> dims;
  for (auto [dim, size] : llvm::enumerate(type.getShape())) {
    bool hasRows = ShapedType::isDynamic(size);
    if (size != 1)
      dims.push_back({hasRows ? capacity : size, hasRows, (*inResult)[dim], (*inOperand)[dim]});
  }
  Transposition found{operand.getArgNumber(), inOperand->back(), {}, {}, {}};
  for (const Dim &its : merged(std::move(dims))) {
    bool isLong = its.size >= kShort;
    if (its.inResult == 1 && its.inOperand > 1 && isLong)
      found.ofResult = its;
    else if (its.inOperand == 1 && its.inResult > 1 && isLong)
      found.ofOperand = its;
    else
      found.others.push_back(its);
  }
  bool areBoth = found.ofResult.inResult == 1 && found.ofOperand.inOperand == 1;
  return areBoth ? std::optional(found) : std::nullopt;
}

namespace {

/// A dimension of the grid.
struct Coordinate {
  std::string name;
  Dim dim;
  int64_t step; ///< elements of a task
  int64_t count() const { return llvm::divideCeilSigned(dim.size, step); }
};

/// How a block finds its square.
struct Squares {
  std::string places;   ///< declarations of the coordinates
  std::string from, to; ///< offsets of the first element in the operand and in the result
  double filled = 1;    ///< share of the squares' elements that exist
};

} // namespace

/// Squares of the two contiguous dimensions, and the other dimensions. Rows are outermost: a call with fewer rows runs
/// the first tasks only.
static SmallVector<Coordinate> coordinatesOf(const Transposition &found) {
  SmallVector<Coordinate> coordinates = {{"i", found.ofResult, kSideOfSquare}, {"j", found.ofOperand, kSideOfSquare}};
  for (auto [number, dim] : llvm::enumerate(found.others))
    coordinates.push_back({"d" + std::to_string(number), dim, 1});
  if (auto *rows = llvm::find_if(coordinates, [](const Coordinate &its) { return its.dim.hasRows; });
      rows != coordinates.end())
    std::rotate(rows, rows + 1, coordinates.end());
  return coordinates;
}

/// Sets the tasks of the function.
static Squares squaresOf(const Transposition &found, GridFunction &function) {
  SmallVector<Coordinate> coordinates = coordinatesOf(found);
  Squares squares{"", std::to_string(found.offset) + "ll", "0"};
  std::string left = "(Index)blockIdx.x";
  for (const Coordinate &its : coordinates) {
    bool isLast = &its == &coordinates.back();
    squares.places +=
        fmt::format("  const Index {} = {}{};\n", its.name, isLast ? left : fmt::format("({}) % {}", left, its.count()),
                    its.step == 1 ? "" : fmt::format(" * {}", its.step));
    if (!isLast)
      left = fmt::format("{} / {}", left, its.count());
    squares.from += fmt::format(" + {} * {}ll", its.name, its.dim.inOperand);
    squares.to += fmt::format(" + {} * {}ll", its.name, its.dim.inResult);
    squares.filled *= double(its.dim.size) / double(its.count() * its.step);
    if (its.dim.hasRows)
      function.rowsPerTask = its.step;
    else
      function.tasks *= its.count();
  }
  return squares;
}

/// An unsigned type of this size.
static const char *bitsOf(int64_t bytes) {
  return bytes == 1 ? "unsigned char" : bytes == 2 ? "unsigned short" : bytes == 4 ? "unsigned" : "unsigned long long";
}

bool writeTransposeKernel(ir::KernelOp kernel, StringRef name, int64_t capacity, GridKernel &into) {
  std::optional<Transposition> found = findTransposition(kernel, capacity);
  if (!found)
    return false;
  GridFunction function{name.str() + "_transpose", 1, 0, kThreadsOfSquare};
  Squares squares = squaresOf(*found, function);
  auto endOf = [](const Dim &dim) { return dim.hasRows ? std::string("rows") : std::to_string(dim.size); };
  int64_t bytes = ir::getElementBytes(cast<RankedTensorType>(kernel.getResult(0).getType()).getElementType());
  int64_t buffers = kernel.getNumOperands() + kernel.getNumResults() + 1;
  into.text += kernelHead(function.name, buffers, fmt::format("__launch_bounds__({}) ", kThreadsOfSquare)) +
               fmt::format("  __shared__ {0} square[{1}][{1} + 1];\n"
                           "  if (blockIdx.x >= tasks) return;\n{2}"
                           "  const Index endI = {3} - i, endJ = {4} - j;\n"
                           "  const int thread = threadIdx.x % {1}, first = threadIdx.x / {1};\n"
                           "  const {0} *from = (const {0} *)b{5} + {6};\n"
                           "  {0} *to = ({0} *)b{7} + {8};\n"
                           "  _Pragma(\"unroll\") for (int row = first; row < {1}; row += {9})\n"
                           "    if (row < endI && thread < endJ) square[row][thread] = from[row * {10}ll + thread];\n"
                           "  __syncthreads();\n"
                           "  _Pragma(\"unroll\") for (int row = first; row < {1}; row += {9})\n"
                           "    if (row < endJ && thread < endI) to[row * {11}ll + thread] = square[thread][row];\n"
                           "}}\n",
                           bitsOf(bytes), kSideOfSquare, squares.places, endOf(found->ofResult),
                           endOf(found->ofOperand), found->operand, squares.from, buffers - 2, squares.to,
                           kThreadsOfSquare / kSideOfSquare, found->ofResult.inOperand, found->ofOperand.inResult);
  into.functions.push_back(std::move(function));
  into.lanes = squares.filled;
  return true;
}

} // namespace sluice::cuda
