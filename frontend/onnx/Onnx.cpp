// nn::Onnx: an ONNX file as a module.
#include "sluice/onnx.h"
#include "frontend/graph/GraphImpl.h"
#include "frontend/onnx/File.h"
#include "frontend/onnx/file/Wire.h"
#include "frontend/onnx/import/Importer.h"
#include "runtime/base/Status.h"

namespace sluice::nn {

Onnx::Onnx(Graph &graph, const std::string &path, onnx::Options options, Where where)
    : Module(graph, where), file(std::make_shared<onnx::File>(path, options.data_dir, where)),
      options(std::move(options)) {
  file->requireValues(this->options.outputs, where);
}

Onnx::Onnx(Module *parent, std::string name, const std::string &path, onnx::Options options, Where where)
    : Module(parent, std::move(name), where), file(std::make_shared<onnx::File>(path, options.data_dir, where)),
      options(std::move(options)) {
  file->requireValues(this->options.outputs, where);
}

Onnx::~Onnx() = default;

std::vector<std::string> Onnx::inputs() const {
  std::vector<std::string> names;
  for (const onnx::file::ValueInfo &input : file->inputs())
    names.emplace_back(input.name);
  return names;
}

std::vector<std::string> Onnx::outputs() const {
  if (!options.outputs.empty())
    return options.outputs;
  std::vector<std::string> names;
  for (const onnx::file::ValueInfo &output : file->model().graph.outputs)
    names.emplace_back(output.name);
  return names;
}

static init::Init initOf(const onnx::Known &known, const std::string &what) {
  init::Init data{.kind = init::Init::Kind::data};
  data.source = std::make_shared<const runtime::TensorSource>(known.source(what));
  return data;
}

Tensor Onnx::stateOf(const char *kind, const std::string &own, const onnx::Known &known, Where where) {
  std::string unique = own;
  for (int copy = 2; made.contains(unique); unique = own + "_" + std::to_string(copy++))
    if (Made &before = made.at(unique); before.kind == kind && before.known->equals(known))
      return before.tensor;
  Shape shape(std::vector<Dim>(known.dims().begin(), known.dims().end()));
  Tensor tensor = importedState(kind, unique, *onnx::heldAs(known.type()), shape,
                                initOf(known, file->name() + ": '" + unique + "'"), where);
  made[unique] = {kind, own, std::make_shared<const onnx::Known>(known), tensor};
  return tensor;
}

/// Throws unless a tensor has the type, the rank and the known sizes of an input.
static void requireFit(const onnx::File &file, const onnx::file::ValueInfo &input, const Tensor &tensor,
                       std::source_location where) {
  std::string what = file.name() + ": the input '" + std::string(input.name) + "' ";
  if (onnx::heldAs(input.type) != tensor.dtype())
    throw Error(what + "is " + onnx::nameOf(input.type) + ", and the tensor " + to_string(tensor.dtype()), where);
  if (!input.shape)
    return;
  bool fits = tensor.dim() == std::int64_t(input.shape->size());
  for (std::size_t i = 0; fits && i < input.shape->size(); ++i) {
    std::optional<std::int64_t> size = (*input.shape)[i].size;
    fits = !size || tensor.shape()[i].size == *size;
  }
  if (!fits)
    throw Error(what + "has other dimensions than the tensor, " + tensor.shape().str(), where);
}

std::vector<Tensor> Onnx::resultsOf(const std::vector<Tensor> &tensors, Where where) {
  const std::vector<onnx::file::ValueInfo> &infos = file->inputs();
  if (tensors.size() != infos.size())
    throw Error(file->name() + " has " + std::to_string(infos.size()) + " inputs, and " +
                    std::to_string(tensors.size()) + " tensors are given",
                where);
  Values values;
  for (std::size_t i = 0; i < infos.size(); ++i) {
    requireFit(*file, infos[i], tensors[i], where);
    values.emplace(infos[i].name, onnx::valueOf(tensors[i], infos[i].type));
  }
  return import(values, where);
}

/// An output as a tensor. Sequences and values without elements are none.
static Tensor outputOf(onnx::Importer &importer, const std::string &name, const onnx::ValuePtr &value,
                       const SourceLocation &where) {
  try {
    return importer.tensorOf(value, /*isWeight=*/false);
  } catch (const onnx::Unsupported &error) {
    throw Error("the output '" + name + "' is not supported: " + error.what(), where, {},
                int(runtime::ExitCode::unsupported));
  }
}

std::vector<Tensor> Onnx::import(const Values &inputs, Where where) {
  Graph graph = detail::Access::handle(target());
  mlir::Operation *last = target().lastOp();
  std::vector<std::string> names = outputs();
  std::vector<Tensor> results;
  file->use(where, [&] {
    onnx::Importer importer(graph, file->model(), file->tensors(),
                            [&](const char *kind, const std::string &own, const onnx::Known &known) {
                              return stateOf(kind, own, known, where);
                            },
                            {.recognizes = options.recognize, .trainsBatchNorm = options.train_batch_norm});
    std::vector<onnx::ValuePtr> values = importer.run(inputs, names);
    for (std::size_t i = 0; i < values.size() && importer.problems().empty(); ++i)
      results.push_back(outputOf(importer, names[i], values[i], where));
    if (std::string problems = importer.problemText(); !problems.empty())
      throw Error(file->name() + ": " + problems, where, {}, int(runtime::ExitCode::unsupported));
  });
  target().eraseUnusedAfter(last, results);
  std::erase_if(made, [&](const auto &parameter) { return !hasState(parameter.first); });
  restoreNames();
  return results;
}

/// A weight that was folded has a second name, because the weight of the file was made before it. The latter is erased if
/// nothing reads it.
void Onnx::restoreNames() {
  std::map<std::string, Made> restored;
  for (auto &[name, parameter] : made) {
    bool isFree = !hasState(parameter.own);
    if (isFree)
      renameState(name, parameter.own);
    restored.emplace(isFree ? parameter.own : name, parameter);
  }
  made = std::move(restored);
}

std::vector<Tensor> Onnx::operator()(const std::vector<Tensor> &tensors, Where where) {
  return runForward(where, tensors, [&] { return resultsOf(tensors, callingLine()); });
}

Tensor Onnx::forward(Tensor x) { return resultsOf({x}, callingLine()).front(); }
Tensor Onnx::forward(Tensor a, Tensor b) { return resultsOf({a, b}, callingLine()).front(); }

} // namespace sluice::nn
