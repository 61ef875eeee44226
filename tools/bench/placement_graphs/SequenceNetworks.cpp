// Networks on sentences: one whose size grows with the batches, and one unrolled over words.
#include "tools/bench/placement_graphs/GraphFamilies.h"
#include "tools/bench/placement_graphs/Repeat.h"
#include "tools/bench/placement_graphs/TrainingGraph.h"

namespace sluice::bench {

using Gradient = TrainingGraph::Gradient;
using Node = TrainingGraph::Node;

namespace {

/// Devlin et al., "BERT" (arXiv:1810.04805): the base model and, for the sizes of embeddings, its release; 32 sentences
/// of 128 tokens a batch, and a loss on the pooled output.
class Bert {
public:
  void addBatch() {
    asked = 0;
    Node tokens = graph.data(kTokens);
    Node x = graph.pointwise(Gradient::Linear, kWidth * kTokens, {tokens},
                             {parameter(30522 * kWidth), parameter(512 * kWidth), parameter(2 * kWidth)});
    x = normalize(x);
    for (int layer = 0; layer < 12; ++layer)
      x = encode(x);
    Node pooled = graph.layer(Gradient::Linear, 2 * kWidth * kWidth * kSentences, kWidth * kSentences, {x},
                              {parameter(kWidth * kWidth + kWidth)});
    graph.loss(graph.pointwise(Gradient::Nonlinear, kWidth * kSentences, {pooled}), graph.data(kSentences));
  }
  WorkGraph finish() { return graph.finish(); }

private:
  static constexpr double kWidth = 768, kInner = 3072, kHeads = 12, kSentences = 32, kLength = 128,
                          kTokens = kSentences * kLength;

  Node encode(Node x) {
    Node query = connect(x, kWidth, kWidth), key = connect(x, kWidth, kWidth), value = connect(x, kWidth, kWidth);
    double scoreCount = kSentences * kHeads * kLength * kLength, products = 2 * kTokens * kLength * kWidth;
    Node scores = graph.layer(Gradient::Linear, products, scoreCount, {query, key});
    Node weights = graph.layer(Gradient::Nonlinear, 5 * scoreCount, scoreCount, {scores});
    Node context = graph.layer(Gradient::Linear, products, kTokens * kWidth, {weights, value});
    x = normalize(add(x, connect(context, kWidth, kWidth)));
    Node inner = connect(x, kWidth, kInner);
    inner = graph.layer(Gradient::Nonlinear, 10 * kTokens * kInner, kTokens * kInner, {inner});
    return normalize(add(x, connect(inner, kInner, kWidth)));
  }
  Node connect(Node x, double from, double to) {
    return graph.layer(Gradient::Linear, 2 * kTokens * from * to, kTokens * to, {x}, {parameter(from * to + to)});
  }
  Node add(Node a, Node b) { return graph.pointwise(Gradient::Passes, graph.elements(a), {a, b}); }
  Node normalize(Node x) {
    return graph.layer(Gradient::Nonlinear, 8 * kTokens * kWidth, kTokens * kWidth, {x}, {parameter(2 * kWidth)});
  }
  /// Each batch requests the same parameters in the same order, and shares those of the first batch.
  Node parameter(double elements) {
    if (asked == parameters.size())
      parameters.push_back(graph.parameter(elements));
    return parameters[asked++];
  }

  TrainingGraph graph;
  TrainingGraph::Nodes parameters;
  size_t asked = 0;
};

/// Wu et al., "Google's Neural Machine Translation System" (arXiv:1609.08144), section 3: 8 encoder layers, the lowest
/// of them bidirectional; 8 decoder layers; residual connections from the third layer on; attention from the lowest
/// decoder layer; 1024 units; 32,000 word pieces; 128 sentences.
class Gnmt {
public:
  explicit Gnmt(uint32_t words) : words(words) {}

  WorkGraph build() {
    Nodes source = embed(graph.parameter(kVocabulary * kUnits)), target = embed(graph.parameter(kVocabulary * kUnits));
    attend(encode(std::move(source)));
    decode(std::move(target));
    return graph.finish();
  }

private:
  using Nodes = TrainingGraph::Nodes;
  static constexpr double kUnits = 1024, kVocabulary = 32000, kBatch = 128, kState = kBatch * kUnits;

