// Imports an ONNX file as a graph.
#include "frontend/graph/GraphImpl.h"
#include "frontend/onnx/Dimensions.h"
#include "frontend/onnx/File.h"
#include "frontend/onnx/import/Value.h"
#include "sluice/onnx.h"

#include <algorithm>

namespace sluice::onnx {

/// A name for a graph, from that of a file: other characters become '_'.
static std::string graphName(const std::string &file) {
  std::string name = file.substr(0, file.rfind(".onnx"));
  for (char &c : name)
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '-' && c != '.')
      c = '_';
  return name.empty() || !std::isalpha(static_cast<unsigned char>(name.front())) ? "_" + name : name;
}

/// The elements of an input that is bound to a value.
static ValuePtr boundValue(const file::ValueInfo &input, double value, const SourceLocation &where) {
  Dims dims;
  for (const file::Dimension &dimension : input.shape.value_or(std::vector<file::Dimension>()))
    dims.push_back(dimension.size.value_or(1));
  if (countOf(dims) != 1 || !heldAs(input.type))
    throw Error("the input '" + std::string(input.name) + "' cannot be bound: it has more than one element", where);
  return valueOf(Known::ofReals(input.type, dims, {&value, 1}));
}

Graph import(const std::string &path, const ImportOptions &options, std::source_location where) {
  File file(path, options.data_dir, where);
  Graph graph(graphName(file.name()), where);
  nn::Onnx net(graph, path, options, where);
  for (const auto &[name, value] : options.bind)
    if (std::ranges::none_of(file.inputs(), [&](const file::ValueInfo &input) { return input.name == name; }))
      throw Error(file.name() + " has no input '" + name + "' to bind", where);
  Dimensions dimensions(file, options, where);
  nn::Onnx::Values values;
  for (const file::ValueInfo &input : file.inputs()) {
    std::string name(input.name);
    if (auto bound = options.bind.find(name); bound != options.bind.end()) {
      values[name] = boundValue(input, bound->second, where);
      continue;
    }
    Tensor tensor = graph.input(name, *heldAs(input.type), dimensions.shapeOf(input), where);
    values[name] = valueOf(tensor, input.type);
  }
  std::vector<std::string> names = net.outputs();
  std::vector<Tensor> results = net.import(values, where);
  for (std::size_t i = 0; i < results.size(); ++i)
    graph.output(names[i], Arg(results[i], where));
  return graph;
}

} // namespace sluice::onnx
