// A batch as arrays on several devices: split_and_load of MXNet, the scatter of torch.nn.DataParallel.
#pragma once

#include "sluice/array/core.h"
#include "sluice/data_parallel.h"

#include <source_location>
#include <utility>
#include <vector>

namespace sluice {

/// Slices of dimension 0, each on its device, in the order of `devices`; a slice for another device is copied once.
/// Throws Error if a device would get no row, and if the split is uneven without `.even_split = false`.
std::vector<Array> split(ArrayArg batch, const std::vector<Device> &devices, const SplitOptions &options = {});

/// The same split of features x and labels y: the parts of x, and those of y. Throws Error if their lengths differ.
std::pair<std::vector<Array>, std::vector<Array>>
split_batch(ArrayArg x, const Array &y, const std::vector<Device> &devices, const SplitOptions &options = {});

/// Replaces each array by the sum of all, which have one shape and dtype: allreduce of the same book. The first device adds
/// in the order of the list, and the others get copies, so that all arrays have equal bits.
void allreduce(std::vector<Array> &arrays, std::source_location where = std::source_location::current());

} // namespace sluice
