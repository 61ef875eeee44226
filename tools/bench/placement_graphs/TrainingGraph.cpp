#include "tools/bench/placement_graphs/TrainingGraph.h"
#include <algorithm>
#include <cassert>

namespace sluice::bench {

using Node = TrainingGraph::Node;

Node TrainingGraph::addGroup(double flops, double elements, Nodes inputs) {
  int64_t bytes = int64_t(kBytes * elements);
  return graph.add({flops, bytes, bytes, std::move(inputs), {}});
}

Node TrainingGraph::data(double elements) {
  Node node = addGroup(0, elements, {});
  graph.groups[node].isOnHost = true;
  needsGradient.resize(node + 1, false);
  return node;
}

Node TrainingGraph::parameter(double elements) {
  Node node = addGroup(4 * elements, elements, {});
  graph.groups[node].memory *= 2;
  graph.parameterCount += int64_t(elements);
  needsGradient.resize(node + 1, true);
  return node;
}

Node TrainingGraph::layer(Gradient gradient, double flops, double elements, Nodes inputs, Nodes parameters) {
  Nodes operands = inputs;
  operands.insert(operands.end(), parameters.begin(), parameters.end());
  Node result = addGroup(flops, elements, operands);
  bool needs = std::any_of(operands.begin(), operands.end(), [&](Node operand) { return needsGradient[operand]; });
  needsGradient.resize(result + 1, needs);
  layers.push_back({gradient, flops, result, std::move(inputs), std::move(parameters)});
  return result;
}

Node TrainingGraph::pointwise(Gradient gradient, double elements, Nodes inputs, Nodes parameters) {
  return layer(gradient, elements, elements, std::move(inputs), std::move(parameters));
}

void TrainingGraph::loss(Node prediction, Node labels) {
  Node loss = layer(Gradient::Nonlinear, 5 * elements(prediction), 1, {prediction, labels});
  Node read = data(0);
  graph.groups[read].inputs = {loss};
}

WorkGraph TrainingGraph::finish() {
  contributions.resize(graph.groups.size());
  for (size_t i = layers.size(); i-- > 0;)
    addGradients(layers[i]);
  for (Node node = 0; node < contributions.size(); ++node)
    if (needsGradient[node] && graph.groups[node].inputs.empty())
      graph.groups[node].updates = {contributions[node].back()};
  return std::move(graph);
}

void TrainingGraph::addGradients(const Layer &layer) {
  if (!needsGradient[layer.result])
    return;
  Node resultGradient = gradientOf(layer.result);
  for (size_t input = 0; input < layer.inputs.size(); ++input)
    if (needsGradient[layer.inputs[input]])
      addInputGradient(layer, input, resultGradient);
  for (Node parameter : layer.parameters)
    addParameterGradient(layer, parameter, resultGradient);
}

void TrainingGraph::addInputGradient(const Layer &layer, size_t input, Node resultGradient) {
  Node of = layer.inputs[input];
  if (layer.gradient == Gradient::Passes) {
    contributions[of].push_back(resultGradient);
    return;
  }
  Nodes operands{resultGradient};
  if (layer.gradient != Gradient::Slices) {
    operands.insert(operands.end(), layer.parameters.begin(), layer.parameters.end());
    for (size_t other = 0; other < layer.inputs.size(); ++other)
      if (other != input || layer.gradient == Gradient::Nonlinear)
        operands.push_back(layer.inputs[other]);
  }
  contributions[of].push_back(addGroup(layer.flops, elements(of), std::move(operands)));
}

void TrainingGraph::addParameterGradient(const Layer &layer, Node parameter, Node resultGradient) {
  Nodes operands{resultGradient};
  operands.insert(operands.end(), layer.inputs.begin(), layer.inputs.end());
  bool isFirst = contributions[parameter].empty();
  if (!isFirst)
    operands.push_back(contributions[parameter].back());
  Node gradient = addGroup(layer.flops, elements(parameter), std::move(operands));
  if (!isFirst)
    graph.groups[gradient].memory = 0; // accumulates in place
  contributions[parameter].push_back(gradient);
}

/// The gradient of a loss is one, which costs nothing.
Node TrainingGraph::gradientOf(Node node) {
  const Nodes &parts = contributions[node];
  if (parts.empty())
    return addGroup(0, elements(node), {});
  return parts.size() == 1 ? parts.front() : addGroup(elements(node), elements(node), parts);
}

} // namespace sluice::bench
