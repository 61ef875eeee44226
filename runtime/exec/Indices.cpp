#include "runtime/exec/Indices.h"

#include "runtime/base/Status.h"
#include "runtime/base/Text.h"

namespace sluice::runtime {

namespace {

/// A tensor as `outer` blocks of rows of `inner` elements each.
struct RowElements {
  int64_t outer = 1, inner = 1;

  RowElements(const Value &input, int64_t capacity) {
    for (size_t i = 0; i < input.shape.size(); ++i) {
      int dim = static_cast<int>(i);
      int64_t size = dim == input.rowsDim ? input.shape[i] / capacity : input.shape[i];
      (dim < input.rowsDim ? outer : inner) *= size;
    }
  }
};

} // namespace

void checkIndices(const Plan &plan, const Value &input, const std::byte *data, int64_t rows, int64_t room) {
  if (input.below == 0)
    return;
  bool batched = input.rowsDim >= 0;
  RowElements elements(input, plan.capacity);
  int64_t used = batched ? rows * elements.inner : elements.inner, stride = batched ? room * elements.inner : used;
  for (int64_t block = 0; block < elements.outer; ++block)
    for (int64_t i = 0; i < used; ++i) {
      double index = elementAsDouble(input.dtype, data, block * stride + i);
      if (!(index >= 0 && index < static_cast<double>(input.below)))
        failInvalid(concat(
            "input ", quote(input.name), batched ? concat(", row ", i / elements.inner) : concat(", element ", i), ": ",
            static_cast<int64_t>(index), " is none of the ", input.below, " classes 0 to ", input.below - 1));
    }
}

} // namespace sluice::runtime
