// Named dimensions: equal names mean equal dimensions, and at most one name has no size.
#include "frontend/graph/GraphImpl.h"

using namespace mlir;

namespace sluice::detail {

std::optional<int64_t> GraphImpl::sizeOf(const Dim &dim) const {
  if (!dim.symbolic())
    return dim.size;
  if (dim.times != 1)
    return std::nullopt;
  if (dim.name == batch)
    return ShapedType::kDynamic;
  auto known = dims.find(dim.name);
  return known == dims.end() ? std::nullopt : std::optional(known->second.size);
}

static std::string quoted(const std::string &text) { return "'" + text + "'"; }

/// Whether there are at most 2^40 elements, not counting rows: more than any machine holds, and safe to multiply.
static bool isSmallEnough(ArrayRef<int64_t> sizes) {
  int64_t left = int64_t(1) << 40;
  for (int64_t size : sizes)
    left /= ShapedType::isDynamic(size) ? 1 : size;
  return left > 0;
}

RankedTensorType GraphImpl::typeOf(const std::string &what, DType dtype, const Shape &shape,
                                   const SourceLocation &location) {
  SmallVector<int64_t> sizes;
  for (const Dim &dim : shape) {
    if (!dim.symbolic() && dim.size <= 0)
      throw Error(what + ": sizes are positive, not " + std::to_string(dim.size) + " in " + shape.str(), location);
    if (!dim.name.empty() && dim.size > 0) {
      if (dim.name == batch)
        throw Error(what + ": dimension " + quoted(dim.name) + " has no size elsewhere and " +
                        std::to_string(dim.size) + " here",
                    location, {{"without a size here", batchLocation}});
      auto [known, isNew] = dims.try_emplace(dim.name, Binding{dim.size, location});
      if (!isNew && known->second.size != dim.size)
        throw Error(what + ": dimension " + quoted(dim.name) + " has two sizes: " + std::to_string(known->second.size) +
                        " and " + std::to_string(dim.size),
                    location, {{std::to_string(known->second.size) + " here", known->second.location}});
    }
    if (dim.symbolic() && dim.times != 1)
      throw Error(what + ": " + dim.str() + " is only allowed as a dimension of reshape; use two dimensions: " +
                      quoted(dim.name) + " and " + std::to_string(dim.times),
                  location);
    if (dim.symbolic() && batch.empty() && !sizeOf(dim)) {
      batch = dim.name;
      batchLocation = location;
    }
    std::optional<int64_t> size = sizeOf(dim);
    if (!size)
      throw Error(what + ": a second dimension without a size: " + quoted(dim.name) + ", after " + quoted(batch) +
                      "; give it a size: Dim{\"" + dim.name + "\", 32}",
                  location, {{quoted(batch) + " is first used here", batchLocation}});
    sizes.push_back(*size);
  }
  if (llvm::count(sizes, ShapedType::kDynamic) > 1)
    throw Error(what + ": dimension " + quoted(batch) + " occurs twice in " + shape.str(), location);
  if (!isSmallEnough(sizes))
    throw Error(what + ": the shape " + shape.str() + " has more than 2^40 elements", location);
  return RankedTensorType::get(sizes, elementType(dtype));
}

Shape GraphImpl::shapeOf(Type type, bool merged) const {
  std::vector<Dim> list;
  for (int64_t size : cast<RankedTensorType>(type).getShape()) {
    if (merged && !list.empty() && list.back().symbolic() && list.back().times == 1)
      list.back().times = size;
    else
      list.push_back(ShapedType::isDynamic(size) ? Dim(batch) : Dim(size));
  }
  return Shape(std::move(list));
}

std::string GraphImpl::withNames(StringRef text) const {
  std::string named;
  for (size_t i = 0; i < text.size(); ++i) {
    bool isDim = text[i] == '?' && i > 0 && (text[i - 1] == '[' || text[i - 1] == ' ' || text[i - 1] == '<');
    if (isDim && !batch.empty())
      named += batch;
    else
      named += text[i];
  }
  return named;
}

} // namespace sluice::detail
