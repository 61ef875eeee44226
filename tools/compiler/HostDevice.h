// What is known of the machine that this runs on, as device `cpu:0`.
#pragma once

#include "runtime/BackendLoader.h"

namespace sluice::compiler {

/// The host as a backend's run half would describe it, with vectors of `vectorBits`: the peak is that of two f32
/// multiply-adds a cycle and core. What the system does not tell is 0.
runtime::BackendDevice describeHost(const std::string &name, unsigned vectorBits);

} // namespace sluice::compiler
