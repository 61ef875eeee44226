// Data parallelism written out: one batch of a static size on several devices of one graph. A batch whose rows show
// when the program runs is for `sluice compile --replicas N`, which needs none of this.
#pragma once

#include "sluice/device.h"
#include "sluice/module.h"
#include "sluice/tensor.h"

#include <source_location>
#include <utility>
#include <vector>

namespace sluice {

struct SplitOptions {
  /// Whether rows that the devices do not divide are an error; else the first devices get one more: 51 as 26 and 25.
  bool even_split = true;
};

/// Slices of the rows (dimension 0), each moved to its device. Every device gets at least one.
std::vector<Tensor> split(Arg batch, const std::vector<Device> &devices, const SplitOptions &options = {});

/// Features and labels, split alike: the parts of x and those of y. Lengths that differ are an error.
std::pair<std::vector<Tensor>, std::vector<Tensor>>
split_batch(Arg x, const Tensor &y, const std::vector<Device> &devices, const SplitOptions &options = {});

/// The sum of tensors on several devices, on the device of each: the first adds the others in their order.
std::vector<Tensor> allreduce(std::vector<Tensor> data, std::source_location where = std::source_location::current());

/// A copy of every parameter on a device: a parameter of its own, such as W1.gpu0 of W1, that begins with the same
/// elements. From then on nothing holds them together but what the graph writes into them (Tensor::copy_); those that
/// were copied stay as they are. Once for each device.
std::vector<Tensor> get_params(const std::vector<Tensor> &params, const Device &device,
                               std::source_location where = std::source_location::current());

namespace nn {

/// The module on a batch that is split over devices; its results are joined on the first, where all of the module
/// lives. The others compute with copies of its parameters and buffers, and what they would write into buffers is lost,
/// as in PyTorch.
Tensor data_parallel(Module &module, Arg x, const std::vector<Device> &devices, const SplitOptions &options = {});

} // namespace nn
} // namespace sluice