  /// A layer's weights and the state of its last step.
  struct Cell {
    Node weights;
    double inputs;
    std::optional<Node> output{}, memory{};
  };

  Cell cell(double inputs) { return {graph.parameter((inputs + kUnits + 1) * 4 * kUnits), inputs}; }

  Nodes embed(Node table) {
    Nodes result;
    for (uint32_t t = 0; t < words; ++t)
      result.push_back(graph.pointwise(Gradient::Linear, kState, {graph.data(kBatch)}, {table}));
    return result;
  }

  /// One step: a product for all gates, the new memory, and the output.
  Node step(Cell &cell, Nodes inputs) {
    if (cell.output)
      inputs.push_back(*cell.output);
    double flops = 2 * kBatch * (cell.inputs + kUnits) * 4 * kUnits;
    Node gates = graph.layer(Gradient::Linear, flops, 4 * kState, std::move(inputs), {cell.weights});
    Nodes operands{gates};
    if (cell.memory)
      operands.push_back(*cell.memory);
    cell.memory = graph.layer(Gradient::Nonlinear, 20 * kState, kState, std::move(operands));
    cell.output = graph.layer(Gradient::Nonlinear, 10 * kState, kState, {gates, *cell.memory});
    return *cell.output;
  }
  Node add(Node a, Node b) { return graph.pointwise(Gradient::Passes, kState, {a, b}); }

  Nodes encode(Nodes x) {
    Cell forward = cell(kUnits), backward = cell(kUnits);
    Nodes ahead(words), back(words);
    for (uint32_t t = 0; t < words; ++t)
      ahead[t] = step(forward, {x[t]});
    for (uint32_t t = words; t-- > 0;)
      back[t] = step(backward, {x[t]});
    Cell second = cell(2 * kUnits);
    for (uint32_t t = 0; t < words; ++t)
      x[t] = step(second, {ahead[t], back[t]});
    for (int layer = 2; layer < 8; ++layer) {
      Cell next = cell(kUnits);
      for (uint32_t t = 0; t < words; ++t)
        x[t] = add(x[t], step(next, {x[t]}));
    }
    return x;
  }

  /// The input of attention is projected once.
  void attend(Nodes encoded) {
    memory = graph.pointwise(Gradient::Slices, words * kState, std::move(encoded));
    keys = graph.layer(Gradient::Linear, 2 * words * kState * kUnits, words * kState, {memory},
                       {graph.parameter(kUnits * kUnits)});
    queryWeights = graph.parameter(kUnits * kUnits);
  }
  Node attention(Node query) {
    Node projected = graph.layer(Gradient::Linear, 2 * kState * kUnits, kState, {query}, {queryWeights});
    Node weights = graph.layer(Gradient::Nonlinear, 4 * words * kState, words * kBatch, {projected, keys});
    return graph.layer(Gradient::Linear, 2 * words * kState, kState, {weights, memory});
  }

  void decode(Nodes x) {
    std::vector<Cell> cells{cell(2 * kUnits)};
    for (int layer = 1; layer < 8; ++layer)
      cells.push_back(cell(2 * kUnits));
    Node projection = graph.parameter((kUnits + 1) * kVocabulary);
    std::optional<Node> context;
    for (uint32_t t = 0; t < words; ++t) {
      Node y = step(cells[0], context ? Nodes{x[t], *context} : Nodes{x[t]});
      context = attention(y);
      for (int layer = 1; layer < 8; ++layer) {
        Node output = step(cells[layer], {y, *context});
        y = layer < 2 ? output : add(y, output);
      }
      Node scores = graph.layer(Gradient::Linear, 2 * kState * kVocabulary, kBatch * kVocabulary, {y}, {projection});
      graph.loss(scores, graph.data(kBatch));
    }
  }

  uint32_t words;
  TrainingGraph graph;
  Node memory = 0, keys = 0, queryWeights = 0;
};

} // namespace

WorkGraph bertBase(uint32_t groups, uint32_t) {
  return repeatToSize(groups, [](uint32_t batches) {
    Bert bert;
    for (uint32_t batch = 0; batch < batches; ++batch)
      bert.addBatch();
    return bert.finish();
  });
}

WorkGraph gnmt(uint32_t groups, uint32_t) {
  return repeatToSize(groups, [](uint32_t words) { return Gnmt(words).build(); });
}

} // namespace sluice::bench
