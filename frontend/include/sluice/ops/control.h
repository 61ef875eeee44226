// Scans and branches. Their bodies are called once, while the graph is built, and may read all tensors of the graph,
// including parameters. They cannot call dropout or write buffers. They may call the functions
// of random.h.
#pragma once

#include "sluice/tensor.h"

#include <cstdint>
#include <functional>
#include <source_location>
#include <vector>

namespace sluice {

/// The results of one step of a scan, or of the whole scan.
struct ScanStep {
  std::vector<Tensor> carried; ///< for the next step; of the scan: after the last step
  std::vector<Tensor> stacked; ///< of each step; of the scan: of all steps, along the scanned dimension
};
/// Options of scan.
struct ScanOptions {
  bool reverse = false; ///< from the last slice to the first; stacked values keep the places of their slices
  /// Keep only the carried values of each step for the gradients, which recompute the rest: less memory, equal bits.
  bool recompute = false;
};
/// Calls `body` for each slice of all `xs` along a dimension, which is not the batch. `carried` begins as `init` and
/// keeps its shapes and dtypes; `slices` lack the dimension. PyTorch has no stable equivalent.
///
///     ScanStep sums = scan({zeros_like(x.select(1, 0))}, {x}, 1, [](auto &carried, auto &slices) {
///       Tensor sum = carried[0] + slices[0];
///       return ScanStep{{sum}, {sum}};
///     });
///
/// Fails if `xs` is empty or differ in the number of slices, or if a step carries other shapes, dtypes or numbers of
/// values than `init`.
ScanStep
scan(std::vector<Tensor> init, std::vector<Tensor> xs, std::int64_t dim,
     const std::function<ScanStep(const std::vector<Tensor> &carried, const std::vector<Tensor> &slices)> &body,
     ScanOptions options = {}, std::source_location where = std::source_location::current());

/// The results of `then` if the predicate, a bool scalar, is true, and those of `otherwise` if not (torch.cond). A call
/// of the program runs one branch and its gradient, on one device. Both branches must return equally many values, at
/// least one, of the same shapes and dtypes. All rows of a call and all replicas take one branch: a predicate computed
/// from rows is one of all rows.
///
///     Tensor y = cond(loss > 2.0, [&] { return x * 0.5; }, [&] { return x; });
std::vector<Tensor> cond(Arg predicate, const std::function<std::vector<Tensor>()> &then,
                         const std::function<std::vector<Tensor>()> &otherwise);
Tensor cond(Arg predicate, const std::function<Tensor()> &then, const std::function<Tensor()> &otherwise);

} // namespace sluice
