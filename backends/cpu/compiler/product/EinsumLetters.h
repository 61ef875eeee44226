// What the letters of a product mean to the generator of products, C[batch, m, n] = sum over k of A[batch, m, k] *
// B[batch, k, n], and in which layouts it can read and write them.
//
// Lanes go along n, the innermost free letter of the result; B is the operand that has it, A the other one. Summed letters
// are one k: they lie next to each other in both operands, in the order in which terms are summed. All that does not
// merge with m or n is a loop around the product.
#pragma once

#include "backends/cpu/compiler/Layouts.h"

namespace sluice::cpu {

/// Whether the product is a loop nest, since nothing is summed, or no letter is free and each element is a product of
/// vectors. Its letters decide alone, as the order of its sums hangs on it.
bool isLoopNest(ir::EinsumOp op);

struct EinsumLetters {
  explicit EinsumLetters(ir::EinsumOp op);

  ir::Equation equation;
  mlir::Value a, b, y;
  /// The generator's A is the op's b: the result lies with a letter of a innermost.
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
  /// Whether `type`, an operand with these letters, has one summed letter and one free one, of the whole product.
  bool isMatrix(llvm::StringRef letters) const;
};

/// Letters in the order in which they lie in memory, outermost first, without those of size 1.
std::string lettersInMemory(mlir::RankedTensorType type, llvm::StringRef letters);

LayoutPreference preferredLayoutOfEinsum(ir::EinsumOp op, bool isResult, unsigned number, const Target &target);

/// Whether the type's elements lie in panels along its first dimension, as weights of products do.
bool isInPanels(mlir::RankedTensorType type);

} // namespace sluice::cpu
