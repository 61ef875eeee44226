// A model's graph as JSON, for a reference without MLIR.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace sluice::test {

/// {"ops": [{"op": "conv2d", "operands": [value], "results": [value], "types": [{"dtype", "shape"}], "attributes":
/// {}}], "inputs": {name: {"value", "dtype", "shape"}}, "parameters": [name]} of a model in phase `model`. Values are
/// numbers; -1 in a shape is the batch.
nlohmann::json modelJson(const std::string &text);

} // namespace sluice::test
