// The binary files of CIFAR-10 and CIFAR-100: rows of labels and 3 x 32 x 32 bytes, in planes of red, green and blue.
#pragma once

#include "runtime/data/tables/Table.h"

#include <string>
#include <vector>

namespace sluice::runtime {

/// The columns `image` and `label` of data_batch_1.bin to data_batch_5.bin, or of test_batch.bin.
Table cifar10Table(const std::string &folder, bool isTest);

/// The columns `image`, `label` (the fine one) and `coarse_label` of train.bin or test.bin.
Table cifar100Table(const std::string &folder, bool isTest);

} // namespace sluice::runtime
