// Builds the work of a training step from a network's layers: forward, backward and updates.
#pragma once

#include "tools/bench/placement_graphs/WorkGraph.h"
#include <initializer_list>

namespace sluice::bench {

/// Layers are added in the order of the forward pass; `finish` appends the backward pass. Sizes are in elements of four
/// bytes. A parameter that several layers share gets one gradient, which they add to in turn.
class TrainingGraph {
public:
  using Node = uint32_t;
  using Nodes = std::vector<Node>;

  /// How the gradient of a layer's input is computed.
  enum class Gradient {
    Passes,   ///< equals the gradient of the result: a sum, a view
    Slices,   ///< a part of the gradient of the result: a concatenation
    Linear,   ///< from that of the result, the weights and the other inputs: a product, a pooling
    Nonlinear ///< also from the input itself
  };

  /// A batch that the host reads; it has no gradient.
  Node data(double elements);
  /// Weights with their momentum.
  Node parameter(double elements);
  /// `flops` is the work of the forward pass, and of the gradient of each input and parameter.
  Node layer(Gradient gradient, double flops, double elements, Nodes inputs, Nodes parameters = {});
  /// A layer with one flop per element.
  Node pointwise(Gradient gradient, double elements, Nodes inputs, Nodes parameters = {});
  /// The loss of a batch, fetched by the host.
  void loss(Node prediction, Node labels);

  double elements(Node node) const { return double(graph.groups[node].output) / kBytes; }
  WorkGraph finish();

private:
  static constexpr double kBytes = 4;

  struct Layer {
    Gradient gradient;
    double flops;
    Node result;
    Nodes inputs, parameters;
  };

  Node addGroup(double flops, double elements, Nodes inputs);
  void addGradients(const Layer &layer);
  void addInputGradient(const Layer &layer, size_t input, Node resultGradient);
  void addParameterGradient(const Layer &layer, Node parameter, Node resultGradient);
  /// The sum of the contributions of a node's consumers.
  Node gradientOf(Node node);

  WorkGraph graph;
  std::vector<Layer> layers;
  std::vector<bool> needsGradient;  // per node of the forward pass
  std::vector<Nodes> contributions; // per node of the forward pass, gradients; of a parameter the last one holds all
};

} // namespace sluice::bench
