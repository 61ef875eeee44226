// Generates the stage of attention by blocks of keys, and those of its gradients.
//
// A task has a tile of items on the lanes: queries of one head, or keys where their gradients are wanted. It walks over the
// items on the other side, the steps, block by block: their products with the tile give a block of scores [steps][lanes] on
// the stack; these become probabilities, vector by vector, and are the second operand of the next product. So what is
// taken over the steps is taken down the lanes, no score is stored for longer than its block, and nothing but the tile
// itself is transposed.
//
// The order of each sum follows from the block and the steps alone: tiles of any width make the same sums.
#pragma once

#include "backends/cpu/compiler/product/Contraction.h"

namespace sluice::cpu {

struct Attention {
  /// [batch, head, item, element]: elements are contiguous, or there is one for each item.
  struct Tensor {
    Place place;
    int64_t batch = 0, head = 0, item = 0; // strides
  };
  /// Strides along batch, head, query and key; 0 repeats.
  struct Mask {
    Place place;
    mlir::Type stored; // the element, or i8 of bool; null: there is no mask
    std::array<int64_t, 4> strides{};
  };
  /// A result, in the type that it is stored in; without one nothing is stored.
  struct Result {
    Tensor tensor;
    mlir::Type stored;
  };

  mlir::Type element; // f32 or f64
  int64_t batch = 1;  // capacity
  bool batchIsRows = false;
  int64_t heads = 1, headsOfKeys = 1;
  int64_t queries = 1, keys = 1, depth = 1, valueDepth = 1;
  int64_t block = 1;
  bool causal = false;
  double scale = 1;
  Tensor q, k, v, dY, logsumexp, delta;
  Mask mask;
  Result y, logsumexpResult, dQ, dK, dV;
};

/// The most elements of a query, key or value: what a tile of them takes of the stack is in proportion.
inline constexpr int64_t kDeepestAttention = 256;

Stage emitAttention(const StageModule &module, llvm::StringRef name, mlir::Location loc, const Attention &attention,
                    const Target &target);
/// dQ.
Stage emitAttentionQueryGradient(const StageModule &module, llvm::StringRef name, mlir::Location loc,
                                 const Attention &attention, const Target &target);
/// dK and dV.
Stage emitAttentionKeyValueGradient(const StageModule &module, llvm::StringRef name, mlir::Location loc,
                                    const Attention &attention, const Target &target);

} // namespace sluice::cpu
