// Importer: one walk over the nodes of an ONNX graph, which evaluates nodes with known inputs and emits the rest through the
// graph API.
#pragma once

#include "frontend/onnx/file/Model.h"
#include "frontend/onnx/file/Tensors.h"
#include "frontend/onnx/import/Node.h"
#include "frontend/onnx/import/Value.h"

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::onnx {

/// The names that nodes of one graph or function can read.
struct Scope {
  const Scope *outer = nullptr; ///< of the graph around a graph attribute; null in the main graph and in functions
  std::map<std::string_view, ValuePtr> values = {};
  const file::Opsets *opsets = nullptr;
  /// The attributes of a call of a function, by name; null outside of functions.
  const std::map<std::string_view, file::Named> *arguments = nullptr;
  std::map<std::string_view, int> reads = {}; ///< of each value, by the nodes of this graph
  std::string prefix = {};                    ///< of the names of nodes: the calls of functions around them

  /// Throws Malformed if nothing computes the value.
  ValuePtr find(std::string_view name) const;
  /// Whether the nodes belong to a function, also those of its graph attributes.
  bool isInFunction() const;
  /// In a function, the argument to which an attribute refers; nothing if the call lacks it.
  std::optional<file::Named> resolve(const file::Named &attribute) const;
};

/// A reason for which nodes of one operator cannot be imported.
struct Problem {
  std::string op, reason, first; ///< the operator with its domain; the name of the first node
  std::int64_t opset = 0, nodes = 0;
};

/// Makes a "parameter" or "statistic" of a known value, with a name that is new.
using MakeState = std::function<Tensor(const char *kind, const std::string &name, const Known &known)>;

/// Options of the import.
struct Rules {
  bool recognizes = false;      ///< decomposed layers
  bool trainsBatchNorm = false; ///< in training steps
};

class Importer {
public:
  /// All arguments outlive the importer.
  Importer(Graph &graph, const file::Model &model, file::Tensors &tensors, MakeState makeState, Rules rules = {});

  /// Walks the main graph. `inputs` are by name; initializers need none. Returns the outputs of these names, which may be
  /// those of any value of the main graph. Throws Malformed, and Error with code 4 that lists all problems.
  std::vector<ValuePtr> run(const std::map<std::string, ValuePtr, std::less<>> &inputs,
                            const std::vector<std::string> &outputs);
  /// The problems so far, in the order of the nodes.
  const std::vector<Problem> &problems() const { return found; }
  /// "2 operators are not supported: ...", which lists all problems; empty if there are none.
  std::string problemText() const;

  // --- for nodes

  Graph &graph() const { return *target; }
  file::Tensors &tensors() const { return data; }
  Tensor tensorOf(const ValuePtr &value, bool isWeight);
  /// A known value as a state.
  Tensor stateOf(const char *kind, std::string_view name, const Known &known);
  /// The numbers of the iterations of the scans around the nodes that are imported now, outermost first.
  std::vector<Tensor> &scanIterations() { return iterationsOfScans; }
  bool trainsBatchNorm() const { return rules.trainsBatchNorm && !foldInputs; }
  /// Counts an iteration of a loop that is unrolled; throws Unsupported if there are too many in all.
  void countIteration();
  std::int64_t iterationsSoFar() const { return iterations; }
  Tensor constant(const Known &known) const;
  std::vector<ValuePtr> callGraph(const file::Graph &body, const std::vector<ValuePtr> &inputs, const Scope &outer);

private:
  void addInitializers(const file::Graph &graph, Scope &scope);
  /// Imports the nodes on which the outputs depend.
  void walk(const std::vector<file::Node> &nodes, const std::vector<std::string_view> &outputs, Scope &scope);
  void import(const file::Node &node, Scope &scope);
  void importOperator(const file::Node &file, Scope &scope, std::int64_t opset);
  void callFunction(const file::Function &function, const file::Node &node, Scope &scope);
  const file::Function *functionOf(const file::Node &node) const;
  /// Computes a node from known inputs by the reference functions of its ops; false if that is not possible.
  bool fold(Node &node, void (*handler)(Node &));
  /// The input for a known value in the graph of a folded node.
  Tensor tensorToFold(const ValuePtr &value);
  Tensor tensorOf(const Sizes &sizes) const;
  /// Counts the memory of known results; throws Unsupported if all have too much.
  void countComputed(const Node &node);
  void note(const file::Node &node, const Scope &scope, std::int64_t opset, const std::string &reason);

  Graph *target;
  const file::Model &model;
  file::Tensors &data;
  MakeState makeState;
  std::vector<Problem> found;
  std::vector<Tensor> *foldInputs = nullptr; ///< while a node is folded: the inputs of its graph
  std::vector<ValuePtr> folded;              ///< and the values for which they stand
  std::int64_t visited = 0;                  ///< nodes so far
  std::uint64_t computed = 0;                ///< bytes of known results so far
  Rules rules;
  std::int64_t iterations = 0; ///< of loops that are unrolled
  std::vector<Tensor> iterationsOfScans;
  int depth = 0; ///< of graphs and functions in each other
};

/// The name of a node for messages: its own, or that of its first result.
std::string nameOf(const file::Node &node, const std::string &prefix = "");

/// The operator of a node, with its domain unless that is ONNX's own: "com.microsoft.Gelu".
std::string operatorOf(const file::Node &node);

} // namespace sluice::onnx
