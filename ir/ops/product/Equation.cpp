#include "ir/ops/product/Equation.h"

#include "ir/ops/Inference.h"

using namespace mlir;

namespace sluice::ir {

std::string Equation::summed() const {
  std::string letters;
  llvm::copy_if(a, std::back_inserter(letters), [&](char letter) { return isIn(b, letter) && !isIn(y, letter); });
  return letters;
}

Equation Equation::canonical() const {
  std::string order;
  for (char letter : a + b)
    if (!isIn(order, letter))
      order += letter;
  auto rename = [&](const std::string &letters) {
    std::string renamed;
    for (char letter : letters)
      renamed += char('a' + order.find(letter));
    return renamed;
  };
  return {rename(a), rename(b), rename(y)};
}

static LogicalResult checkOnce(MaybeLocation loc, StringRef letters, StringRef what) {
  for (auto [place, letter] : llvm::enumerate(letters))
    if (letters.find(letter) != place)
      return inferenceFailure(loc, "letter ", StringRef(&letter, 1), " is twice in ", what, " '", letters,
                              "': a product takes no diagonals");
  return success();
}

/// Letters of the result are in an operand, and letters of one operand alone are in the result.
static LogicalResult checkRoles(MaybeLocation loc, const Equation &equation) {
  for (char letter : equation.y)
    if (!Equation::isIn(equation.a + equation.b, letter))
      return inferenceFailure(loc, "letter ", StringRef(&letter, 1), " of the result '", equation.y,
                              "' is in no operand");
  for (char letter : equation.a + equation.b)
    if (Equation::isIn(equation.a, letter) != Equation::isIn(equation.b, letter) && !Equation::isIn(equation.y, letter))
      return inferenceFailure(loc, "letter ", StringRef(&letter, 1),
                              " is in one operand alone and not in the result of '", equation.str(),
                              "': sum over it first");
  return success();
}

FailureOr<Equation> Equation::parse(std::optional<Location> loc, StringRef text) {
  auto [operands, y] = text.split("->");
  auto [a, b] = operands.split(',');
  bool isProduct = operands.size() < text.size() && a.size() < operands.size();
  for (StringRef letters : {a, b, y})
    isProduct &= llvm::all_of(letters, [](char letter) { return letter >= 'a' && letter <= 'z'; });
  if (!isProduct) {
    (void)inferenceFailure(loc, "'", text, "' is no equation of a product such as 'ab,cb->ac', with a letter for each ",
                           "dimension of two operands and of the result");
    return failure();
  }
  Equation equation{a.str(), b.str(), y.str()};
  if (failed(checkOnce(loc, a, "an operand")) || failed(checkOnce(loc, b, "an operand")) ||
      failed(checkOnce(loc, y, "the result")) || failed(checkRoles(loc, equation)))
    return failure();
  return equation;
}

SummedLetters getSummedLetters(const Equation &equation, ArrayRef<int64_t> shapeOfA) {
  SummedLetters summed;
  for (bool ofRows : {true, false})
    for (char letter : equation.summed())
      if (int64_t size = shapeOfA[equation.a.find(letter)]; ShapedType::isDynamic(size) == ofRows) {
        summed.letters += letter;
        summed.sizes.push_back(size);
      }
  return summed;
}

} // namespace sluice::ir
