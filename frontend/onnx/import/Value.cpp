#include "frontend/onnx/import/Value.h"

#include <algorithm>

namespace sluice::onnx {

std::string textOf(const Size &size) {
  if (size.isKnown())
    return std::to_string(size.constant);
  std::string text = size.rows == 1 ? "rows" : "rows*" + std::to_string(size.rows);
  return size.constant == 0 ? text : text + " + " + std::to_string(size.constant);
}

std::vector<Size> shapeOf(const Tensor &tensor) {
  std::vector<Size> shape;
  for (const Dim &dim : tensor.shape())
    shape.push_back(dim.symbolic() ? Size{0, dim.times} : Size{dim.size, 0});
  return shape;
}

std::vector<Size> Value::shape() const {
  std::vector<Size> shape;
  if (const Tensor *its = tensor())
    return shapeOf(*its);
  if (const Sizes *its = sizes())
    return its->isScalar ? shape : std::vector{Size{std::int64_t(its->elements.size()), 0}};
  for (std::int64_t size : known()->dims())
    shape.push_back({size, 0});
  return shape;
}

ValuePtr valueOf(Known known) {
  auto value = std::make_shared<Value>();
  value->type = known.type();
  value->content = std::move(known);
  return value;
}

ValuePtr valueOf(Tensor tensor, std::optional<ElementType> type) {
  auto value = std::make_shared<Value>();
  value->type = type ? *type : elementTypeOf(tensor.dtype());
  value->content = std::move(tensor);
  return value;
}

ValuePtr valueOf(Sizes sizes) {
  if (std::ranges::all_of(sizes.elements, &Size::isKnown)) {
    std::vector<std::int64_t> numbers;
    for (const Size &size : sizes.elements)
      numbers.push_back(size.constant);
    return valueOf(sizes.isScalar ? Known::scalar(numbers.front()) : Known::vector(numbers));
  }
  auto value = std::make_shared<Value>();
  value->type = ElementType::i64;
  value->content = std::move(sizes);
  return value;
}

ValuePtr valueOf(Sequence sequence) {
  auto value = std::make_shared<Value>();
  value->content = std::move(sequence);
  return value;
}

ValuePtr lostValue() { return std::make_shared<Value>(); }

} // namespace sluice::onnx
