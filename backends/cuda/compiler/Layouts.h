// Which layouts the kernels of an op take, and which they would rather have.
#pragma once

#include "sluice/backend/compile.h"
#include <optional>
#include <vector>

namespace sluice::cuda {

struct LayoutPreference {
  std::vector<sluice_layout_dim> layout;
  bool required;
};

/// Whether the op is a product of one group, whose elements are found by several of its dimensions.
bool isProduct(const sluice_op_view &op);

/// Of a value of this type as it lies now; none where the op takes it so. Loops take any layout, products those without tiles,
/// convolutions those with channels last, three of an image of halves padded to four, attention those whose items lie whole, and
/// it has heads inside of them; columns of products are padded, so that loads of them may be as wide as can be.
std::optional<LayoutPreference> preferredLayout(const sluice_op_view &op, bool isResult, unsigned number,
                                                const sluice_type_view &type);

} // namespace sluice::cuda
