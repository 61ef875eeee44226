// Products: MatMul, Gemm and Einsum.
#include "frontend/onnx/import/Operators.h"
#include "frontend/onnx/operators/Casting.h"
#include "sluice/ops.h"

#include <algorithm>

namespace sluice::onnx {

/// An operand of a product. Integers are multiplied in f64, which is exact up to 2^53.
static Tensor factorOf(Node &node, std::size_t input) {
  Tensor x = node.weight(input);
  return is_float(x.dtype()) ? x : x.to(f64);
}

/// Sets the result of a product. Floats that become integers saturate; integers that become narrower wrap around.
static void setProduct(Node &node, const Tensor &product) {
  ElementType type = node.type(0);
  node.set(0, isFloat(type) ? product : wrapped(product.to(i64).to(*heldAs(type)), type), type);
}

void matrixProduct(Node &node) {
  Tensor a = factorOf(node, 0), b = factorOf(node, 1);
  setProduct(node, matmul(a, b));
}

/// alpha * A * B + beta * C, where A and B may be transposed. C broadcasts.
void generalProduct(Node &node) {
  Tensor a = factorOf(node, 0), b = factorOf(node, 1);
  double alpha = node.real("alpha", 1.0), beta = node.real("beta", 1.0);
  bool isTransposedA = node.integer("transA", 0) != 0, isTransposedB = node.integer("transB", 0) != 0;
  std::string ofA = isTransposedA ? "ka" : "ak", ofB = isTransposedB ? "bk" : "kb";
  Tensor y = einsum(ofA + "," + ofB + "->ab", a, b);
  if (alpha != 1.0)
    y = alpha * y;
  if (node.has(2) && beta != 0.0) {
    Tensor c = factorOf(node, 2);
    y = y + (beta == 1.0 ? c : beta * c);
  }
  setProduct(node, y);
}

//===- Einsum -----------------------------------------------------------------------------------------------------===//

namespace {

/// An equation in which letters stand for all dimensions, also for those of `...`.
struct SpelledEquation {
  std::vector<std::string> terms; ///< of the operands
  std::string result;
};

} // namespace

static constexpr std::string_view kEllipsis = "...";

static std::vector<std::string> splitAtCommas(std::string_view text) {
  std::vector<std::string> parts(1);
  for (char c : text) {
    if (c == ',')
      parts.emplace_back();
    else
      parts.back() += c;
  }
  return parts;
}

/// Replaces `...` by the last `count` letters of `all`.
static std::string spelled(std::string term, const std::string &all, std::size_t count) {
  if (std::size_t at = term.find(kEllipsis); at != std::string::npos)
    term.replace(at, kEllipsis.size(), all.substr(all.size() - count));
  return term;
}

/// The number of dimensions that `...` in a term means.
static std::size_t hiddenDimensions(const std::string &term, std::int64_t rank) {
  bool hasDots = term.find(kEllipsis) != std::string::npos;
  std::int64_t hidden = rank - std::int64_t(term.size()) + std::int64_t(hasDots ? kEllipsis.size() : 0);
  if (hidden < 0 || (!hasDots && hidden > 0))
    Node::fail("'" + term + "' does not fit an operand of " + std::to_string(rank) + " dimensions");
  return std::size_t(hidden);
}

static std::string letterFor(const std::string &equation, std::size_t count) {
  std::string letters;
  for (char letter : std::string_view("ZYXWVUTSRQPONMLKJIHGFEDCBAzyxwvutsrqponmlkjihgfedcba"))
    if (letters.size() < count && equation.find(letter) == std::string::npos)
      letters += letter;
  if (letters.size() < count)
    Node::fail("the equation '" + equation + "' has too many dimensions");
  return letters;
}

/// Without `->`, the result has the letters that occur once, in alphabetical order.
static std::string lettersThatOccurOnce(const std::vector<std::string> &terms) {
  std::string all, result;
  for (const std::string &term : terms)
    all += term;
  std::ranges::copy_if(all, std::back_inserter(result), [&](char letter) {
    return std::isalpha(static_cast<unsigned char>(letter)) && std::ranges::count(all, letter) == 1;
  });
  std::ranges::sort(result);
  return result;
}

static SpelledEquation readEquation(Node &node) {
  std::string equation = node.text("equation", "");
  std::erase(equation, ' ');
  std::size_t arrow = equation.find("->");
  SpelledEquation read{splitAtCommas(std::string_view(equation).substr(0, arrow)), ""};
  if (read.terms.size() != node.inputs())
    Node::fail("the equation '" + equation + "' is one of " + std::to_string(read.terms.size()) + " operands");
  std::size_t most = 0;
  std::vector<std::size_t> hidden;
  for (std::size_t i = 0; i < read.terms.size(); ++i) {
    hidden.push_back(hiddenDimensions(read.terms[i], node.rank(i)));
    most = std::max(most, hidden.back());
  }
  std::string dots = letterFor(equation, most);
  read.result = arrow == std::string::npos ? dots + lettersThatOccurOnce(read.terms)
                                           : spelled(equation.substr(arrow + 2), dots, dots.size());
  for (std::size_t i = 0; i < read.terms.size(); ++i)
    read.terms[i] = spelled(read.terms[i], dots, hidden[i]);
  return read;
}

/// Takes the diagonal of two dimensions with one letter: [..., n, n] is [..., n * n] in steps of n + 1.
static void takeDiagonals(Tensor &x, std::string &letters) {
  for (std::size_t first = 0; first < letters.size(); ++first) {
    std::size_t second = letters.find(letters[first], first + 1);
    if (second == std::string::npos)
      continue;
    Dim size = x.size(std::int64_t(first));
    if (!(size == x.size(std::int64_t(second))) || size.symbolic())
      Node::fail("the diagonal of " + x.shape().str() + " is not supported");
    std::vector<std::int64_t> order;
    std::vector<Dim> sizes;
    for (std::size_t i = 0; i < letters.size(); ++i)
      if (i != first && i != second) {
        order.push_back(std::int64_t(i));
        sizes.push_back(x.size(std::int64_t(i)));
      }
    order.insert(order.end(), {std::int64_t(first), std::int64_t(second)});
    sizes.push_back(size * size.size);
    x = permute(x, order).reshape(Shape(sizes)).slice(-1, 0, Tensor::toEnd, size.size + 1);
    char letter = letters[first];
    letters.erase(second, 1).erase(first, 1).push_back(letter);
    first = std::size_t(-1);
  }
}

/// The letters of a product that the result or a later operand has.
static std::string keptLetters(const std::string &letters, const SpelledEquation &equation, std::size_t next) {
  std::string later = equation.result, kept;
  for (std::size_t i = next; i < equation.terms.size(); ++i)
    later += equation.terms[i];
  for (char letter : letters)
    if (later.find(letter) != std::string::npos && kept.find(letter) == std::string::npos)
      kept += letter;
  return kept;
}

/// More than two operands are multiplied from the first to the last.
void einsteinSum(Node &node) {
  SpelledEquation equation = readEquation(node);
  std::vector<Tensor> operands;
  for (std::size_t i = 0; i < node.inputs(); ++i) {
    operands.push_back(factorOf(node, i));
    takeDiagonals(operands.back(), equation.terms[i]);
  }
  Tensor product = operands.front();
  std::string letters = equation.terms.front();
  if (operands.size() == 1)
    product = einsum(letters + "->" + equation.result, product);
  for (std::size_t i = 1; i < operands.size(); ++i) {
    bool isLast = i + 1 == operands.size();
    std::string next = isLast ? equation.result : keptLetters(letters + equation.terms[i], equation, i + 1);
    product = einsum(letters + "," + equation.terms[i] + "->" + next, product, operands[i]);
    letters = next;
  }
  setProduct(node, product);
}

} // namespace sluice::onnx
