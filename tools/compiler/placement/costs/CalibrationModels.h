// Networks whose kernels are timed to calibrate devices: small and large, narrow and wide, with every kind of op for
// training classifiers.
#pragma once

#include "sluice/graph.h"
#include <vector>

namespace sluice::compiler {

std::vector<Graph> calibrationModels();

} // namespace sluice::compiler
