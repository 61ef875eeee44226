#include "frontend/onnx/operators/Moving.h"

#include "frontend/onnx/operators/Sizes.h"

namespace sluice::onnx {

Dims stridesOf(const Dims &dims) {
  Dims strides(dims.size(), 1);
  for (std::size_t i = dims.size(); i-- > 1;)
    strides[i - 1] = strides[i] * dims[i];
  return strides;
}

Dims offsetsOf(std::int64_t size, std::int64_t stride) {
  Dims offsets(static_cast<std::size_t>(size));
  for (std::int64_t i = 0; i < size; ++i)
    offsets[std::size_t(i)] = i * stride;
  return offsets;
}

static Dims sourcesOf(const Offsets &offsets) {
  Dims sources{0};
  for (const Dims &list : offsets) {
    Dims next;
    next.reserve(sources.size() * list.size());
    for (std::int64_t source : sources)
      for (std::int64_t offset : list)
        next.push_back(source + offset);
    sources = std::move(next);
  }
  return sources;
}

ValuePtr moved(const Value &value, Dims dims, const std::function<Offsets()> &offsets) {
  if (value.tensor())
    return nullptr;
  const Known *known = value.known();
  std::int64_t count = countOf(dims);
  if (count == 0 && known)
    return emptyValue(known->type(), std::move(dims));
  if (known && (known->isUniform() || known->count() == 1))
    return valueOf(Known::uniform(known->type(), std::move(dims), {known->at(0), known->elementSize()}));
  if (count > kMostMoved || (!known && dims.size() > 1))
    return nullptr;
  if (known)
    return valueOf(known->taking(std::move(dims), sourcesOf(offsets())));
  Sizes result{.isScalar = dims.empty(), .elements = {}};
  for (std::int64_t source : sourcesOf(offsets()))
    result.elements.push_back(value.sizes()->elements[std::size_t(source)]);
  return valueOf(std::move(result));
}

ValuePtr redimensioned(const Value &value, const std::vector<Size> &shape) {
  std::optional<Dims> dims = knownDims(shape);
  if (const Known *known = value.known(); known && dims)
    return valueOf(known->reshaped(std::move(*dims)));
  if (const Sizes *sizes = value.sizes(); sizes && dims && dims->size() <= 1)
    return valueOf(Sizes{.isScalar = dims->empty(), .elements = sizes->elements});
  return nullptr;
}

bool setIfMoved(Node &node, std::size_t output, ValuePtr value) {
  bool isMoved = value != nullptr;
  if (isMoved)
    node.set(output, std::move(value));
  return isMoved;
}

ValuePtr emptyValue(ElementType type, Dims dims) {
  return valueOf(Known(type, std::move(dims), std::vector<std::byte>()));
}

} // namespace sluice::onnx
