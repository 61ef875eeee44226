// A backend with one fault, named by CONFORMANCE_FAULT, which the suite must find: otherwise it does as `null`, or as
// `sim` where kernels have to run.
#pragma once

#include "sluice/backend/compile.h"
#include "sluice/backend/run.h"

#include <string_view>
#include <utility>

namespace sluice::faulty {

inline constexpr std::string_view kFault = CONFORMANCE_FAULT;

/// The run half that the plugin in this file exports.
const sluice_backend_run &loadRunHalf(const char *path);

/// Puts the fault into null's run half; gives a compile half if it needs one. Each kind of faults defines it in a file
/// of its own, of which a plugin has one.
const sluice_backend_compile *addFault(sluice_backend_run &run);

} // namespace sluice::faulty
