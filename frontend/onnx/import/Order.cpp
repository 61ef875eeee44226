#include "frontend/onnx/import/Order.h"

#include "frontend/onnx/file/Wire.h"
#include "frontend/onnx/import/Importer.h"

#include <cstdint>
#include <string>
#include <unordered_map>
#include <unordered_set>

namespace sluice::onnx {

using Names = std::vector<std::string_view>;

static void collectReads(const file::Node &node, Names &reads, int depth);

/// The values that a graph attribute reads from outside.
static void collectCaptured(const file::Graph &graph, Names &reads, int depth) {
  if (depth > kMostNested)
    throw Malformed("more than " + std::to_string(kMostNested) + " graphs lie within each other");
  std::unordered_set<std::string_view> own;
  for (const file::ValueInfo &input : graph.inputs)
    own.insert(input.name);
  for (const file::Named &initializer : graph.initializers)
    own.insert(initializer.name);
  Names inner;
  for (const file::Node &node : graph.nodes) {
    own.insert(node.outputs.begin(), node.outputs.end());
    collectReads(node, inner, depth);
  }
  for (const file::ValueInfo &output : graph.outputs)
    inner.push_back(output.name);
  for (std::string_view name : inner)
    if (!own.contains(name))
      reads.push_back(name);
}

/// The value that a Gradient differentiates, which an attribute names.
static void collectNamed(const file::Node &node, Names &reads) {
  for (const file::Named &attribute : node.attributes) {
    Message fields(attribute.message);
    for (Field field; fields.next(field);)
      if (attribute.name == "y" && field.number == 4)
        reads.push_back(field.bytes());
  }
}

static void collectReads(const file::Node &node, Names &reads, int depth) {
  for (std::string_view input : node.inputs)
    if (!input.empty())
      reads.push_back(input);
  for (const file::Graph &graph : file::graphsOf(node))
    collectCaptured(graph, reads, depth + 1);
  if (node.op == "Gradient")
    collectNamed(node, reads);
}

namespace {

/// A depth-first search from the outputs, without recursion: chains of nodes may be long.
class Search {
public:
  explicit Search(const std::vector<file::Node> &nodes) : nodes(nodes), state(nodes.size()) {
    for (std::size_t i = 0; i < nodes.size(); ++i)
      for (std::string_view output : nodes[i].outputs)
        if (!output.empty() && !makers.emplace(output, i).second)
          throw Malformed("two nodes compute '" + std::string(output) + "'");
  }

  void visit(std::string_view value) {
    auto maker = makers.find(value);
    if (maker == makers.end() || state[maker->second] == State::done)
      return;
    push(maker->second);
    while (!stack.empty()) {
      Visit &top = stack.back();
      if (top.next == top.reads.size()) {
        state[top.node] = State::done;
        order.push_back(top.node);
        stack.pop_back();
        continue;
      }
      auto below = makers.find(top.reads[top.next++]);
      if (below == makers.end() || state[below->second] == State::done)
        continue;
      if (state[below->second] == State::open)
        throw Malformed("the nodes form a cycle through '" + nameOf(nodes[below->second]) + "'");
      push(below->second);
    }
  }

  bool isNeeded(std::size_t node) const { return state[node] == State::done; }
  const std::vector<std::size_t> &finished() const { return order; }

private:
  enum class State : std::uint8_t { unseen, open, done };
  struct Visit {
    std::size_t node;
    Names reads;
    std::size_t next = 0;
  };
  void push(std::size_t node) {
    state[node] = State::open;
    stack.push_back({node, {}});
    collectReads(nodes[node], stack.back().reads, 0);
  }

  const std::vector<file::Node> &nodes;
  std::vector<State> state;
  std::unordered_map<std::string_view, std::size_t> makers;
  std::vector<Visit> stack;
  std::vector<std::size_t> order;
};

} // namespace

/// Whether each node follows the producers of its inputs.
static bool isSorted(const std::vector<const file::Node *> &nodes) {
  std::unordered_set<std::string_view> later, computed;
  for (const file::Node *node : nodes)
    later.insert(node->outputs.begin(), node->outputs.end());
  for (const file::Node *node : nodes) {
    Names reads;
    collectReads(*node, reads, 0);
    for (std::string_view name : reads)
      if (later.contains(name) && !computed.contains(name))
        return false;
    computed.insert(node->outputs.begin(), node->outputs.end());
  }
  return true;
}

std::vector<const file::Node *> orderOf(const std::vector<file::Node> &nodes, const Names &outputs) {
  Search search(nodes);
  for (std::string_view output : outputs)
    search.visit(output);
  std::vector<const file::Node *> inFile, sorted;
  for (std::size_t i = 0; i < nodes.size(); ++i)
    if (search.isNeeded(i))
      inFile.push_back(&nodes[i]);
  if (isSorted(inFile))
    return inFile;
  for (std::size_t i : search.finished())
    sorted.push_back(&nodes[i]);
  return sorted;
}

std::map<std::string_view, int> readsOf(const std::vector<const file::Node *> &nodes, const Names &outputs) {
  Names reads = outputs;
  for (const file::Node *node : nodes)
    collectReads(*node, reads, 0);
  std::map<std::string_view, int> counts;
  for (std::string_view name : reads)
    ++counts[name];
  return counts;
}

} // namespace sluice::onnx
