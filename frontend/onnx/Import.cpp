// Imports an ONNX file as a graph.
#include "frontend/graph/GraphImpl.h"
#include "frontend/onnx/Dimensions.h"
#include "frontend/onnx/File.h"
#include "frontend/onnx/import/AtNode.h"
#include "frontend/onnx/import/Value.h"
#include "runtime/base/Status.h"
#include "runtime/base/Text.h"
#include "sluice/onnx.h"

#include <algorithm>

namespace sluice::onnx {

/// A name for a graph, from the path of a file: other characters become '_'.
static std::string graphName(const std::string &path) {
  std::string name = File::baseOf(path);
  name.resize(std::min(name.size(), name.rfind(".onnx")));
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

/// What `info` prints about the file.
static std::vector<std::pair<std::string, std::string>> factsOf(const File &file) {
  const file::Model &model = file.model();
  std::string producer(model.producer);
  if (!model.producerVersion.empty())
    producer += " " + std::string(model.producerVersion);
  std::vector<std::pair<std::string, std::string>> facts{{"file", file.name()},
                                                         {"producer", producer},
                                                         {"domain", std::string(model.domain)},
                                                         {"graph", std::string(model.graph.name)},
                                                         {"description", std::string(model.doc)}};
  if (auto opset = model.opsets.find(""); opset != model.opsets.end())
    facts.emplace_back("opset", std::to_string(opset->second));
  for (const auto &[key, value] : model.metadata)
    facts.emplace_back(key, value);
  return facts;
}

static void requireBound(const File &file, const ImportOptions &options, const SourceLocation &where) {
  for (const auto &[name, value] : options.bind)
    if (std::ranges::none_of(file.inputs(), [&](const file::ValueInfo &input) { return input.name == name; }))
      throw Error(file.name() + " has no input '" + name + "' to bind", where);
}

/// The graph of a file under construction.
class Building {
public:
  Building(const std::string &path, const ImportOptions &options, std::source_location where)
      : graph(graphName(path), where), net(graph, path, options, where), file(*net.file), where(where) {
    requireBound(file, options, where);
    detail::Access::graph(graph)->setImportedFrom(factsOf(file));
    detail::Access::graph(graph)->setLocation(file.name());
  }

  /// Adds the inputs and outputs: once, or once for each of several sizes.
  Graph build(ImportOptions options) {
    for (auto &[name, sizes] : options.dims) {
      if (sizes.size() == 1)
        continue;
      std::vector<std::int64_t> all = sizes;
      graph.sizes(
          dimName(name), all,
          [&, &sizes = sizes](std::int64_t size) {
            sizes = {size};
            build(options);
          },
          where);
      return graph;
    }
    addValues(options);
    return graph;
  }

private:
  /// Entry points contain the names of dimensions.
  static std::string dimName(std::string name) {
    for (char &c : name)
      if (!std::isalnum(static_cast<unsigned char>(c)))
        c = '_';
    return name;
  }

  void addValues(const ImportOptions &options) {
    Dimensions dimensions(file, options, where);
    nn::Onnx::Values values;
    for (const file::ValueInfo &input : file.inputs()) {
      std::string name(input.name);
      if (auto bound = options.bind.find(name); bound != options.bind.end())
        file.use(where, [&] { values[name] = boundValue(input, bound->second, where); });
      else
        values[name] = inputOf(input, dimensions.shapeOf(input));
    }
    std::vector<std::string> names = net.outputs();
    std::vector<Tensor> results = net.import(values, where);
    for (std::size_t i = 0; i < results.size(); ++i)
      addOutput(names[i], results[i]);
  }

  /// An input of the graph, whose location has its name.
  ValuePtr inputOf(const file::ValueInfo &input, Shape shape) {
    std::string name(input.name);
    AtNode at(*detail::Access::graph(graph), "input " + runtime::quote(name));
    return valueOf(graph.input(name, *heldAs(input.type), std::move(shape), where), input.type);
  }

  void addOutput(const std::string &name, const Tensor &result) {
    AtNode at(*detail::Access::graph(graph), "output " + runtime::quote(name));
    if (detail::Access::isMerged(result))
      throw Error(
          file.name() + ": the output " + runtime::quote(name) + " of shape " + result.shape().str() +
              " is not supported: its dimension 0 is a multiple of the number of rows, which must be a separate "
              "dimension; return another value with --outputs, or give the batch a size with --dim",
          where, {}, int(runtime::ExitCode::unsupported));
    graph.output(name, Arg(result, where));
  }

  Graph graph;
  nn::Onnx net;
  const File &file;
  std::source_location where;
};

Graph import(const std::string &path, const ImportOptions &options, std::source_location where) {
  return Building(path, options, where).build(options);
}

} // namespace sluice::onnx
