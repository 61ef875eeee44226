// Layouts that the kernels of an op accept and prefer.
#pragma once

#include "sluice/backend/compile.h"
#include <optional>
#include <vector>

namespace sluice::cuda {

struct LayoutPreference {
  std::vector<sluice_layout_dim> layout;
  bool required;
};

/// Whether the op is an ungrouped product, for example a matrix product or a convolution.
bool isProduct(const sluice_op_view &op);

/// The preferred layout of an operand of this type; none if the op accepts its current layout.
///
/// - Loops accept any layout. Products accept any layout without tiles.
/// - Convolutions prefer channels last, with the three channels of a half-precision image padded to four.
/// - Attention prefers layouts with contiguous items, in which the heads are inside of the items.
/// - Products prefer a padded last dimension, to allow the widest loads.
std::optional<LayoutPreference> preferredLayout(const sluice_op_view &op, bool isResult, unsigned number,
                                                const sluice_type_view &type);

} // namespace sluice::cuda
