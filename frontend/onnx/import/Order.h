// The order in which nodes are imported.
#pragma once

#include "frontend/onnx/file/Model.h"

#include <map>
#include <string_view>
#include <vector>

namespace sluice::onnx {

/// Graphs and functions within each other beyond this are refused: the importer is recursive.
inline constexpr int kMostNested = 32;

/// The nodes on which the values of these names depend, each after those that compute its inputs; otherwise in the order
/// of the file. Nodes depend on the values that their graph attributes read. Throws Malformed for cycles and for values
/// that two nodes compute.
std::vector<const file::Node *> orderOf(const std::vector<file::Node> &nodes,
                                        const std::vector<std::string_view> &outputs);

/// How often nodes, their graph attributes and the outputs read each value.
std::map<std::string_view, int> readsOf(const std::vector<const file::Node *> &nodes,
                                        const std::vector<std::string_view> &outputs);

} // namespace sluice::onnx
