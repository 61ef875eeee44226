// ONNX files as parts of a graph, and as whole graphs. ONNX.md describes what can be imported.
#pragma once

#include "sluice/graph.h"
#include "sluice/module.h"

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace sluice {

namespace onnx {

/// Options of nn::Onnx.
struct Options {
  /// The results to return, in this order: names of any values of the file. All outputs of the file by default.
  std::vector<std::string> outputs = {};
  /// Whether layers that the file decomposes are recognized: LayerNorm, GELU, attention and others (ONNX.md). Their
  /// results may differ in rounding.
  bool recognize = true;
  /// Whether BatchNormalization normalizes by the statistics of the batch in training steps, and moves the stored ones
  /// toward them, as PyTorch's modules do after `train()`. By default, it uses the stored statistics also in training.
  bool train_batch_norm = false;
  /// A folder that symbolic links to external data may lead to, such as the cache of a model hub.
  std::string data_dir = {};
};

/// Options of `import`.
struct ImportOptions : Options {
  /// Sizes of unknown dimensions, by the name of the dimension, or as "INPUT:1" by the input and the index. Several sizes
  /// make one entry point each (Graph::sizes).
  std::map<std::string, std::vector<std::int64_t>> dims = {};
  /// The dimensions that are the batch: one name, or places such as "x:0,state:1"; "none": no dimension. By default,
  /// dimension 0 if it is unknown in all inputs.
  std::string rows = {};
  /// Inputs with one element that become constants, by name.
  std::map<std::string, double> bind = {};
};

/// The graph of an ONNX file: its inputs and outputs under their names, and its weights as parameters, which training
/// and `--weights` may replace. Throws Error: code 2 for options, 3 for a file that is missing or invalid, 4 for
/// operators that are not supported; the text lists all of them.
Graph import(const std::string &path, const ImportOptions &options = {},
             std::source_location where = std::source_location::current());

class Building;
class File;
class Known;
struct Value;

} // namespace onnx

namespace nn {

/// The graph of an ONNX file as a module. A program adds a loss and an optimizer:
///
///     nn::Onnx net{graph, "resnet18.onnx"};
///     Tensor logits = net({x}).front();
///     graph.minimize(cross_entropy(logits, label), optim::SGD{.lr = 0.01});
///
/// The weights have the names of the file. BatchNorm uses its running statistics, also in training, as PyTorch's does
/// after `eval()`, unless `train_batch_norm` is set.
class Onnx : public Module {
public:
  /// Opens a file. Throws Error with code 3 if it is missing or invalid.
  Onnx(Graph &graph, const std::string &path, onnx::Options options = {}, Where where = Where::current());
  Onnx(Module *parent, std::string name, const std::string &path, onnx::Options options = {},
       Where where = Where::current());
  ~Onnx() override;

  /// The names of the inputs without an initial value, and of the outputs.
  std::vector<std::string> inputs() const;
  std::vector<std::string> outputs() const;

  /// The outputs for these inputs, which are in the order of `inputs`, with the types and known sizes of the file. Their
  /// shapes fill its unknown dimensions.
  /// Throws Error with code 4 that lists all operators that are not supported for these shapes.
  std::vector<Tensor> operator()(const std::vector<Tensor> &inputs, Where where = Where::current());
  /// The first output of a file with one or two inputs.
  Tensor forward(Tensor x) override;
  Tensor forward(Tensor a, Tensor b) override;
  using Module::operator();

private:
  friend class onnx::Building;
  using Values = std::map<std::string, std::shared_ptr<onnx::Value>, std::less<>>;
  std::vector<Tensor> resultsOf(const std::vector<Tensor> &inputs, Where where);
  std::vector<Tensor> import(const Values &inputs, Where where);
  /// The state of this kind with this name and these elements; made if there is none.
  Tensor stateOf(const char *kind, const std::string &own, const onnx::Known &known, Where where);
  void restoreNames();

  std::shared_ptr<onnx::File> file;
  onnx::Options options;
  struct Made {
    std::string_view kind;
    std::string own; ///< its name in the file
    std::shared_ptr<const onnx::Known> known;
    Tensor tensor;
  };
  std::map<std::string, Made> made; ///< parameters and statistics, by name
};

} // namespace nn
} // namespace sluice
