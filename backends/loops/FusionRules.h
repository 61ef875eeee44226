// Fusion rules for backends that generate loops.
#pragma once

#include "sluice/backend/compile.h"
#include "llvm/ADT/BitVector.h"
#include <cstddef>

namespace sluice::loops {

/// The maximum number of ops in one kernel, including rematerialized ops. The limit keeps code size and compile time
/// proportional to the number of a model's ops. Optimizer steps and losses of real networks have up to 86 ops.
inline constexpr size_t kMaxOpsInKernel = 128;

/// Whether the last op of the view may join those before it, which are accepted already.
///
/// A kernel's loops run over one index space: the results of its product, of its elementwise ops, or of its last
/// reduction.
/// 1. A product comes first and reads memory, or with `throughMoves` the results of ops that only move elements of
///    memory. Its epilogue is the elementwise ops of its index space that read the product, or values computed from it.
///    Nothing else joins it. An elementwise op that also reads such a value at other indices (`h - h[:, :1]`) reads the
///    result from memory.
/// 2. Elementwise ops of one index space, of which one reads another, share loads and loops.
/// 3. A reduction, or another op that is not elementwise, absorbs a loop kernel if nothing else reads that kernel: its
///    operand needs no buffer.
/// 4. A reduction of the rows (a bias gradient) joins the loop kernel that computes its operand as one more result: the
///    operand is summed while it is stored.
///    - No op of that kernel may read the sum, because each element would repeat it. Exception: elementwise ops over
///      the sum's own index space join, and run where the last partial sums are added.
///    - A reduction of an op that folds each row (a softmax, a norm) joins only if it has few columns, because all rows
///      are folded again for every few columns.
///    - Results of folds of more than 256 terms are reduced in a separate launch, so that each fold can be a task.
///    - A fold of each row does not join producers that it would read from noncontiguous memory.
///    - The same reduction of rows joins one that reads the same value: the sums of dY and of dY * xHat.
/// 5. An update of a part joins the loop kernel that computes the part, or a kernel of elementwise ops over the
///    same index space: the elements are stored in place as they are computed. No op joins a consumer of the updated
///    value. The caller guarantees that the update is in place.
/// 6. An op that works on blocks of its operands reads memory as a product does, and nothing joins it.
///
/// Unless they are results, some ops are rematerialized by their consumers: ops that only move or widen elements, ops
/// for which ir::isReadFromProduct or ir::isReadInParts holds, and scalars computed from such ops. The caller decides
/// which moves its kernels of products and blocks can read through, and names the ops of the kernel that compute an
/// operand of a product as it is read.
bool lastOpJoins(const sluice_kernel_view &kernel, bool throughMoves = false, const llvm::BitVector &ofOperands = {});

} // namespace sluice::loops
