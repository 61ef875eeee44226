// A scan of a module's text before MLIR's parser sees it, in constant stack: it bounds everything that the parser, or
// whoever walks what it builds, recurses on.
//
//   ( [ { <          the parser recurses on each: at most kMaxNesting deep
//   #a = ..., !a =   an alias nests what it stands for, without brackets where it is used: its depth counts there too
//   - + * mod        the affine parser recurses on each operator: at most kMaxOperators between brackets and commas
//   tensor<4x5xf32>  element counts are computed in 64 bits without checks: the product must stay below kMaxElements
#include "ir/ParseGuard.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/MathExtras.h"

namespace sluice::ir {

namespace {
class TextScan {
public:
  TextScan(llvm::StringRef text, llvm::StringRef name) : text(text), name(name) {}
  llvm::Error run();

private:
  struct Bracket {
    char open;
    unsigned operators = 0;
  };

  void fail(size_t at, const llvm::Twine &message) {
    if (problem.empty())
      problem = message.str(), problemAt = at;
  }
  char peek(size_t ahead = 0) const { return position + ahead < text.size() ? text[position + ahead] : '\0'; }
  llvm::StringRef takeWord();
  void skipSpace();
  void skipString();
  void open(char bracket);
  void close(char bracket);
  void countOperator();
  void number();
  void alias();
  void word();
  void dimensions();

