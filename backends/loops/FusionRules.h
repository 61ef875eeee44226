// Fusion rules for backends that generate loops.
#pragma once

#include "sluice/backend/compile.h"
#include <cstddef>

namespace sluice::loops {

/// The maximum number of ops in one kernel, including rematerialized ops. Code size and compile time grow with a
/// model's ops, and must not grow faster. Optimizer steps and losses of real networks have up to 86.
inline constexpr size_t kMaxOpsInKernel = 128;

/// Whether the last op of the view may join those before it, which are accepted already.
///
/// A kernel's loops run over one index space: the results of its product, of its elementwise ops, or of its last
/// reduction.
/// 1. A product comes first and reads memory, or with `throughMoves` the results of ops that only move elements of memory.
///    Its epilogue is the elementwise ops of its index space that read the product, or values computed from it. Nothing else joins
///    it. An elementwise op that also reads such a value at other indices (`h - h[:, :1]`) reads the result from memory.
/// 2. Elementwise ops of one index space, of which one reads another, share loads and loops.
/// 3. A reduction, or another op that is not elementwise, takes a loop kernel into itself if nothing else reads that
///    kernel: its operand needs no buffer.
/// 4. A reduction of the rows (a bias gradient) joins the loop kernel that computes its operand as one more result: it
///    is summed while it is stored. Nothing of that kernel may need the sum, since each element would repeat it, except
///    elementwise ops over the sum's own index space, which join it: they are found where its last parts are added. Of what
///    folds each row (a softmax, a norm) it joins if it has few columns: for each few of them all rows are folded.
///    Results of folds of thousands of terms are reduced in a launch of its own: in theirs each fold is a task. A fold of
///    each row does not read what is apart in memory: it is made before.
/// 5. An update of a part joins the loop kernel that computes the part, or one of elementwise ops over as many elements: they
///    are stored where they belong as they are found. Nothing joins what it leaves. That it works in place is the caller's word.
/// 6. An op that works on blocks of its operands reads memory as a product does, and nothing joins it.
/// Ops that move elements, and scalars made of them, are rematerialised where they are read if they are no results.
/// Which moves kernels of products and of blocks can read through is for the caller to say, who has them.
bool lastOpJoins(const sluice_kernel_view &kernel, bool throughMoves = false);

} // namespace sluice::loops
