// Assigns a call's rows to replicas and microbatches, and locates rows in tensors.
#pragma once

#include "runtime/plan/Plan.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace sluice::runtime {

/// The rows of one replica in a call: `rows` rows from number `first` on, of `all` rows over all replicas.
struct RowShare {
  int64_t rows, first, all;
};

/// Shares differ by at most one row; larger shares come first.
inline RowShare shareOf(int64_t rows, int64_t replicas, int64_t replica) {
  int64_t least = rows / replicas, more = rows % replicas;
  return {least + (replica < more), replica * least + std::min(replica, more), rows};
}

/// The rows of microbatch `number` of a share. All microbatches but the last have `capacity` rows.
inline RowShare microbatchOf(const RowShare &share, int64_t number, int64_t capacity) {
  int64_t before = std::min(number * capacity, share.rows);
  return {std::min(capacity, share.rows - before), share.first + before, share.all};
}

/// The rows of a replica of the plan. With logical shards, rows are distributed over the shards as over replicas, and a
/// replica has the rows of its shards.
inline RowShare shareOf(const Plan &plan, int64_t rows, int64_t replica) {
  if (plan.logicalShards == 0)
    return shareOf(rows, plan.replicas, replica);
  RowShare first = shareOf(rows, plan.logicalShards, replica * plan.microbatches);
  RowShare next = shareOf(rows, plan.logicalShards, (replica + 1) * plan.microbatches);
  return {next.first - first.first, first.first, rows};
}

/// The rows of microbatch `number` of the share of a replica of the plan.
inline RowShare microbatchOf(const Plan &plan, const RowShare &share, int64_t replica, int64_t number) {
  return plan.logicalShards == 0 ? microbatchOf(share, number, plan.capacity)
                                 : shareOf(share.all, plan.logicalShards, replica * plan.microbatches + number);
}

/// A value as `outer` blocks of rows: one block for each index of the dimensions before the rows dimension. A block has
/// memory for `room` rows. A value without a rows dimension is one row.
struct RowBlocks {
  int64_t outer = 1, rowBytes, room = 1;

  /// `capacity` is the plan's; `rows` becomes the `room` of a block.
  RowBlocks(const Value &value, int64_t capacity, int64_t rows) : rowBytes(static_cast<int64_t>(sizeOf(value.dtype))) {
    for (size_t i = 0; i < value.shape.size(); ++i) {
      int dim = static_cast<int>(i);
      (dim < value.rowsDim ? outer : rowBytes) *= dim == value.rowsDim ? value.shape[i] / capacity : value.shape[i];
    }
    if (value.rowsDim >= 0)
      room = rows;
  }
  RowBlocks(const Value &value, int64_t capacity) : RowBlocks(value, capacity, capacity) {}
  /// For a value of the plan.
  RowBlocks(const Value &value, const Plan &plan) : RowBlocks(value, plan.capacity, plan.roomOf(value)) {}

  /// Copies `rows` rows of each block, from row `fromFirst` on to row `toFirst` on. A block at `from` has memory for
  /// `fromRoom` rows, a block at `to` for `toRoom` rows.
  void copy(std::byte *to, int64_t toRoom, int64_t toFirst, const std::byte *from, int64_t fromRoom, int64_t fromFirst,
            int64_t rows) const {
    int64_t bytes = rows * rowBytes;
    for (int64_t block = 0; block < outer && bytes > 0; ++block)
      std::memcpy(to + (block * toRoom + toFirst) * rowBytes, from + (block * fromRoom + fromFirst) * rowBytes,
                  static_cast<size_t>(bytes));
  }
};

} // namespace sluice::runtime
