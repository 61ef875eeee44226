// The contents of an ONNX file, as views into its bytes. Attributes and tensors are decoded when they are needed.
#pragma once

#include "frontend/onnx/file/ElementType.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

namespace sluice::onnx::file {

/// A dimension in the type of an input or output: a size, a name, or neither.
struct Dimension {
  std::optional<std::int64_t> size; ///< absent in the file, or at most 0, as Paddle writes unknown sizes
  std::string_view name;
};

/// An input or output.
struct ValueInfo {
  std::string_view name;
  ElementType type = ElementType::undefined;
  std::optional<std::vector<Dimension>> shape; ///< nothing: the rank is unknown
  bool isTensor = true;                        ///< not a sequence, map, sparse tensor or optional value
};

/// A message with a name: an attribute or a tensor.
struct Named {
  std::string_view name, message;
};

struct Node {
  std::string_view op, domain, name;
  std::string_view overload; ///< of a function
  std::vector<std::string_view> inputs, outputs;
  std::vector<Named> attributes;
};

struct Graph {
  std::string_view name, doc;
  std::vector<Node> nodes;
  std::vector<Named> initializers;
  std::vector<ValueInfo> inputs, outputs;
  std::vector<std::string_view> sparse; ///< names of sparse initializers
};

using Opsets = std::map<std::string_view, std::int64_t>; ///< version by domain; "" is ONNX's own

struct Function {
  std::string_view domain, name, overload;
  std::vector<std::string_view> inputs, outputs;
  std::vector<Named> defaults; ///< of attributes
  std::vector<Node> nodes;
  Opsets opsets;
};

struct Model {
  std::int64_t irVersion = 0;
  std::string_view producer, producerVersion, domain, doc;
  std::int64_t version = 0;
  Opsets opsets;
  Graph graph;
  std::vector<Function> functions;
  std::vector<std::pair<std::string_view, std::string_view>> metadata;
};

/// Parses a model. Throws Malformed. The views are into `bytes`.
Model readModel(std::string_view bytes);
/// Parses the graph of an attribute.
Graph readGraph(std::string_view message);
/// The graphs that are attributes of a node.
std::vector<Graph> graphsOf(const Node &node);

} // namespace sluice::onnx::file
