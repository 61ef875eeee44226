// Networks whose kernels are timed to learn what devices reach: small and large, narrow and wide, of every kind that
// training classifiers takes.
#pragma once

#include "sluice/graph.h"
#include <vector>

namespace sluice::compiler {

std::vector<Graph> calibrationModels();

} // namespace sluice::compiler
