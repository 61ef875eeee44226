// Node: one node of an ONNX graph, as the handlers of operators see it: inputs, attributes and results.
#pragma once

#include "frontend/onnx/file/Model.h"
#include "frontend/onnx/import/Value.h"
#include "sluice/graph.h"

#include <functional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::onnx {

class Importer;
struct Scope;

/// Thrown by handlers for a node that cannot be imported: exit code 4.
class Unsupported : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

class Node {
public:
  Node(Importer &importer, Scope &scope, const file::Node &file, std::int64_t opset);
  /// The node that computes an input, if it is of this operator; nothing for other inputs, and for those that functions
  /// of the file compute.
  std::optional<Node> producer(std::size_t input, std::string_view op) const;
  std::optional<Node> producer(const ValuePtr &value, std::string_view op) const;

  /// The operator, and the version of its domain that the model uses.
  std::string_view op() const { return file.op; }
  std::int64_t opset() const { return version; }
  /// The name of the node, or else of its first result.
  std::string name() const;
  /// Throws Unsupported: "mode 'cubic' is not supported".
  [[noreturn]] static void fail(const std::string &reason);

  // --- inputs: numbered from 0; optional ones may be absent

  std::size_t inputs() const { return operands.size(); }
  bool has(std::size_t input) const { return input < operands.size() && operands[input]; }
  /// Throws Unsupported if the input is absent or a sequence.
  const Value &input(std::size_t input) const;
  ElementType type(std::size_t input) const { return this->input(input).type; }
  std::vector<Size> shape(std::size_t input) const { return this->input(input).shape(); }
  std::int64_t rank(std::size_t input) const { return std::int64_t(shape(input).size()); }
  /// The dimensions, none of which may depend on rows.
  Dims dims(std::size_t input) const;
  /// A value that the node can read, by its name in the file. Throws Malformed if nothing computes it.
  ValuePtr valueOfName(std::string_view name) const;
  /// The values of an input that is a sequence.
  const Sequence &sequence(std::size_t input) const;
  /// The elements if they are known; else null.
  const Known *known(std::size_t input) const { return has(input) ? this->input(input).known() : nullptr; }
  /// The elements of a known integer tensor of rank 0 or 1, or of sizes; nothing for other values.
  std::optional<std::vector<Size>> sizes(std::size_t input) const;
  /// The elements of an input that must be known when the model is imported; `what` names it in the error.
  std::vector<std::int64_t> integers(std::size_t input, const char *what) const;
  std::vector<double> reals(std::size_t input, const char *what) const;
  std::int64_t integer(std::size_t input, const char *what) const;
  double real(std::size_t input, const char *what) const;
  /// The input as a tensor of the graph. Known elements become a parameter if they are an initializer of floats with at
  /// least two elements, and a constant otherwise.
  Tensor tensor(std::size_t input);
  /// The same for inputs that hold weights: known floats become a parameter in any case, unless they are one number that
  /// ConstantOfShape or Expand has repeated.
  Tensor weight(std::size_t input);
  /// Elements computed from those of an input that holds weights: the same, under the input's name.
  Tensor weight(std::size_t input, Known elements);

  /// A known input as a "parameter" or "statistic", under the name by which the node reads it. Nodes that read one
  /// value under several names, by `Identity`, have a state each.
  Tensor state(std::size_t input, const char *kind);

  // --- attributes

  bool hasAttribute(std::string_view name) const;
  std::int64_t integer(std::string_view name, std::int64_t otherwise) const;
  double real(std::string_view name, double otherwise) const;
  std::string text(std::string_view name, std::string_view otherwise) const;
  std::vector<std::int64_t> integers(std::string_view name, std::vector<std::int64_t> otherwise = {}) const;
  std::vector<double> reals(std::string_view name, std::vector<double> otherwise = {}) const;
  std::vector<std::string> texts(std::string_view name) const;
  /// Throws Malformed if the attribute is absent.
  Known tensorAttribute(std::string_view name) const;
  file::Graph graphAttribute(std::string_view name) const;
  /// A dimension counted from the front; throws Unsupported if it is out of range.
  static std::int64_t axisOf(std::int64_t axis, std::int64_t rank);

  // --- results

  std::size_t outputs() const { return file.outputs.size(); }
  /// Whether a result has a name.
  bool wants(std::size_t output) const { return output < file.outputs.size() && !file.outputs[output].empty(); }
  void set(std::size_t output, ValuePtr value);
  void set(std::size_t output, Known known) { set(output, valueOf(std::move(known))); }
  void set(std::size_t output, Sizes sizes) { set(output, valueOf(std::move(sizes))); }
  /// `type`: of the value in the file if it differs from the tensor's, such as i8 in i32.
  void set(std::size_t output, Tensor tensor, std::optional<ElementType> type = {}) {
    set(output, valueOf(std::move(tensor), type));
  }

  // --- building

  /// Replaces an input; for the recognition of layers.
  void replace(std::size_t input, ValuePtr value);
  /// A result that a handler has set.
  const ValuePtr &result(std::size_t output) const { return results.at(output); }

  /// The graph under construction.
  Graph &graph() const;
  /// Whether BatchNormalization uses the statistics of the batch in training steps.
  bool trainsBatchNorm() const;
  /// The sizes as a shape of the graph. Throws Unsupported for a dimension of size 0, and for one that is no multiple of
  /// the batch.
  Shape shapeOf(const std::vector<Size> &sizes) const;
  /// A known value as a constant.
  Tensor constant(const Known &known) const;
  /// A constant scalar of the dtype.
  Tensor scalar(double value, DType dtype) const;
  /// The results of a graph attribute for these inputs. It may read all values that the node can read.
  std::vector<ValuePtr> call(const file::Graph &body, const std::vector<ValuePtr> &inputs);
  /// Null if an optional input is absent. Throws Unsupported beyond the inputs of the node.
  ValuePtr inputValue(std::size_t input) const;
  /// Importer::countIteration.
  void countIteration();
  /// The number of iterations that loops have been unrolled to so far.
  std::int64_t iterations() const;
  /// Importer::scanIterations.
  std::vector<Tensor> &scanIterations() const;
  /// Any known or computed value as a tensor.
  Tensor tensorOf(const ValuePtr &value);

private:
  friend class Importer;
  Node(const Node &reader, const Origin &origin);
  std::optional<file::Named> attribute(std::string_view name) const;
  /// Calls `read` for each field of the attribute, if it exists.
  template <class Read> bool readAttribute(std::string_view name, Read read) const;

  Importer &importer;
  Scope &scope;
  const file::Node &file;
  std::int64_t version;
  std::vector<ValuePtr> operands, results;
};

} // namespace sluice::onnx
