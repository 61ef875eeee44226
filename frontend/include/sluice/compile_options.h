// The options of a compilation; compile_options.def has one row for each.
#pragma once

#include "sluice/dtype.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace sluice {

/// Settings by backend: {"sim", "seed=7,link=12GB/s,latency=5us"}.
using BackendSettings = std::map<std::string, std::string>;

/// Options of compile, as those of `sluice compile`. The rows of compile_options.def document the members. A member
/// without a value keeps the setting of the graph.
struct CompileOptions {
#define SLUICE_OPTION(type, name, initial, ...) type name = initial;
#include "sluice/compile_options.def"
#undef SLUICE_OPTION
};

} // namespace sluice
