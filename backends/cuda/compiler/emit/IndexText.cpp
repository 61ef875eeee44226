#include "backends/cuda/compiler/emit/IndexText.h"

#include <cmath>
#include <fmt/format.h>

namespace sluice::cuda {

using namespace mlir;
using namespace loops;

using Names = llvm::function_ref<std::string(AffineExpr variable, bool isWide)>;

/// The largest magnitude of any intermediate value of an index, in any order of its sums.
static double largest(const IndexSpace &space, const LinearIndex &index) {
  double sum = std::fabs(double(index.constant)), inside = 0;
  for (const LinearIndex::Term &term : index.terms) {
    Interval range = space.range(term.atom);
    sum += std::fabs(double(term.coefficient)) * std::fmax(std::fabs(double(range.low)), std::fabs(double(range.high)));
    if (auto division = dyn_cast<AffineBinaryOpExpr>(term.atom))
      inside = std::fmax(inside, largest(space, space.analyze(division.getLHS())));
  }
  return std::fmax(sum, inside);
}

static std::string textOf(const IndexSpace &space, const LinearIndex &index, bool isWide, Names name) {
  std::string sum, suffix = isWide ? "ll" : "";
  for (const LinearIndex::Term &term : index.terms) {
    std::string value;
    if (isa<AffineDimExpr>(term.atom)) {
      value = name(term.atom, isWide);
    } else {
      auto division = cast<AffineBinaryOpExpr>(term.atom);
      LinearIndex numerator = space.analyze(division.getLHS());
      value = fmt::format("{}({}, {}{})", space.range(numerator).low >= 0 ? "quotient" : "floordiv",
                          textOf(space, numerator, isWide, name),
                          cast<AffineConstantExpr>(division.getRHS()).getValue(), suffix);
    }
    if (term.coefficient != 1)
      value += fmt::format(" * {}{}", term.coefficient, suffix);
    sum += (sum.empty() ? "" : " + ") + value;
  }
  if (index.constant != 0 || sum.empty())
    sum += fmt::format("{}{}{}", sum.empty() ? "" : " + ", index.constant, suffix);
  return sum;
}

std::string indexText(const IndexSpace &space, AffineExpr index, Names name) {
  LinearIndex linear = space.analyze(index);
  return textOf(space, linear, /*isWide=*/largest(space, linear) > INT32_MAX, name);
}

} // namespace sluice::cuda
