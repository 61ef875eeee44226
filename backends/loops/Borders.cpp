#include "backends/loops/Borders.h"

#include "backends/loops/LinearIndex.h"
#include "ir/Dialect.h"
#include "llvm/Support/MathExtras.h"
#include <set>

namespace sluice::loops {

using namespace mlir;

/// The maximum number of terms of a sum. The code of a longer sum is a loop, in which conditions would remain.
static constexpr int64_t kMostTerms = 16;

static void collectConditions(const Steps &steps, SmallVectorImpl<AffineExpr> &conditions) {
  for (const Step &step : steps.steps)
    if (auto *guarded = std::get_if<Guarded>(&step.what)) {
      llvm::append_range(conditions, guarded->nonNegative);
      collectConditions(guarded->then, conditions);
    }
}

/// The index along `dim` from which a condition holds for all terms, or no longer does. None if the condition is not
/// linear, or does not depend on `dim`.
static std::optional<int64_t> borderOf(const IndexSpace &space, AffineExpr condition, AffineExpr dim) {
  LinearIndex index = space.analyze(condition);
  int64_t step = index.coefficientOf(dim);
  bool isLinear =
      llvm::all_of(index.terms, [](const LinearIndex::Term &term) { return isa<AffineDimExpr>(term.atom); });
  if (step == 0 || !isLinear)
    return std::nullopt;
  index.add(dim, -step);
  int64_t least = space.range(index).low; // of all terms
  return step > 0 ? llvm::divideCeilSigned(-least, step) : llvm::divideFloorSigned(least, -step) + 1;
}

Borders bordersOf(const Formula &formula) {
  auto type = dyn_cast<RankedTensorType>(formula.op->getResult(0).getType());
  if (!type || formula.reductions.size() != 1)
    return {};
  const Reduction &sum = *formula.reductions.front();
  int64_t terms = 1;
  for (int64_t extent : sum.extents)
    terms *= extent == ir::ElementBuilder::kRows ? kMostTerms + 1 : std::min(extent, kMostTerms + 1);
  if (terms > kMostTerms || formula.numDims != type.getRank() + sum.extents.size())
    return {};
  IndexSpace space(type.getContext());
  SmallVector<AffineExpr> dims;
  for (int64_t size : type.getShape())
    dims.push_back(space.addVariable({}, {0, ShapedType::isDynamic(size) ? 1 : size - 1}, /*keep=*/true));
  for (int64_t extent : sum.extents)
    dims.push_back(space.addVariable({}, {0, extent - 1}, /*keep=*/true));
  SmallVector<AffineExpr> conditions;
  collectConditions(sum.step, conditions);
  Borders borders(type.getRank());
  for (auto [number, size] : llvm::enumerate(type.getShape())) {
    std::set<int64_t> found;
    for (AffineExpr condition : conditions)
      if (std::optional<int64_t> border = borderOf(space, condition.replaceDims(dims), dims[number]))
        if (!ShapedType::isDynamic(size) && *border > 0 && *border < size)
          found.insert(*border);
    borders[number].assign(found.begin(), found.end());
  }
  return borders;
}

} // namespace sluice::loops
