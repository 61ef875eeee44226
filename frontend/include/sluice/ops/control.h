// Scans and branches.
#pragma once

#include "sluice/tensor.h"

#include <cstdint>
#include <functional>
#include <source_location>
#include <vector>

namespace sluice {

/// What a step of a scan leaves: the carried values for the next one, and what is stacked.
struct ScanStep {
  std::vector<Tensor> carried, stacked;
};
struct ScanOptions {
  bool reverse = false; ///< from the last slice to the first; what a step stacks lies where its slices lie
  /// Of all steps only what they carry is kept for their gradients, which compute the rest again: less memory, the same bits.
  bool recompute = false;
};
/// Does `body` for each slice of all `xs` along a dimension, which is not the batch: with the carried values, which begin as
/// `init`, and the slices, without that dimension. It is called once, to build one step; other tensors of the graph it may
/// read, parameters among them. Gives what the last step carries, and what all have stacked, along the same dimension:
///
///     ScanStep sums = scan({zeros_like(x.select(1, 0))}, {x}, 1, [](auto &carried, auto &slices) {
///       Tensor sum = carried[0] + slices[0];
///       return ScanStep{{sum}, {sum}};
///     });
ScanStep
scan(std::vector<Tensor> init, std::vector<Tensor> xs, std::int64_t dim,
     const std::function<ScanStep(const std::vector<Tensor> &carried, const std::vector<Tensor> &slices)> &body,
     ScanOptions options = {}, std::source_location where = std::source_location::current());

/// What `then` gives where the predicate, a bool without dimensions, holds, what `otherwise` gives elsewhere: alike in number,
/// shapes and dtypes. Both are called once, to build them; of a call of the program one is done, and its gradient alone. They may
/// read all tensors of the graph, parameters among them, and random numbers and updates of buffers have no place in them. A
/// branch is done on one device. All rows of a call, and all replicas, take one branch: a predicate that is made of rows is
/// one of all rows.
///
///     Tensor y = cond(loss > 2.0, [&] { return x * 0.5; }, [&] { return x; });
std::vector<Tensor> cond(Arg predicate, const std::function<std::vector<Tensor>()> &then,
                         const std::function<std::vector<Tensor>()> &otherwise);
Tensor cond(Arg predicate, const std::function<Tensor()> &then, const std::function<Tensor()> &otherwise);

} // namespace sluice