  llvm::StringRef text, name;
  size_t position = 0;
  llvm::SmallVector<Bracket> brackets;
  llvm::StringMap<unsigned> aliasDepth;
  llvm::StringRef defining; // the alias whose definition is being read, empty outside of one
  unsigned definingDepth = 0;
  bool complete = false; // the token before could end a value: what starts an op now also ends a definition
  std::string problem;
  size_t problemAt = 0;
};
} // namespace

static bool isWordCharacter(char c) { return llvm::isAlnum(c) || c == '_' || c == '$' || c == '.'; }

static char closing(char open) { return open == '(' ? ')' : open == '[' ? ']' : open == '{' ? '}' : '>'; }

llvm::StringRef TextScan::takeWord() {
  size_t start = position;
  while (isWordCharacter(peek()))
    ++position;
  return text.slice(start, position);
}

void TextScan::skipSpace() {
  while (position < text.size()) {
    if (llvm::isSpace(peek())) {
      ++position;
    } else if (peek() == '/' && peek(1) == '/') {
      position = std::min(text.find('\n', position), text.size());
    } else {
      return;
    }
  }
}

void TextScan::skipString() {
  size_t start = position++;
  while (peek() != '"') {
    if (position >= text.size() || peek() == '\n')
      return fail(start, "this string has no end");
    position += peek() == '\\' ? 2 : 1;
  }
  ++position;
}

void TextScan::open(char bracket) {
  brackets.push_back({bracket});
  definingDepth = std::max(definingDepth, unsigned(brackets.size()));
  if (brackets.size() > kMaxNesting)
    fail(position, "nested more than " + llvm::Twine(kMaxNesting) + " deep");
  ++position;
}

void TextScan::close(char bracket) {
  if (!brackets.empty() && closing(brackets.back().open) == bracket)
    brackets.pop_back();
  ++position;
}

void TextScan::countOperator() {
  if (!brackets.empty() && brackets.back().open != '{' && ++brackets.back().operators > kMaxOperators)
    fail(position, "an expression of more than " + llvm::Twine(kMaxOperators) + " operators");
}

void TextScan::number() {
  size_t start = position;
  takeWord();
  if (position - start > kMaxNumberLength)
    fail(start, "a number of " + llvm::Twine(position - start) + " characters");
}

/// `#name` or `!name`: a definition when `=` follows at the top level, a use otherwise.
void TextScan::alias() {
  size_t start = position++;
  takeWord();
  llvm::StringRef spelling = text.slice(start, position);
  size_t after = position;
  if (brackets.empty()) {
    skipSpace();
    if (peek() == '=') {
      ++position;
      defining = spelling;
      definingDepth = 0;
      aliasDepth[defining] = 0;
      complete = false;
      return;
    }
    position = after;
  }
  unsigned depth = unsigned(brackets.size()) + aliasDepth.lookup(spelling) + 1;
  definingDepth = std::max(definingDepth, depth);
  if (depth > kMaxNesting)
    fail(start, "nested more than " + llvm::Twine(kMaxNesting) + " deep through the alias '" + spelling + "'");
}

void TextScan::word() {
  llvm::StringRef spelling = takeWord();
  if (spelling == "mod" || spelling == "floordiv" || spelling == "ceildiv")
    countOperator();
  if (spelling != "tensor" && spelling != "vector" && spelling != "memref")
    return;
  skipSpace();
  if (peek() != '<')
    return;
  open('<');
  dimensions();
}

/// The list that opens a shaped type, as in `4x?x[8]xf32`.
void TextScan::dimensions() {
  size_t start = position;
  int64_t elements = 1;
  for (unsigned rank = 1; problem.empty(); ++rank) {
    skipSpace();
    bool scalable = peek() == '[';
    position += scalable;
    uint64_t size = 1;
    if (peek() == '?') {
      ++position;
    } else if (llvm::isDigit(peek())) {
      size_t digits = position;
      while (llvm::isDigit(peek()))
        ++position;
      if (text.slice(digits, position).getAsInteger(10, size) || size > uint64_t(INT64_MAX))
        return fail(digits, "a dimension of " + text.slice(digits, std::min(position, digits + 24)) +
                                " elements does not fit in 63 bits");
    } else {
      position -= scalable;
      return;
    }
    position += scalable && peek() == ']';
    if (llvm::MulOverflow(elements, std::max<int64_t>(static_cast<int64_t>(size), 1), elements) ||
        elements >= kMaxElements)
      return fail(start, "a type of too many elements to address (at most " + llvm::Twine(kMaxElements) + ")");
    if (rank > kMaxRank)
      return fail(start, "a type of more than " + llvm::Twine(kMaxRank) + " dimensions");
    skipSpace();
    if (peek() != 'x')
      return;
    ++position;
  }
}

llvm::Error TextScan::run() {
  if (text.starts_with("ML\xefR"))
    fail(0, "is MLIR bytecode; Sluice reads the text form (mlir-opt converts)");
  else if (size_t nul = text.find('\0'); nul != llvm::StringRef::npos)
    fail(nul, "a NUL byte: not a text file");
  while (problem.empty()) {
    skipSpace();
    if (position >= text.size())
      break;
    char c = peek();
    bool opensOp = isWordCharacter(c) || c == '"' || c == '%';
    if (brackets.empty() && complete && opensOp)
      defining = {};
    complete = opensOp || c == '@' || c == '#' || c == '!' || c == ')' || c == ']' || c == '}' || c == '>';
    if (c == '"') {
      skipString();
    } else if (c == '-' && peek(1) == '>') {
      position += 2; // an arrow, not a bracket
    } else if ((c == '<' || c == '>') && peek(1) == '=' && (brackets.empty() || brackets.back().open != '<')) {
      position += 2; // a comparison of an affine set
    } else if (c == '(' || c == '[' || c == '{' || c == '<') {
      open(c);
    } else if (c == ')' || c == ']' || c == '}' || c == '>') {
      close(c);
    } else if ((c == '#' || c == '!') && (llvm::isAlpha(peek(1)) || peek(1) == '_')) {
      alias();
    } else if (c == '-' || c == '+' || c == '*') {
      countOperator();
      ++position;
    } else if (c == ',') {
      if (!brackets.empty())
        brackets.back().operators = 0;
      ++position;
    } else if (c == '%' || c == '^' || c == '@') {
      ++position;
      takeWord(); // a name, not a keyword or number
    } else if (llvm::isDigit(c)) {
      number();
    } else if (isWordCharacter(c)) {
      word();
    } else {
      ++position;
    }
    if (!defining.empty())
      aliasDepth[defining] = definingDepth;
  }
  if (problem.empty())
    return llvm::Error::success();
  llvm::StringRef before = text.take_front(problemAt);
  size_t line = before.count('\n') + 1, column = problemAt - (before.rfind('\n') + 1) + 1;
  return llvm::createStringError(llvm::inconvertibleErrorCode(),
                                 name + ":" + llvm::Twine(line) + ":" + llvm::Twine(column) + ": error: " + problem);
}

llvm::Error checkModuleText(llvm::StringRef text, llvm::StringRef name) { return TextScan(text, name).run(); }

} // namespace sluice::ir
