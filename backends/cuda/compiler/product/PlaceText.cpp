#include "backends/cuda/compiler/product/PlaceText.h"

#include "backends/cuda/compiler/emit/IndexText.h"
#include "llvm/Support/MathExtras.h"
#include <fmt/format.h>

namespace sluice::cuda {

using namespace mlir;
using namespace loops;

// Bits of a word: the last two mark rows and summed indices that do not exist.
static constexpr unsigned kRowBit = 30, kPlaceBit = 31;
// For longer dimensions, comparisons in each step cost less than computing bits.
static constexpr int64_t kMostPositions = 8;

PlaceText::PlaceText(const TiledProduct &product) : p(product), space(product.product.space) {
  for (size_t i = 0; i < p.product.dims.size(); ++i) {
    names.push_back("d" + std::to_string(i));
    inTile.push_back(getAffineDimExpr(i, space.getContext()));
  }
  p.batch.take(addVariable("element", p.batch.atCapacity()), inTile);
  for (const TileSide *side : {&p.m, &p.n})
    side->flat.take(addVariable("at", side->tiles() * side->tile), inTile);
  number = addVariable("number", llvm::divideCeilSigned(p.k.atCapacity(), p.depth));
  AffineExpr depth = addVariable("depth", p.depth);
  place = number * p.depth + depth;
  if (!p.beginsWithStep())
    place = place + addVariable("begin", p.k.atCapacity());
  p.k.take(place, inTile);
  giveBits();
}

AffineExpr PlaceText::addVariable(const char *name, int64_t size) {
  names.push_back(name);
  return space.addVariable(Count(this), {0, size - 1}, /*keep=*/true);
}

std::string PlaceText::textOf(AffineExpr index) const {
  return indexText(space, index, [&](AffineExpr variable, bool isWide) {
    return (isWide ? "(Index)" : "") + names[cast<AffineDimExpr>(variable).getPosition()];
  });
}

std::string PlaceText::of(AffineExpr index) const { return textOf(index.replaceDims(inTile)); }

const char *PlaceText::typeFor(const Parts &parts) const {
  auto isShort = [&](AffineExpr part) { return p.product.space.range(part).within(INT32_MIN / 2, INT32_MAX / 2); };
  return isShort(parts.side) && isShort(parts.depth) ? "int" : "Index";
}

static bool uses(AffineExpr expr, AffineExpr variable) {
  return expr.isFunctionOfDim(cast<AffineDimExpr>(variable).getPosition());
}

std::string PlaceText::numberOf(const std::string &step) const {
  return p.termsOfChunk && p.beginsWithStep()
             ? fmt::format("quotient(begin, ({}){}) + {}", p.numberType(), p.depth, step)
             : step;
}

std::string PlaceText::partOf(AffineExpr index, bool ofDepth) const {
  LinearIndex part, all = space.analyze(index.replaceDims(inTile));
  part.constant = ofDepth ? 0 : all.constant;
  for (const LinearIndex::Term &term : all.terms)
    if (ofDepth == !uses(term.atom, number))
      part.terms.push_back(term);
  return textOf(space.toExpr(part));
}

/// The only variable of the index, if there is exactly one.
static std::optional<unsigned> onlyVariable(AffineExpr index) {
  SmallVector<unsigned> variables;
  forEachVariable(index, [&](unsigned variable) { variables.push_back(variable); });
  return !variables.empty() && llvm::all_equal(variables) ? std::optional(variables.front()) : std::nullopt;
}

static unsigned variableOf(const Product::Dim &dim) { return cast<AffineDimExpr>(dim.variable).getPosition(); }

/// Assigns bits to the summed dimensions on which some condition depends alone, apart from the row or column.
void PlaceText::giveBits() {
  unsigned bit = 0;
  for (const Product::Dim &dim : p.k.dims) {
    auto tells = [&](const Bounded &bounded) { return onlyVariable(bounded.index.depth) == variableOf(dim); };
    bool isAsked =
        llvm::any_of(p.operands, [&](const TileOperand &operand) { return llvm::any_of(operand.bounded, tells); });
    if (!isAsked || dim.hasRows || dim.size > kMostPositions || bit + dim.size > kRowBit)
      continue;
    positions.push_back({&dim, bit});
    bit += dim.size;
  }
}

/// Null if it has no bits.
const PlaceText::Positions *PlaceText::positionsOf(const Bounded &bounded) const {
  std::optional<unsigned> variable = onlyVariable(bounded.index.depth);
  const auto *found = llvm::find_if(positions, [&](const Positions &its) { return variable == variableOf(*its.dim); });
  return found == positions.end() ? nullptr : found;
}

SmallVector<Bounded> PlaceText::compared(const TileOperand &operand) const {
  return llvm::to_vector(
      llvm::make_filter_range(operand.bounded, [&](const Bounded &its) { return !positionsOf(its); }));
}

std::string PlaceText::isWithin(const Bounded &bounded, const std::string &side, const std::string &depth) const {
  if (!bounded.most)
    return fmt::format("{} + {} >= 0", side, depth);
  const char *type = typeFor(bounded.index) == std::string("int") ? "unsigned" : "unsigned long long";
  return fmt::format("({0})({1} + {2}) <= ({0}){3}", type, side, depth, *bounded.most);
}

std::string PlaceText::setAbsent(const TileOperand &operand, const std::string &absent, const std::string &count,
                                 const std::string &indent) const {
  const TileSide &side = p.sideOf(operand);
  bool areWhole = !side.flat.hasRows && side.flat.inner % side.tile == 0;
  std::string exists = areWhole ? "" : "at < " + count;
  // If the result does not have an element, the operand may not have one either.
  for (AffineExpr condition : p.product.inResult)
    if (p.product.uses(condition, &operand == &p.operands[0] ? Product::M : Product::N))
      exists += fmt::format("{}{} >= 0", exists.empty() ? "" : " && ", of(condition));
  std::string text = fmt::format("{}{} = 1u << {}", indent, absent, kPlaceBit);
  text += exists.empty() ? ";\n" : fmt::format(" | ({} ? 0 : 1u << {});\n", exists, kRowBit);
  for (const Positions &its : positions) {
    std::string conditions;
    for (const Bounded &bounded : operand.bounded)
      if (positionsOf(bounded) == &its)
        conditions +=
            (conditions.empty() ? "" : " && ") + isWithin(bounded, of(bounded.index.side), textOf(bounded.index.depth));
    if (!conditions.empty())
      text += fmt::format(
          "{0}_Pragma(\"unroll\") for (int {1} = 0; {1} < {2}; ++{1})\n{0}  if (!({3})) {4} |= 1u << ({1} + {5});\n",
          indent, textOf(its.dim->variable), its.dim->size, conditions, absent, its.firstBit);
  }
  return text;
}

/// An index after the last one may exceed the outermost dimension. It then sets a bit of another dimension, which is
/// harmless, because it also sets kPlaceBit.
std::string PlaceText::asked() const {
  std::string text = fmt::format("1u << {}", kRowBit);
  for (const Positions &its : positions)
    text += fmt::format(" | 1u << ({} + {})", of(its.dim->variable), its.firstBit);
  std::string counts = p.hasWholeSteps() ? "" : fmt::format("{} < end", textOf(place));
  for (AffineExpr condition : p.always)
    counts += fmt::format("{}{} >= 0", counts.empty() ? "" : " && ", of(condition));
  return counts.empty() ? text : fmt::format("{} | ({} ? 0 : 1u << {})", text, counts, kPlaceBit);
}

} // namespace sluice::cuda
