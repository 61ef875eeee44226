// Scans a module's text before MLIR's parser, in constant stack space. It limits every construct on which the parser or
// later IR walks recurse.
//
//   ( [ { <          the parser recurses on each: at most kMaxNesting deep
//   #a = ..., !a =   an alias nests its definition at each use without brackets: its depth counts there too
//   - + * mod        the affine parser recurses on each operator: at most kMaxOperators between brackets and commas
//   tensor<4x5xf32>  element counts are computed in 64 bits without checks: the product must stay below kMaxElements
//   %a               a use before its definition may outlive it in the parser (see ValueNames.h): rejected
//   %a#7             the parser allocates as many results: fewer than kMaxResults
//   sparse<...>      the parser reads out of bounds if indices or values do not fit the type: only `dense` is accepted
//   {-# ... #-}      the parser does not check the alignment of resources: none are accepted
#include "ir/text/ParseGuard.h"

#include "ir/text/ValueNames.h"
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
    bool ofBlock = false; // the arguments after a block's name
    unsigned operators = 0;
  };
  struct Name {
    llvm::StringRef name;
    size_t at;
  };

  void fail(size_t at, const llvm::Twine &message) {
    if (problem.empty())
      problem = message.str(), problemAt = at;
  }
  char peek(size_t ahead = 0) const { return position + ahead < text.size() ? text[position + ahead] : '\0'; }
  llvm::StringRef takeWord();
  llvm::StringRef takeSuffix();
  void skipSpace();
  void skipString();
  void open(char bracket);
  void close(char bracket);
  void countOperator();
  void number();
  void alias();
  void word();
  void dimensions();
  Name takeValue();
  llvm::SmallVector<Name> takeValues();
  bool isInside(char bracket) const { return !brackets.empty() && brackets.back().open == bracket; }
  void values();
  void defineValue(const Name &value, bool ofRegion);
  void token();

  llvm::StringRef text, name;
  size_t position = 0;
  llvm::StringRef before; // the previous token
  ValueNames names;
  llvm::SmallVector<Bracket> brackets;
  llvm::StringMap<unsigned> aliasDepth;
  llvm::StringRef defining; // the alias whose definition is being read, empty outside of one
  unsigned definingDepth = 0;
  bool complete = false; // whether the previous token could end a value: then an op's start also ends a definition
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

/// The suffix after the sigil of `%name`, `^name`, `#name` and `!name`.
llvm::StringRef TextScan::takeSuffix() {
  size_t start = position;
  bool isNumber = llvm::isDigit(peek());
  while (isNumber ? llvm::isDigit(peek()) : isWordCharacter(peek()) || peek() == '-')
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
  brackets.push_back({bracket, before.starts_with("^")});
  if (bracket == '{')
    names.enter(/*takesArguments=*/before != "attributes");
  definingDepth = std::max(definingDepth, unsigned(brackets.size()));
  if (brackets.size() > kMaxNesting)
    fail(position, "nested more than " + llvm::Twine(kMaxNesting) + " deep");
  ++position;
}

