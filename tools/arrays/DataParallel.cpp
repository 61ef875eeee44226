// Batches of arrays on several devices.
#include "sluice/array/data_parallel.h"
#include "sluice/array/ops.h"

#include <string>

namespace sluice {

/// The rows of a batch; fails if `devices` cannot share them.
static int64_t shareableRows(const ArrayArg &batch, size_t devices, bool evenly) {
  if (devices == 0)
    throw Error("split: needs at least one device", batch.where);
  int64_t rows = batch.array.size(0, batch.where), parts = int64_t(devices);
  std::string among = std::to_string(rows) + " rows among " + std::to_string(parts) + " devices";
  if (rows < parts)
    throw Error("split: cannot split " + among + ": an array has at least one row", batch.where);
  if (evenly && rows % parts != 0)
    throw Error("split: cannot split " + among +
                    " evenly; SplitOptions{.even_split = false} gives the first ones one more",
                batch.where);
  return rows;
}

std::vector<Array> split(ArrayArg batch, const std::vector<Device> &devices, const SplitOptions &options) {
  int64_t rows = shareableRows(batch, devices.size(), options.even_split), parts = int64_t(devices.size());
  std::vector<Array> slices;
  int64_t start = 0;
  for (int64_t i = 0; i < parts; ++i) {
    int64_t end = start + rows / parts + (i < rows % parts);
    slices.push_back(batch.array.slice(0, start, end, 1, batch.where).to(devices[size_t(i)], batch.where));
    start = end;
  }
  return slices;
}

std::pair<std::vector<Array>, std::vector<Array>>
split_batch(ArrayArg x, const Array &y, const std::vector<Device> &devices, const SplitOptions &options) {
  int64_t features = x.array.size(0, x.where), labels = y.size(0, x.where);
  if (features != labels)
    throw Error("split_batch: lengths differ: " + std::to_string(features) + " of x and " + std::to_string(labels) +
                    " of y",
                x.where);
  return {split(x, devices, options), split(ArrayArg(y, x.where), devices, options)};
}

} // namespace sluice
