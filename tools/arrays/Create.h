// Functions that make values of a graph without operands, as functions that make arrays.
#pragma once

#include "sluice/array.h"
#include "sluice/graph.h"

namespace sluice::detail {

/// The graph that this thread traces a function in.
Graph &tracedGraph();

/// An array from `make(graph, arguments...)`.
template <class Make, class... Arguments>
Array create(const char *name, std::source_location where, const std::optional<Device> &device, const Make &make,
             const Arguments &...arguments) {
  auto traced = [make, where](const auto &...its) { return make(tracedGraph(), its..., where); };
  return std::move(applyOn(device, name, where, traced, arguments...).front());
}

} // namespace sluice::detail