void TextScan::close(char bracket) {
  if (!brackets.empty() && closing(brackets.back().open) == bracket) {
    brackets.pop_back();
    if (bracket == '}')
      names.leave();
  }
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
  takeSuffix();
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
  size_t start = position;
  llvm::StringRef spelling = takeWord();
  if (spelling == "mod" || spelling == "floordiv" || spelling == "ceildiv")
    countOperator();
  bool isSupported = spelling != "sparse" && spelling != "dense_resource";
  if (isSupported && spelling != "tensor" && spelling != "vector" && spelling != "memref")
    return;
  skipSpace();
  if (peek() != '<')
    return;
  if (!isSupported)
    return fail(start, "'" + spelling + "' elements are not supported; write all elements as dense<...>");
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

/// `%name`, `%name#3` (one of its results) or `%name:2` (two results).
TextScan::Name TextScan::takeValue() {
  size_t start = position++;
  takeSuffix();
  Name value{text.slice(start, position), start};
  size_t after = position;
  skipSpace();
  char mark = peek();
  position += mark == '#' || mark == ':';
  skipSpace();
  size_t digits = position;
  while (llvm::isDigit(peek()))
    ++position;
  unsigned number = 0;
  if ((mark != '#' && mark != ':') || position == digits)
    position = after;
  else if (text.slice(digits, position).getAsInteger(10, number) || number >= kMaxResults)
    fail(start, "result number " + text.slice(digits, std::min(position, digits + 24)) + "; an op has fewer than " +
                    llvm::Twine(kMaxResults));
  return value;
}

llvm::SmallVector<TextScan::Name> TextScan::takeValues() {
  llvm::SmallVector<Name> list{takeValue()};
  while (true) {
    size_t after = position;
    skipSpace();
    if (peek() != ',') {
      position = after;
      return list;
    }
    ++position;
    skipSpace();
    if (peek() != '%') {
      position = after;
      return list;
    }
    list.push_back(takeValue());
  }
}

void TextScan::defineValue(const Name &value, bool ofRegion) {
  if (names.isUsed(value.name))
    fail(value.at, "'" + value.name + "' is used before it is defined here");
  if (ofRegion)
    names.announceArgument(value.name);
  else
    names.define(value.name);
}

/// Op results are `%a, %b:2 = ...`; arguments of a region or block are `(%a: type, ...)`, of a kernel `(%a = %b : type,
/// ...)`. All others are uses.
void TextScan::values() {
  bool beginsArgument = isInside('(') && (before == "(" || before == ",");
  llvm::SmallVector<Name> list = takeValues();
  size_t after = position;
  skipSpace();
  char next = peek();
  position = after;
  bool isArgument = beginsArgument && list.size() == 1 && (next == '=' || next == ':');
  bool isResult = next == '=' && (brackets.empty() || isInside('{'));
  for (const Name &value : list)
    if (isArgument || isResult)
      defineValue(value, isArgument && !brackets.back().ofBlock);
    else if (!names.use(value.name))
      fail(value.at, "'" + value.name + "' is used before it is defined");
}

void TextScan::token() {
  char c = peek();
  if (c == '"') {
    skipString();
  } else if (c == '-' && peek(1) == '>') {
    position += 2; // an arrow, not a bracket
  } else if ((c == '<' || c == '>') && peek(1) == '=' && !isInside('<')) {
    position += 2; // a comparison of an affine set
  } else if (c == '{' && peek(1) == '-' && peek(2) == '#') {
    fail(position, "resources are not supported; write elements as dense<...>");
  } else if (c == '(' || c == '[' || c == '{' || c == '<') {
    open(c);
  } else if (c == ')' || c == ']' || c == '}' || c == '>') {
    close(c);
  } else if ((c == '#' || c == '!') && (isWordCharacter(peek(1)) || peek(1) == '-')) {
    alias();
  } else if (c == '-' || c == '+' || c == '*') {
    countOperator();
    ++position;
  } else if (c == ',') {
    if (!brackets.empty())
      brackets.back().operators = 0;
    ++position;
  } else if (c == '%') {
    values();
  } else if (c == '^') {
    ++position;
    takeSuffix();
  } else if (c == '@') {
    ++position;
    takeWord(); // a name, not a keyword or number
  } else if (llvm::isDigit(c)) {
    number();
  } else if (isWordCharacter(c)) {
    word();
  } else {
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
    size_t start = position;
    token();
    before = text.slice(start, position);
    if (!defining.empty())
      aliasDepth[defining] = definingDepth;
  }
  if (problem.empty())
    return llvm::Error::success();
  llvm::StringRef above = text.take_front(problemAt);
  size_t line = above.count('\n') + 1, column = problemAt - (above.rfind('\n') + 1) + 1;
  return llvm::createStringError(llvm::inconvertibleErrorCode(),
                                 name + ":" + llvm::Twine(line) + ":" + llvm::Twine(column) + ": error: " + problem);
}

llvm::Error checkModuleText(llvm::StringRef text, llvm::StringRef name) { return TextScan(text, name).run(); }

} // namespace sluice::ir
