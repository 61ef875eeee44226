// Creates arrays by functions of a graph without operands, such as full and arange.
#pragma once

#include "sluice/array.h"
#include "sluice/graph.h"

namespace sluice::detail {

/// The graph that this thread is tracing.
Graph &tracedGraph();

/// The array that `make(graph, arguments...)` computes, on `device` or on the default device.
template <class Make, class... Arguments>
Array create(const char *name, std::source_location where, const std::optional<Device> &device, const Make &make,
             const Arguments &...arguments) {
  auto traced = [make, where](const auto &...its) { return make(tracedGraph(), its..., where); };
  return std::move(applyOn(device, name, where, traced, arguments...).front());
}

} // namespace sluice::detail
