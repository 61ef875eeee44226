// How far a kernel's result is from the reference's, element by element.
#pragma once

#include "ir/Dialect.h"

namespace sluice::compiler {

/// What results of one kernel may differ from exact ones: of floats each, relative to what an element is made of, at
/// least the result's largest value; of integers the share that may be others.
double toleranceOf(mlir::Type element);

/// The element that is furthest off, and by how much.
struct Deviation {
  double error = 0;
  size_t element = 0;
};

/// What explains a difference. Each is computed only if an element differs.
struct Explanations {
  llvm::function_ref<const ir::HostTensor &()> magnitudes; ///< of the result's elements (Magnitudes.h)
  llvm::function_ref<double(size_t)> granted;              ///< an error of an element that is none
  llvm::function_ref<const ir::HostTensor &()> rounded;    ///< the result if every op's are rounded to their types
};

/// Of floats: the largest error relative to what its element is made of. A NaN is right where the reference has one, and an
/// infinity where it has the same or where one follows from rounding every op's results.
Deviation compareFloats(mlir::Type element, const ir::HostTensor &actual, const ir::HostTensor &expected,
                        const Explanations &explanations);

/// The share of the elements that differ.
Deviation compareIntegers(const ir::HostTensor &actual, const ir::HostTensor &expected);

/// The share of the elements that differ although no rounding of floats on the way to them explains it.
Deviation compareIntegers(const ir::HostTensor &actual, const ir::HostTensor &expected,
                          const Explanations &explanations);

} // namespace sluice::compiler
