// Generates the stages of attention and of its gradients, block by block of keys.
//
// A task has a tile of items on the lanes: the queries of one head, or its keys for their gradients. It iterates over
// the items of the other side, the steps, in blocks. The products of a block with the tile give a block of scores
// [steps][lanes] on the stack. The scores become probabilities, vector by vector, which are the second operand of the
// next product. Reductions over the steps therefore run down the lanes, no score outlives its block, and only the tile
// is transposed.
//
// The order of each sum follows from the block and the steps alone, so tiles of any width give the same sums.
//
// For one query per head, the lanes are keys instead (OneQuery.cpp).
#pragma once

#include "backends/cpu/compiler/product/Contraction.h"

namespace sluice::cpu {

struct Attention {
  /// [batch, head, item, element]: elements are contiguous, or each item has exactly one.
  struct Tensor {
    Place place;
    int64_t batch = 0, head = 0, item = 0; // strides
  };
  /// Strides along batch, head, query and key; 0 along a broadcast dimension.
  struct Mask {
    Place place;
    mlir::Type stored; // the element, or i8 of bool; null: there is no mask
    std::array<int64_t, 4> strides{};
  };
  /// A result, in its stored data type; null: not stored.
  struct Result {
    Tensor tensor;
    mlir::Type stored;
  };

  mlir::Type element; // f32 or f64
  int64_t batch = 1;  // capacity
  bool batchIsRows = false;
  int64_t heads = 1, headsOfKeys = 1;
  int64_t queries = 1, keys = 1, depth = 1, valueDepth = 1;
  int64_t block = 1; // items of the other side in a block
  bool causal = false;
  double scale = 1;
  Tensor q, k, v, dY, logsumexp, delta;
  Mask mask;
  Result y, logsumexpResult, dQ, dK, dV;
};

/// The maximum number of elements of a query, key or value. It bounds the stack space of a tile.
inline constexpr int64_t kDeepestAttention = 256;

Stage emitAttention(const StageModule &module, llvm::StringRef name, mlir::Location loc, const Attention &attention,
                    const Target &target);
/// The same for one query per head, without `causal`, and with a mask of stride 0 or 1 along the keys.
Stage emitOneQueryAttention(const StageModule &module, llvm::StringRef name, mlir::Location loc,
                            const Attention &attention, const Target &target);
/// Emits the stage that computes dQ.
Stage emitAttentionQueryGradient(const StageModule &module, llvm::StringRef name, mlir::Location loc,
                                 const Attention &attention, const Target &target);
/// Emits the stage that computes dK and dV.
Stage emitAttentionKeyValueGradient(const StageModule &module, llvm::StringRef name, mlir::Location loc,
                                    const Attention &attention, const Target &target);

} // namespace sluice::cpu
