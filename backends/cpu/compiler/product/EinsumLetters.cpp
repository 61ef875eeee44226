#include "backends/cpu/compiler/product/EinsumLetters.h"

#include "backends/cpu/compiler/product/Contraction.h"
#include "ir/Layout.h"
#include "ir/ops/Inference.h"

namespace sluice::cpu {

using namespace mlir;
using ir::Equation;
using ir::tensorOf;

bool isInPanels(RankedTensorType type) {
  int64_t panel = panelOfFirstDim(type);
  return panel != 0 && type.getRank() == 2 && ir::liesAs(type, getMatrixPanels(type.getContext(), panel));
}

/// Whether whole vectors of this type's elements fill its panels.
static bool vectorsFillPanels(RankedTensorType type, const Target &target) {
  return panelOfFirstDim(type) % lanesOfSums(type, target) == 0;
}

std::string lettersInMemory(RankedTensorType type, StringRef letters) {
  std::string order;
  if (ir::liesAs(type, AffineMap())) // dimensions of size 1 may be anywhere
    type = ir::withLayout(type, AffineMap());
  SmallVector<ir::PhysicalDim> dims = *ir::getPhysicalDims(type);
  for (const ir::PhysicalDim &dim : dims)
    if (dim.kind == ir::PhysicalDim::Whole && type.getDimSize(dim.logical) != 1)
      order += letters[dim.logical];
  return order;
}

bool isLoopNest(ir::EinsumOp op) {
  Equation equation = op.getLetters();
  return equation.summed().empty() || llvm::none_of(equation.y, [&](char letter) { return equation.isFree(letter); });
}

/// The innermost free letter of the result in memory, followed only by dimensions of size 1.
static char innermostFree(const Equation &equation, RankedTensorType y) {
  if (ir::liesAs(y, AffineMap()))
    y = ir::withLayout(y, AffineMap());
  SmallVector<ir::PhysicalDim> dims = *ir::getPhysicalDims(y);
  for (const ir::PhysicalDim &dim : llvm::reverse(dims)) {
    if (char letter = equation.y[dim.logical]; equation.isFree(letter))
      return letter;
    if (y.getDimSize(dim.logical) != 1)
      break;
  }
  return 0;
}

EinsumLetters::EinsumLetters(ir::EinsumOp op) : equation(op.getLetters()), a(op.getA()), b(op.getB()), y(op.getY()) {
  summed = ir::getSummedLetters(equation, tensorOf(a).getShape()).letters;
  if (freeIn(equation.b).empty())
    return;
  lanes = innermostFree(equation, tensorOf(y));
  swapped = lanes && Equation::isIn(equation.a, lanes) && !freeIn(equation.a).empty();
}

std::string EinsumLetters::freeIn(StringRef letters) const {
  std::string free;
  llvm::copy_if(letters, std::back_inserter(free), [&](char letter) { return equation.isFree(letter); });
  return free;
}

bool EinsumLetters::isMatrix(StringRef letters) const {
  return letters.size() == 2 && summed.size() == 1 && Equation::isIn(letters, summed[0]) && freeIn(letters).size() == 1;
}

bool EinsumLetters::canStore(const Target &target) const {
  RankedTensorType type = tensorOf(y);
  if (isInPanels(type))
    return lanes == equation.y[0] && swapped && freeIn(equation.y).size() == 2 && vectorsFillPanels(type, target);
  return ir::isUncut(type) && (lanes || freeIn(equation.b).empty());
}

static bool isChained(StringRef inMemory, StringRef chain, ArrayRef<int64_t> shape, StringRef letters) {
  std::string large;
  llvm::copy_if(chain, std::back_inserter(large), [&](char letter) { return shape[letters.find(letter)] != 1; });
  return inMemory.contains(large);
}

static bool isChained(RankedTensorType type, StringRef letters, StringRef chain) {
  return isChained(lettersInMemory(type, letters), chain, type.getShape(), letters);
}

bool EinsumLetters::canReadLeft() const {
  RankedTensorType type = tensorOf(left());
  return ir::isUncut(type) && isChained(type, lettersOfLeft(), summed);
}

bool EinsumLetters::canReadRight(const Target &target) const {
  RankedTensorType type = tensorOf(right());
  StringRef letters = lettersOfRight();
  if (isInPanels(type))
    return isMatrix(letters) && (!equation.isFree(letters[0]) || vectorsFillPanels(type, target));
  return ir::isUncut(type) && isChained(type, letters, summed);
}

//===- layouts that products ask for ------------------------------------------------------------------------------===//

static AffineMap layoutOf(StringRef inMemory, StringRef letters, MLIRContext *context) {
  SmallVector<unsigned> order;
  for (char letter : inMemory)
    order.push_back(unsigned(letters.find(letter)));
  return AffineMap::getPermutationMap(order, context);
}

/// Row-major, but for the summed letters, which follow the first of them.
static LayoutPreference chained(RankedTensorType type, StringRef letters, StringRef summed) {
  std::string order = letters.str();
  if (!isChained(ir::withLayout(type, AffineMap()), letters, summed)) {
    order.clear();
    for (char letter : letters) {
      if (!Equation::isIn(summed, letter))
        order += letter;
      else if (!Equation::isIn(order, letter))
        order += summed;
    }
  }
  return {layoutOf(order, letters, type.getContext()), true};
}

/// Row-major, but with a free letter innermost.
static LayoutPreference storable(const EinsumLetters &product) {
  RankedTensorType y = tensorOf(product.y);
  std::string order = product.equation.y, free = product.freeIn(order);
  if (!product.freeIn(product.equation.b).empty() && !innermostFree(product.equation, ir::withLayout(y, AffineMap()))) {
    order.erase(order.find(free.back()), 1);
    order += free.back();
  }
  return {layoutOf(order, product.equation.y, y.getContext()), true};
}

LayoutPreference preferredLayoutOfEinsum(ir::EinsumOp op, bool isResult, unsigned number, const Target &target) {
  if (isLoopNest(op))
    return {};
  EinsumLetters product(op);
  if (isResult)
    return op.getY().getType().getRank() > 2 || !product.canStore(target) ? storable(product) : LayoutPreference();
  RankedTensorType type = tensorOf(op->getOperand(number));
  const std::string &letters = number == 0 ? product.equation.a : product.equation.b;
  bool isRight = (number == 1) != product.swapped;
  bool isWeight = isRight && product.isMatrix(letters) && product.equation.isFree(letters[0]) && type.hasStaticShape();
  if (isWeight && product.canReadRight(target))
    return {getMatrixPanels(op.getContext(), panelWidth(type.getDimSize(0), lanesOfSums(type, target))), false};
  bool canRead = isRight ? product.canReadRight(target) : product.canReadLeft();
  return number == 0 || !canRead ? chained(type, letters, product.summed) : LayoutPreference();
}

} // namespace sluice::cpu
