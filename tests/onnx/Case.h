// One of ONNX's own tests: a folder with a model, inputs, and the outputs of the reference implementation; or a model
// beside its output, of which element i of n of an input is i / n.
#pragma once

#include "frontend/onnx/import/Known.h"

#include <string>
#include <vector>

namespace sluice::onnx_test {

/// The result of a case.
struct Outcome {
  enum class Kind {
    computed,    ///< a program computed the right outputs from inputs at run time
    parameters,  ///< the same, with some inputs known when the model is imported, such as a shape
    folded,      ///< the importer computed the right outputs; all inputs were known
    wrong,       ///< another output
    unsupported, ///< refused with a reason
    failed,      ///< refused at a later step, or with an internal error
  } kind;
  std::string reason; ///< of the last three; of `parameters` and `folded`: why inputs must be known
};

const char *nameOf(Outcome::Kind kind);

/// Runs a case. Floats agree if |y - expected| <= 1e-7 + 1e-3 |expected|, ONNX's own tolerance. Integers must
/// be equal.
Outcome runCase(const std::string &path);

} // namespace sluice::onnx_test
