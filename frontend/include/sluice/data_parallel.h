// Explicit data parallelism: a batch of static size on several devices of one graph. For a batch whose rows are known
// only at run time, use `sluice compile --replicas N` without these functions. All functions throw Error for a device
// that the target lacks.
#pragma once

#include "sluice/device.h"
#include "sluice/module.h"
#include "sluice/tensor.h"

#include <source_location>
#include <utility>
#include <vector>

namespace sluice {

/// Options of split.
struct SplitOptions {
  /// Fail if the number of devices does not divide the rows. Otherwise the first devices get one row more: 51 as 26 and
  /// 25.
  bool even_split = true;
};

/// Slices of dimension 0, each copied to its device, in the order of `devices`. Fails if a device would get no row, and
/// for the batch dimension.
std::vector<Tensor> split(Arg batch, const std::vector<Device> &devices, const SplitOptions &options = {});

/// The same split of features x and labels y: the parts of x, and those of y. Fails if their lengths differ.
std::pair<std::vector<Tensor>, std::vector<Tensor>>
split_batch(Arg x, const Tensor &y, const std::vector<Device> &devices, const SplitOptions &options = {});

/// The sum of tensors of one shape, on the device of each. The first device adds the others in their order. Fails if a
/// tensor has no device yet.
std::vector<Tensor> allreduce(std::vector<Tensor> data, std::source_location where = std::source_location::current());

/// A copy of every parameter on a device: a separate parameter, such as W1.gpu0 of W1, with the same initial elements.
/// The graph must keep copies equal (Tensor::copy_). A parameter can be copied once to each device. Fails for tensors
/// that Module::parameter did not return.
std::vector<Tensor> get_params(const std::vector<Tensor> &params, const Device &device,
                               std::source_location where = std::source_location::current());

namespace nn {

/// The results of a module for the parts of a batch on several devices, joined on the first (torch.nn.DataParallel).
/// All states of the module must be on the first device. The other devices compute with copies, and their writes to
/// buffers are lost, as in PyTorch.
Tensor data_parallel(Module &module, Arg x, const std::vector<Device> &devices, const SplitOptions &options = {});

} // namespace nn
} // namespace sluice
