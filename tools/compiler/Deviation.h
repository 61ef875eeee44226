// The deviation of a kernel's result from the reference, element by element.
#pragma once

#include "ir/Dialect.h"

namespace sluice::compiler {

/// The tolerance for results of one kernel. For floats it limits the error of each element, relative to its magnitude
/// or to the largest value of the result if that is larger. For integers it limits the share of elements that differ.
double toleranceOf(mlir::Type element);

/// The element with the largest error, and its error.
struct Deviation {
  double error = 0;
  size_t element = 0;
};

/// Explanations of a difference. Each is computed only if an element differs.
struct Explanations {
  llvm::function_ref<const ir::HostTensor &()> magnitudes; ///< of the result's elements (Magnitudes.h)
  llvm::function_ref<double(size_t)> granted;              ///< the error that an element may have
  llvm::function_ref<const ir::HostTensor &()> rounded;    ///< the result if every op rounds to its types
  llvm::function_ref<const ir::HostTensor &()> hidden;     ///< the same if attention computes hidden keys, too
};

/// For floats: the largest error relative to its element's magnitude. A NaN or an infinity is correct if the reference
/// has the same. It is also correct if rounding every op's results, or hidden keys of attention, produce it.
Deviation compareFloats(mlir::Type element, const ir::HostTensor &actual, const ir::HostTensor &expected,
                        const Explanations &explanations);

/// The share of elements that differ.
Deviation compareIntegers(const ir::HostTensor &actual, const ir::HostTensor &expected);

/// The share of elements that differ and whose difference no rounding of floats explains.
Deviation compareIntegers(const ir::HostTensor &actual, const ir::HostTensor &expected,
                          const Explanations &explanations);

} // namespace sluice::compiler
