#include "tests/conformance/LargerView.h"

namespace sluice::conformance {

LargerView::LargerView(const sluice_kernel_view &view) : kernel{view} {
  for (size_t number = 0; number < view.num_values; ++number)
    values.push_back({*sluice_kernel_value_at(&view, number)});
  for (size_t number = 0; number < view.num_ops; ++number)
    addOp(*sluice_kernel_op_at(&view, number));
  kernel.known.struct_size = sizeof(kernel);
  kernel.known.values = firstOf(values);
  kernel.known.value_size = sizeof(values[0]);
  kernel.known.ops = firstOf(ops);
  kernel.known.op_size = sizeof(ops[0]);
}

void LargerView::addOp(const sluice_op_view &op) {
  auto &list = attributes.emplace_back();
  for (size_t number = 0; number < op.num_attributes; ++number)
    list.push_back({*sluice_op_attribute_at(&op, number)});
  ops.push_back({op});
  ops.back().known.attributes = firstOf(list);
  ops.back().known.attribute_size = sizeof(list[0]);
}

} // namespace sluice::conformance
