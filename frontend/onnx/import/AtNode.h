// The place in a file whose ops are built.
#pragma once

#include "frontend/graph/GraphImpl.h"

#include <string>
#include <utility>

namespace sluice::onnx {

/// RAII: ops that are built, and errors, have the location of a node, or of an input or output.
class AtNode {
public:
  AtNode(detail::GraphImpl &graph, std::string name)
      : graph(graph), before(std::exchange(graph.node, std::move(name))) {}
  AtNode(const AtNode &) = delete;
  ~AtNode() { graph.node = std::move(before); }

private:
  detail::GraphImpl &graph;
  std::string before;
};

} // namespace sluice::onnx
