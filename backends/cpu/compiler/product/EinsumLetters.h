// Maps the letters of a product to the generator's product, C[batch, m, n] = sum over k of A[batch, m, k] * B[batch, k,
// n], and determines which layouts it can read and write.
//
// Lanes go along n, the innermost free letter of the result. B is the operand with that letter, A the other operand.
// Summed letters merge to one k: they are adjacent in both operands, in the order in which terms are summed. Every
// letter that does not merge with m or n is a loop around the product.
#pragma once

#include "backends/cpu/compiler/Layouts.h"

namespace sluice::cpu {

/// Whether the product is a loop nest: no letter is summed, or no letter is free and each element is a product of
/// vectors. This depends on the letters alone, because the order of sums depends on it.
bool isLoopNest(ir::EinsumOp op);

struct EinsumLetters {
  explicit EinsumLetters(ir::EinsumOp op);

  ir::Equation equation;
  mlir::Value a, b, y;
  /// The generator's A is the op's b: a letter of a is the innermost of the result.
  bool swapped = false;
  char lanes = 0; ///< the letter along which vectors of the result go; 0 if B has no free one, or another is innermost
  std::string summed; ///< in the order in which terms are summed

  mlir::Value left() const { return swapped ? b : a; }
  mlir::Value right() const { return swapped ? a : b; }
  const std::string &lettersOfLeft() const { return swapped ? equation.b : equation.a; }
  const std::string &lettersOfRight() const { return swapped ? equation.a : equation.b; }
  /// The free letters of A, or of B, in the operand's order.
  std::string freeIn(llvm::StringRef letters) const;

  bool canStore(const Target &target) const;
  bool canReadLeft() const;
  bool canReadRight(const Target &target) const;
  /// Whether an operand has exactly two letters, of which one is the product's only summed letter, and one is free.
  bool isMatrix(llvm::StringRef letters) const;
};

/// Letters in memory order, outermost first, without those of size 1.
std::string lettersInMemory(mlir::RankedTensorType type, llvm::StringRef letters);

LayoutPreference preferredLayoutOfEinsum(ir::EinsumOp op, bool isResult, unsigned number, const Target &target);

/// Whether the type's layout has panels along its first dimension, as weights of products do.
bool isInPanels(mlir::RankedTensorType type);

} // namespace sluice::cpu
