// Unused parts of a graph: layers, and parameters of other layers, on which no output, metric or saved state depends.
#include "frontend/graph/GraphImpl.h"
#include "ir/Module.h"

#include <deque>
#include <set>

using namespace mlir;

namespace sluice {

using detail::Access;
using detail::GraphImpl;

namespace {

class UnusedParts {
public:
  explicit UnusedParts(GraphImpl &graph) : graph(graph), alive(graph.opsBehind(givenOut())) {
    for (Operation *op : alive)
      if (auto get = dyn_cast<ir::GetOp>(op))
        addRead(get.getState());
  }

  std::vector<Graph::Unused> find() {
    std::deque<bool> isDead = deadLayers();
    std::vector<Graph::Unused> unused;
    for (size_t number = 0; number < graph.layers.size(); ++number) {
      const GraphImpl::Layer &layer = graph.layers[number];
      if (isDead[number]) {
        if (!layer.parent || !isDead[*layer.parent])
          unused.push_back({"layer '" + layer.name + "'", layer.where});
        continue;
      }
      for (const std::string &name : layer.states)
        if (ir::StateOp state = graph.findState(name); // tied parameters have no state
            state && state.getKind() == ir::StateKind::Parameter && !read.contains(name))
          unused.push_back({"parameter '" + name + "'", detail::locationOf(state.getLoc())});
    }
    return unused;
  }

private:
  /// A state that starts with the values of another state counts as that state.
  void addRead(StringRef name) {
    read.insert(name.str());
    if (std::optional<StringRef> like = graph.findState(name.str()).getLike())
      read.insert(like->str());
  }

  bool setsParameter(Operation &op) {
    auto set = dyn_cast<ir::SetOp>(op);
    return set && graph.findState(set.getState()).getKind() == ir::StateKind::Parameter;
  }

  SmallVector<Value> givenOut() {
    SmallVector<Value> values;
    for (Operation &op : graph.graph.getBody().front())
      if (isa<ir::OutputOp, ir::MetricOp, ir::MinimizeOp>(op) || setsParameter(op))
        llvm::append_range(values, op.getOperands());
    return values;
  }

  /// A value in a step of a scan is live if the scan is.
  bool isAlive(Value value) {
    Operation *op = value.getDefiningOp();
    Operation *ofGraph = op ? graph.graph.getBody().front().findAncestorOpInBlock(*op) : nullptr;
    return !ofGraph || alive.contains(ofGraph);
  }

  /// Layers that have states or were called, but of which no state is read and no result is used, including those of
  /// their parts. Parts come after their parents.
  std::deque<bool> deadLayers() {
    std::deque<bool> isDead, isThere;
    for (const GraphImpl::Layer &layer : graph.layers) {
      isThere.push_back(!layer.states.empty() || !layer.results.empty());
      isDead.push_back(layer.parent && llvm::none_of(layer.results, [&](Value v) { return isAlive(v); }) &&
                       llvm::none_of(layer.states, [&](const std::string &state) { return read.contains(state); }));
    }
    for (size_t number = graph.layers.size(); number-- > 0;) {
      std::optional<size_t> parent = graph.layers[number].parent;
      if (!parent)
        continue;
      isThere[*parent] = isThere[*parent] || isThere[number];
      isDead[*parent] = isDead[*parent] && (isDead[number] || !isThere[number]);
      isDead[number] = isDead[number] && isThere[number];
    }
    return isDead;
  }

  GraphImpl &graph;
  llvm::SetVector<Operation *> alive;
  std::set<std::string> read;
};

} // namespace

std::vector<Graph::Unused> Graph::unused() const { return UnusedParts(*graph).find(); }

} // namespace sluice
