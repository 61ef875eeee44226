#include "backends/loops/LinearIndex.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/raw_ostream.h"
#include <algorithm>
#include <numeric>
#include <string>

namespace sluice::loops {

using namespace mlir;

static int64_t floorOf(int64_t a, int64_t b) { return a >= 0 ? a / b : -((-a + b - 1) / b); }

// Saturates at a quarter of the range, so that sums of a few bounds do not overflow. A wider bound only costs speed.
static int64_t multiply(int64_t a, int64_t b) {
  int64_t product;
  if (!llvm::MulOverflow(a, b, product))
    return product;
  return (a < 0) == (b < 0) ? INT64_MAX / 4 : INT64_MIN / 4;
}

static Interval operator*(Interval a, int64_t factor) {
  int64_t x = multiply(a.low, factor), y = multiply(a.high, factor);
  return {std::min(x, y), std::max(x, y)};
}
static Interval operator+(Interval a, Interval b) { return {a.low + b.low, a.high + b.high}; }

void LinearIndex::add(AffineExpr atom, int64_t coefficient) {
  auto *term = llvm::find_if(terms, [&](const Term &t) { return t.atom == atom; });
  if (term == terms.end()) {
    if (coefficient != 0)
      terms.push_back({atom, coefficient});
    return;
  }
  term->coefficient += coefficient;
  if (term->coefficient == 0)
    terms.erase(term);
}

void LinearIndex::add(const LinearIndex &other, int64_t factor) {
  constant += other.constant * factor;
  for (const Term &term : other.terms)
    add(term.atom, term.coefficient * factor);
}

int64_t LinearIndex::coefficientOf(AffineExpr atom) const {
  for (const Term &term : terms)
    if (term.atom == atom)
      return term.coefficient;
  return 0;
}

AffineExpr IndexSpace::addVariable(Count value, Interval range, bool keep) {
  variables.push_back({value, range, keep});
  return getAffineDimExpr(variables.size() - 1, context);
}

AffineExpr IndexSpace::addElement(Element element, Count same, Interval range) {
  variables.push_back({same, range, /*kept=*/false, element});
  return getAffineDimExpr(variables.size() - 1, context);
}

void IndexSpace::setRange(AffineExpr variable, Interval range) {
  variables[cast<AffineDimExpr>(variable).getPosition()].range = range;
}

Count IndexSpace::valueOf(AffineExpr variable) const {
  return variables[cast<AffineDimExpr>(variable).getPosition()].value;
}

Element IndexSpace::elementOf(AffineExpr variable) const {
  return variables[cast<AffineDimExpr>(variable).getPosition()].element;
}

bool IndexSpace::usesLane(AffineExpr expr) const {
  bool found = false;
  forEachVariable(expr, [&](unsigned number) { found |= !variables[number].value; });
  return found;
}

bool IndexSpace::isContiguous(AffineExpr offset, AffineExpr lane) const {
  LinearIndex index = analyze(offset);
  bool once = index.coefficientOf(lane) == 1;
  index.add(lane, -1);
  return once && !usesLane(toExpr(index));
}

LinearIndex IndexSpace::analyze(AffineExpr expr) const {
  LinearIndex index;
  if (auto constant = dyn_cast<AffineConstantExpr>(expr)) {
    index.constant = constant.getValue();
    return index;
  }
  if (auto dim = dyn_cast<AffineDimExpr>(expr)) {
    const Variable &variable = variables[dim.getPosition()];
    if (variable.range.low == variable.range.high && !variable.kept)
      index.constant = variable.range.low;
    else
      index.add(expr, 1);
    return index;
  }
  auto binary = cast<AffineBinaryOpExpr>(expr);
  LinearIndex left = analyze(binary.getLHS()), right = analyze(binary.getRHS());
  if (expr.getKind() == AffineExprKind::Add) {
    left.add(right, 1);
    return left;
  }
  if (expr.getKind() == AffineExprKind::Mul) {
    const LinearIndex &factor = right.terms.empty() ? right : left;
    assert(factor.terms.empty() && "index expressions multiply by constants only");
    index.add(right.terms.empty() ? left : right, factor.constant);
    return index;
  }
  assert(right.terms.empty() && right.constant > 0 && "index expressions divide by positive constants only");
  int64_t divisor = right.constant;
  switch (expr.getKind()) {
  case AffineExprKind::FloorDiv:
    return floorDiv(left, divisor);
  case AffineExprKind::CeilDiv:
    left.constant += divisor - 1;
    return floorDiv(left, divisor);
  case AffineExprKind::Mod:
    index = left;
    index.add(floorDiv(left, divisor), -divisor);
    return index;
  default:
    llvm_unreachable("symbols do not occur in index expressions");
  }
}

// Variables by number, then floordivs by divisor and text: an order that does not depend on addresses.
static bool comesBefore(AffineExpr a, AffineExpr b) {
  auto rank = [](AffineExpr atom) -> std::pair<int64_t, int64_t> {
    if (auto dim = dyn_cast<AffineDimExpr>(atom))
      return {0, dim.getPosition()};
    return {1, cast<AffineConstantExpr>(cast<AffineBinaryOpExpr>(atom).getRHS()).getValue()};
  };
  if (rank(a) != rank(b) || isa<AffineDimExpr>(a))
    return rank(a) < rank(b);
  std::string left, right;
  llvm::raw_string_ostream(left) << a;
  llvm::raw_string_ostream(right) << b;
  return left < right;
}

AffineExpr IndexSpace::toExpr(const LinearIndex &index) const {
  SmallVector<LinearIndex::Term> terms(index.terms.begin(), index.terms.end());
  llvm::sort(terms, [&](const auto &a, const auto &b) { return comesBefore(a.atom, b.atom); });
  AffineExpr sum = getAffineConstantExpr(index.constant, context);
  for (const LinearIndex::Term &term : terms)
    sum = sum + term.atom * term.coefficient;
  return sum;
}

// Splits `index` into a multiple of `step` and the rest. Returns false if the multiple has no variable.
static bool splitByStep(const LinearIndex &index, int64_t step, LinearIndex &multiple, LinearIndex &rest) {
  for (const LinearIndex::Term &term : index.terms)
    (term.coefficient % step == 0 ? multiple : rest).add(term.atom, term.coefficient);
  int64_t below = floorOf(index.constant, step);
  multiple.constant = below * step;
  rest.constant = index.constant - multiple.constant;
  return !multiple.terms.empty();
}

LinearIndex IndexSpace::floorDiv(const LinearIndex &index, int64_t divisor) const {
  if (divisor == 1)
    return index;
  LinearIndex quotient, rest;
  for (const LinearIndex::Term &term : index.terms) {
    bool whole = term.coefficient % divisor == 0;
    (whole ? quotient : rest).add(term.atom, whole ? term.coefficient / divisor : term.coefficient);
  }
  quotient.constant = floorOf(index.constant, divisor);
  rest.constant = index.constant - quotient.constant * divisor;

  Interval restRange = range(rest);
  int64_t bucket = floorOf(restRange.low, divisor);
  if (bucket == floorOf(restRange.high, divisor)) {
    quotient.constant += bucket;
    return quotient;
  }

  SmallVector<int64_t> steps;
  for (const LinearIndex::Term &term : rest.terms)
    if (int64_t step = std::gcd(term.coefficient, divisor); step > 1 && !llvm::is_contained(steps, step))
      steps.push_back(step);
  llvm::sort(steps, std::greater<>());
  for (int64_t step : steps) {
    LinearIndex multiple, below;
    if (!splitByStep(rest, step, multiple, below) || !range(below).within(0, step - 1))
      continue;
    LinearIndex divided;
    for (const LinearIndex::Term &term : multiple.terms)
      divided.add(term.atom, term.coefficient / step);
    divided.constant = multiple.constant / step;
    quotient.add(floorDiv(divided, divisor / step), 1);
    return quotient;
  }

  // (x floordiv a + y) floordiv b = (x + a y) floordiv (a b)
  for (const LinearIndex::Term &term : rest.terms) {
    auto inner = dyn_cast<AffineBinaryOpExpr>(term.atom);
    if (!inner || term.coefficient != 1)
      continue;
    int64_t a = cast<AffineConstantExpr>(inner.getRHS()).getValue();
    LinearIndex numerator = analyze(inner.getLHS());
    numerator.add(rest, a);
    numerator.add(term.atom, -a);
    quotient.add(floorDiv(numerator, a * divisor), 1);
    return quotient;
  }

  AffineExpr atom =
      getAffineBinaryOpExpr(AffineExprKind::FloorDiv, toExpr(rest), getAffineConstantExpr(divisor, context));
  if (atom.getKind() == AffineExprKind::FloorDiv) {
    quotient.add(atom, 1);
    return quotient;
  }
  quotient.add(analyze(atom), 1);
  return quotient;
}

Interval IndexSpace::rangeOfAtom(AffineExpr atom) const {
  if (auto dim = dyn_cast<AffineDimExpr>(atom))
    return variables[dim.getPosition()].range;
  auto quotient = cast<AffineBinaryOpExpr>(atom);
  int64_t divisor = cast<AffineConstantExpr>(quotient.getRHS()).getValue();
  Interval inner = range(quotient.getLHS());
  return {floorOf(inner.low, divisor), floorOf(inner.high, divisor)};
}

Interval IndexSpace::plainRange(const LinearIndex &index) const {
  Interval sum{index.constant, index.constant};
  for (const LinearIndex::Term &term : index.terms)
    sum = sum + rangeOfAtom(term.atom) * term.coefficient;
  return sum;
}

// A sum may contain remainders, whose range is smaller than that of their terms: k (x - D (x floordiv D)) is in k [0,
// D), and k (x floordiv a - b (x floordiv (a b))) is in k [0, b). Finds these; the rest is bounded term by term.
Interval IndexSpace::rangeOfRemainders(const LinearIndex &index) const {
  for (const LinearIndex::Term &term : index.terms) {
    auto quotient = dyn_cast<AffineBinaryOpExpr>(term.atom);
    if (!quotient || term.coefficient >= 0)
      continue;
    int64_t divisor = cast<AffineConstantExpr>(quotient.getRHS()).getValue();
    LinearIndex numerator = analyze(quotient.getLHS());

    for (const LinearIndex::Term &partner : index.terms) {
      auto smaller = dyn_cast<AffineBinaryOpExpr>(partner.atom);
      if (!smaller || partner.coefficient <= 0 || smaller.getLHS() != quotient.getLHS())
        continue;
      int64_t a = cast<AffineConstantExpr>(smaller.getRHS()).getValue();
      if (divisor % a != 0 || term.coefficient != -partner.coefficient * (divisor / a))
        continue;
      LinearIndex rest = index;
      rest.add(term.atom, -term.coefficient);
      rest.add(partner.atom, -partner.coefficient);
      return Interval{0, divisor / a - 1} * partner.coefficient + rangeOfRemainders(rest);
    }

    int64_t k = -term.coefficient / divisor;
    if (k * divisor != -term.coefficient)
      continue;
    bool contained = llvm::all_of(numerator.terms, [&](const LinearIndex::Term &part) {
      return index.coefficientOf(part.atom) == k * part.coefficient;
    });
    if (!contained)
      continue;
    LinearIndex rest = index;
    rest.add(term.atom, -term.coefficient);
    rest.add(numerator, -k);
    return Interval{0, divisor - 1} * k + rangeOfRemainders(rest);
  }
  return plainRange(index);
}

Interval IndexSpace::range(const LinearIndex &index) const {
  LinearIndex negated;
  negated.add(index, -1);
  Interval plus = rangeOfRemainders(index), minus = rangeOfRemainders(negated) * -1;
  return {std::max(plus.low, minus.low), std::min(plus.high, minus.high)};
}

void forEachVariable(AffineExpr expr, llvm::function_ref<void(unsigned)> found) {
  expr.walk([&](AffineExpr part) {
    if (auto dim = dyn_cast<AffineDimExpr>(part))
      found(dim.getPosition());
  });
}

} // namespace sluice::loops
