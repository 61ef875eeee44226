#include "frontend/onnx/Check.h"

#include "frontend/onnx/Dimensions.h"
#include "frontend/onnx/File.h"
#include "frontend/onnx/file/Wire.h"
#include "frontend/onnx/import/Importer.h"
#include "frontend/onnx/import/Operators.h"

#include <algorithm>

namespace sluice::onnx {

bool Report::isSupported() const {
  return problem.empty() &&
         std::ranges::all_of(operators, [](const OperatorCount &count) { return count.isSupported; });
}

namespace {

/// Counts the nodes of a model, once for each function.
class Counting {
public:
  explicit Counting(const file::Model &model) : model(model) {}

  void add(const std::vector<file::Node> &nodes, const file::Opsets &opsets) {
    for (const file::Node &node : nodes) {
      count(node, opsets);
      for (const file::Graph &graph : file::graphsOf(node))
        add(graph.nodes, opsets);
    }
  }

  std::vector<OperatorCount> counts;

private:
  bool isFunction(const file::Node &node) const {
    return std::ranges::any_of(model.functions, [&](const file::Function &function) {
      return function.name == node.op && function.domain == node.domain;
    });
  }

  void count(const file::Node &node, const file::Opsets &opsets) {
    if (isFunction(node))
      return;
    auto opset = opsets.find(node.domain);
    std::int64_t version = opset == opsets.end() ? 1 : opset->second;
    std::string name = operatorOf(node);
    auto known = std::ranges::find_if(
        counts, [&](const OperatorCount &other) { return other.name == name && other.opset == version; });
    if (known == counts.end())
      known = counts.insert(counts.end(), {name, version, 0, findOperator(node.domain, node.op, version) != nullptr});
    ++known->nodes;
  }

  const file::Model &model;
};

} // namespace

static std::vector<OperatorCount> operatorsOf(const file::Model &model) {
  Counting counting(model);
  counting.add(model.graph.nodes, model.opsets);
  for (const file::Function &function : model.functions)
    counting.add(function.nodes, function.opsets.empty() ? model.opsets : function.opsets);
  std::ranges::sort(counting.counts, [](const OperatorCount &a, const OperatorCount &b) {
    return a.nodes != b.nodes ? a.nodes > b.nodes : a.name < b.name;
  });
  return std::move(counting.counts);
}

static Interface interfaceOf(const file::ValueInfo &info) {
  Interface its{std::string(info.name), info.isTensor ? nameOf(info.type) : "not a tensor", {}};
  if (!info.shape)
    return its;
  for (const file::Dimension &dimension : *info.shape)
    its.dims.push_back(dimension.size           ? std::to_string(*dimension.size)
                       : dimension.name.empty() ? "?"
                                                : std::string(dimension.name));
  return its;
}

Report check(const std::string &path, const ImportOptions &options) {
  File file(path, options.data_dir, {});
  Report report;
  report.file = file.name();
  file.use({}, [&] {
    const file::Model &model = file.model();
    report.producer = std::string(model.producer);
    if (!model.producerVersion.empty())
      report.producer += " " + std::string(model.producerVersion);
    report.irVersion = model.irVersion;
    if (auto opset = model.opsets.find(""); opset != model.opsets.end())
      report.opset = opset->second;
    report.operators = operatorsOf(model);
    for (const file::ValueInfo &input : file.inputs())
      report.inputs.push_back(interfaceOf(input));
    for (const file::ValueInfo &output : model.graph.outputs)
      report.outputs.push_back(interfaceOf(output));
    report.initializers = std::int64_t(model.graph.initializers.size());
    for (const file::Named &initializer : model.graph.initializers) {
      Known known = file.tensors().read(initializer.message);
      report.initializerBytes += known.count() * std::int64_t(known.elementSize());
    }
  });
  try {
    Dimensions dimensions(file, options, {}, &report.unbound);
    report.rows = dimensions.rows();
    if (report.unbound.empty() && report.isSupported())
      import(path, options);
  } catch (const Error &error) {
    report.problem = error.message();
  }
  return report;
}

} // namespace sluice::onnx
