// Products: of matrices, of rows with a weight, and by an equation. Each becomes one op. Its letters omit the
// dimensions along which an operand is broadcast, so that no operand is repeated in memory.
#include "frontend/graph/Call.h"

using namespace mlir;

namespace sluice {

using detail::Call;
using detail::Rows;

namespace {

/// An operand of a product, with one letter per dimension.
struct Factor {
  Tensor tensor;
  std::string letters;

  bool has(char letter) const { return letters.find(letter) != std::string::npos; }
  int64_t sizeOf(char letter) const { return Call::shape(tensor)[letters.find(letter)]; }
};

} // namespace

static bool contains(const std::string &letters, char letter) { return letters.find(letter) != std::string::npos; }

/// Removes dimensions of size 1 along which the other operand is larger.
static void dropBroadcast(Call &call, Factor &factor, const Factor &other) {
  SmallVector<int64_t> kept;
  std::string letters;
  for (auto [letter, size] : llvm::zip_equal(factor.letters, Call::shape(factor.tensor))) {
    if (size == 1 && other.has(letter) && other.sizeOf(letter) != 1)
      continue;
    kept.push_back(size);
    letters += letter;
  }
  factor = {call.reshape(factor.tensor, kept), letters};
}

/// Sums over the letters that are `unwanted`.
template <typename Unwanted> static void sumAlong(Call &call, Factor &factor, Unwanted unwanted) {
  SmallVector<int64_t> axes;
  std::string letters;
  for (auto [axis, letter] : llvm::enumerate(factor.letters)) {
    if (unwanted(letter))
      axes.push_back(int64_t(axis));
    else
      letters += letter;
  }
  if (!axes.empty())
    factor = {call.emit<ir::SumOp>({factor.tensor}, call.list("axes", axes)), letters};
}

/// The letter of the batch dimension; 0 if there is none.
static char rowsOf(const Factor &factor) {
  for (auto [letter, size] : llvm::zip_equal(factor.letters, Call::shape(factor.tensor)))
    if (ShapedType::isDynamic(size))
      return letter;
  return 0;
}

/// Letters that only one operand has and the result lacks are summed first.
static Tensor multiply(Call &call, Factor a, Factor b, const std::string &result) {
  if (char rowsOfA = rowsOf(a), rowsOfB = rowsOf(b); rowsOfA && rowsOfB && rowsOfA != rowsOfB)
    call.fail("two different dimensions of the product are the batch");
  dropBroadcast(call, a, b);
  dropBroadcast(call, b, a);
  sumAlong(call, a, [&](char letter) { return !b.has(letter) && !contains(result, letter); });
  sumAlong(call, b, [&](char letter) { return !a.has(letter) && !contains(result, letter); });
  ir::Equation equation = ir::Equation{a.letters, b.letters, result}.canonical();
  Attribute text = StringAttr::get(Call::type(a.tensor).getContext(), equation.str());
  return call.emit<ir::EinsumOp>({a.tensor, b.tensor}, call.attribute("equation", text));
}

//===- products of matrices ---------------------------------------------------------------------------------------===//

static constexpr int64_t kMostLetters = 26;

/// The letters of the leading dimensions of an operand: all of its dimensions except the last `own` ones. Operands
/// broadcast from the right, so these are the last letters of `all`.
static std::string leadingLetters(const std::string &all, int64_t rank, int64_t own) {
  return rank <= own ? "" : all.substr(all.size() - size_t(rank - own));
}

/// Merged rows may be the rows of a, or leading dimensions of both operands, but neither columns nor contracted
/// dimensions.
static void requireOuterRows(const Call &call, const Tensor &a, const Tensor &b) {
  int64_t ofA = Call::mergedAt(a), ofB = Call::mergedAt(b), rankOfA = Call::rank(a), rankOfB = Call::rank(b);
  bool isLeading = ofB >= 0 && ofB + 3 < rankOfB && rankOfA - ofA == rankOfB - ofB;
  bool isRowOfA = ofB < 0 && ofA >= 0 && ofA + 2 < rankOfA && (rankOfB <= 2 || ofA + 3 < rankOfA);
  if ((ofA >= 0 || ofB >= 0) && !isLeading && !isRowOfA)
    call.fail("the batch, merged with another dimension, can only be the rows of the first operand; use einsum");
}

/// Contracts the last dimension of a with the last (transposed) or second to last dimension of b; leading dimensions
/// broadcast. Letters of the equation: a rows, b contracted, c columns, d and following the leading dimensions.
static Tensor multiplyMatrices(Call &call, const Tensor &a, const Tensor &given, bool transposedB) {
  requireOuterRows(call, a, given);
  Tensor b = Call::rank(given) > 2 ? call.beside(a, given) : given;
  ArrayRef<int64_t> left = Call::shape(a), right = Call::shape(b);
  bool isRow = left.size() == 1, isColumn = right.size() == 1;
  int64_t inner = transposedB || isColumn ? right.back() : right[right.size() - 2];
  if (left.back() != inner)
    call.fail("contracting dimensions differ: " + call.print(left.back()) + " and " + call.print(inner));
  size_t leading = call.commonShape(left.drop_back(isRow ? 1 : 2), right.drop_back(isColumn ? 1 : 2)).size();
  if (int64_t(leading) + 3 > kMostLetters)
    call.fail("a product has at most " + std::to_string(kMostLetters) + " different dimensions");
  std::string all;
  for (size_t i = 0; i < leading; ++i)
    all += char('d' + i);
  std::string ofA = leadingLetters(all, Call::rank(a), 2) + (isRow ? "b" : "ab"),
              ofB = leadingLetters(all, Call::rank(b), 2) + (isColumn      ? "b"
                                                             : transposedB ? "cb"
                                                                           : "bc"),
              result = all + (isRow ? "" : "a") + (isColumn ? "" : "c");
  return multiply(call, {a, ofA}, {b, ofB}, result);
}

Tensor matmul(Arg a, Arg b) {
  Call call("matmul", a, b, Rows::merged);
  call.requireFloat(a.tensor);
  call.requireSameDType(a.tensor, b.tensor);
  if (Call::rank(a.tensor) == 0 || Call::rank(b.tensor) == 0)
    call.fail("a scalar has no matrix product; use *");
  return multiplyMatrices(call, a.tensor, b.tensor, false);
}

Tensor linear(Arg x, const Tensor &weight, const Tensor &bias) {
  Call call("linear", Call::present({x.tensor, weight, bias}), x.where, Rows::merged);
  call.requireFloat(x.tensor);
  call.requireSameDType(x.tensor, weight);
  call.requireRank("weight", weight, 2);
  if (Call::seenRank(x.tensor) < 2)
    call.fail("the input has " + std::to_string(Call::seenRank(x.tensor)) + " dimensions, not at least 2");
  Tensor y = multiplyMatrices(call, x.tensor, weight, true);
  return call.plusBias(y, bias, Call::rank(y) - 1);
}

//===- einsum -----------------------------------------------------------------------------------------------------===//

namespace {

/// The user's equation: the letters of each operand and of the result.
struct WrittenEquation {
  SmallVector<std::string> operands;
  std::string result;
};

} // namespace

static std::string quoted(char letter) { return std::string("'") + letter + "'"; }

static void checkLetters(const Call &call, const std::string &letters) {
  for (auto [place, letter] : llvm::enumerate(letters)) {
    if (!llvm::isAlpha(letter))
      call.fail("the equation has " + quoted(letter) + " where a letter" + (letter == '.' ? " or '...'" : "") +
                " should be");
    if (letters.find(letter) != place)
      call.fail("the letter " + quoted(letter) + " is twice in '" + letters + "': diagonals are not taken");
  }
}

/// Without `->`: the letters that occur once, in alphabetical order.
static std::string impliedResult(ArrayRef<std::string> operands) {
  std::string all = llvm::join(operands, ""), result;
  llvm::copy_if(all, std::back_inserter(result), [&](char letter) { return llvm::count(all, letter) == 1; });
  llvm::sort(result);
  return result;
}

static constexpr StringLiteral kDots = "...";

/// `count` letters that the equation does not use; for fewer dimensions, the last of these letters.
static std::string unusedLetters(const Call &call, const std::string &equation, int64_t count) {
  std::string letters;
  for (char letter : StringRef("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"))
    if (int64_t(letters.size()) < count && !contains(equation, letter))
      letters += letter;
  if (int64_t(letters.size()) < count)
    call.fail("a product has at most " + std::to_string(kMostLetters) + " different dimensions");
  return letters;
}

/// Replaces `...` by letters.
static void spellDots(const Call &call, WrittenEquation &written, bool hasResult, ArrayRef<Tensor> operands) {
  auto dotsIn = [](const std::string &letters) { return StringRef(letters).contains(kDots); };
  SmallVector<int64_t> counts;
  for (auto [letters, operand] : llvm::zip_equal(written.operands, operands)) {
    counts.push_back(dotsIn(letters) ? Call::seenRank(operand) - int64_t(letters.size() - kDots.size()) : 0);
    if (counts.back() < 0)
      call.fail("'" + letters + "' are " + std::to_string(letters.size() - kDots.size()) + " letters for " +
                std::to_string(Call::seenRank(operand)) + " dimensions");
  }
  std::string all = unusedLetters(call, llvm::join(written.operands, "") + written.result, *llvm::max_element(counts));
  auto spell = [&](std::string &letters, int64_t count) {
    if (dotsIn(letters))
      letters.replace(letters.find(kDots), kDots.size(), all.substr(all.size() - size_t(count)));
  };
  for (auto [letters, count] : llvm::zip_equal(written.operands, counts))
    spell(letters, count);
  spell(written.result, int64_t(all.size()));
  if (!hasResult)
    written.result = all;
}

static WrittenEquation read(const Call &call, const std::string &equation, ArrayRef<Tensor> operands) {
  std::string text;
  llvm::copy_if(equation, std::back_inserter(text), [](char letter) { return letter != ' '; });
  auto [inputs, result] = StringRef(text).split("->");
  SmallVector<StringRef> parts;
  inputs.split(parts, ',');
  if (parts.size() != operands.size())
    call.fail("the equation '" + equation + "' is one of " + std::to_string(parts.size()) + " operands; there are " +
              std::to_string(operands.size()));
  bool hasResult = inputs.size() != text.size();
  WrittenEquation written{llvm::map_to_vector(parts, [](StringRef part) { return part.str(); }), result.str()};
  SmallVector<std::string> named = written.operands;
  spellDots(call, written, hasResult, operands);
  for (const std::string &letters : written.operands)
    checkLetters(call, letters);
  if (!hasResult)
    written.result += impliedResult(named);
  checkLetters(call, written.result);
  for (auto [letters, operand] : llvm::zip_equal(written.operands, operands))
    if (int64_t(letters.size()) != Call::seenRank(operand))
      call.fail("'" + letters + "' are " + std::to_string(letters.size()) + " letters for " +
                std::to_string(Call::seenRank(operand)) + " dimensions");
  for (char letter : written.result)
    if (!contains(llvm::join(written.operands, ""), letter))
      call.fail("the letter " + quoted(letter) + " of the result is in no operand");
  return written;
}

/// Replaces the letter of merged rows by two letters in all operands.
static void splitRows(Call &call, WrittenEquation &written, MutableArrayRef<Tensor> operands) {
  static constexpr char behindRows = '0';
  auto merged = llvm::find_if(operands, detail::Access::isMerged);
  if (merged == operands.end())
    return;
  Tensor first = *merged;
  int64_t times = Call::shape(first)[Call::mergedAt(first) + 1];
  char rows = written.operands[size_t(merged - operands.begin())][size_t(Call::mergedAt(first))];
  auto split = [&](std::string &letters) {
    if (size_t at = letters.find(rows); at != std::string::npos)
      letters.insert(at + 1, 1, behindRows);
  };
  for (auto [operand, letters] : llvm::zip_equal(operands, written.operands)) {
    int64_t at = int64_t(letters.find(rows));
    if (Call::mergedAt(operand) != at && (at >= 0 || Call::mergedAt(operand) >= 0)) {
      if (at < 0 || Call::mergedAt(operand) >= 0 || Call::shape(operand)[at] != 1)
        call.fail("the letter " + quoted(rows) + " has two sizes: " + call.print(first) + " and " +
                  call.print(operand));
      SmallVector<int64_t> sizes(Call::shape(operand));
      sizes.insert(sizes.begin() + at, 1);
      operand = call.reshape(operand, sizes);
    } else if (at >= 0 && Call::shape(operand)[at + 1] != times) {
      call.fail("the letter " + quoted(rows) + " has two sizes: " + call.print(first) + " and " + call.print(operand));
    }
    split(letters);
  }
  split(written.result);
}

Tensor einsum(const std::string &equation, Arg a, Arg b) {
  Call call("einsum", a, b, Rows::merged);
  call.requireFloat(a.tensor);
  call.requireSameDType(a.tensor, b.tensor);
  SmallVector<Tensor> operands{a.tensor, b.tensor};
  WrittenEquation written = read(call, equation, operands);
  splitRows(call, written, operands);
  Factor first{operands[0], written.operands[0]}, second{operands[1], written.operands[1]};
  std::string all;
  for (char letter : first.letters + second.letters) {
    if (!contains(all, letter))
      all += letter;
    if (!first.has(letter) || !second.has(letter))
      continue;
    int64_t left = first.sizeOf(letter), right = second.sizeOf(letter);
    if (left != right && left != 1 && right != 1)
      call.fail("the letter " + quoted(letter) + " has two sizes: " + call.print(left) + " and " + call.print(right));
  }
  if (int64_t(all.size()) > kMostLetters)
    call.fail("a product has at most " + std::to_string(kMostLetters) + " different dimensions");
  return multiply(call, first, second, written.result);
}

Tensor einsum(const std::string &equation, Arg x) {
  Call call("einsum", x, Rows::merged);
  call.requireFloat(x.tensor);
  SmallVector<Tensor> operands{x.tensor};
  WrittenEquation written = read(call, equation, operands);
  splitRows(call, written, operands);
  Factor factor{operands[0], written.operands[0]};
  sumAlong(call, factor, [&](char letter) { return !contains(written.result, letter); });
  return call.permute(factor.tensor, llvm::map_to_vector(written.result, [&](char letter) {
                        return int64_t(factor.letters.find(letter));
                      }));
}

} // namespace sluice
