// The equation of a product, "abd,cd->abc": one letter for each dimension of the two operands and of the result.
//
// A letter of both operands and the result is a batch letter; of one operand and the result, free; of both operands
// alone, summed.
#pragma once

#include "ir/Types.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"
#include <string>

namespace sluice::ir {

struct Equation {
  std::string a, b, y; ///< the letters, outermost dimension first

  /// Parses "abd,cd->abc"; fails on malformed equations and on letters without one of these roles.
  static mlir::FailureOr<Equation> parse(std::optional<mlir::Location> loc, llvm::StringRef text);

  /// With letters in the order of their first appearance in the operands: a, b, c, ...
  Equation canonical() const;
  std::string str() const { return a + "," + b + "->" + y; }

  bool isFree(char letter) const { return isIn(y, letter) && isIn(a, letter) != isIn(b, letter); }
  bool isBatch(char letter) const { return isIn(a, letter) && isIn(b, letter) && isIn(y, letter); }
  /// The letters summed over, in the order of `a`.
  std::string summed() const;

  static bool isIn(llvm::StringRef letters, char letter) { return letters.contains(letter); }
};

/// The size of each summed letter, the rows first: the order in which terms are summed.
struct SummedLetters {
  std::string letters;
  llvm::SmallVector<int64_t> sizes;
};
SummedLetters getSummedLetters(const Equation &equation, llvm::ArrayRef<int64_t> shapeOfA);

} // namespace sluice::ir
