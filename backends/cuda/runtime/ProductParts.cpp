#include "backends/cuda/runtime/ProductParts.h"

#include <algorithm>

namespace sluice::cuda {

static constexpr int64_t kBytesAtOnce = 16;
static constexpr int64_t kWorthParts = 256; // smaller extents are not split

/// Bytes of an element; 0 for types whose kernels in the library load single elements anyway.
static int64_t elementBytes(const ImageProduct &product) {
  return product.type == "f16" || product.type == "bf16" ? 2 : product.type == "tf32" ? 4 : 0;
}

static bool isPadded(const ImageProduct &product, int64_t atOnce) {
  const ImageProduct::Matrix *matrices[] = {&product.first, &product.second, &product.result};
  return std::all_of(std::begin(matrices), std::end(matrices), [&](const ImageProduct::Matrix *matrix) {
    return matrix->leading % atOnce == 0 && matrix->batchStride % atOnce == 0;
  });
}

/// The remainder of the extent modulo `atOnce`; 0 if it does not become a separate part.
static int64_t restOf(const ImageProduct::Extent &extent, int64_t atOnce) {
  return extent.perRow || extent.size <= kWorthParts ? 0 : extent.size % atOnce;
}

/// Splits the last elements of p from a part.
static ProductPart takeLastOfP(ProductPart &from, int64_t count, int64_t bytes) {
  ProductPart taken = from;
  const ImageProduct &product = from.product;
  taken.product.p.size = count;
  from.product.p.size -= count;
  int64_t before = product.p.size * bytes;
  taken.offsets.first += before * (product.first.isTransposed ? product.first.leading : 1);
  taken.offsets.result += before;
  taken.offsets.vector += before;
  if (product.sumsSecond)
    taken.product.sums = -1, taken.product.sumsSecond = 0; // the other part computes them
  return taken;
}

/// Splits the last terms of a part's sums. They are summed before the part, which adds its sum to theirs. Only the sum
/// of the few terms is therefore rounded twice, in types of two bytes; in tf32, sums are stored in f32. In f16 they
/// must not overflow. The last part applies the epilogue.
static ProductPart takeLastOfK(ProductPart &from, int64_t count, int64_t bytes) {
  ProductPart taken = from;
  const ImageProduct &product = from.product;
  taken.product.k.size = count;
  from.product.k.size -= count;
  int64_t before = product.k.size * bytes;
  taken.offsets.first += before * (product.first.isTransposed ? 1 : product.first.leading);
  taken.offsets.second += before * (product.second.isTransposed ? product.second.leading : 1);
  taken.product.bias = -1;
  taken.product.activation = "none";
  taken.product.input = -1;
  from.addsToResult = true;
  return taken;
}

std::vector<ProductPart> partsOf(const ImageProduct &product) {
  ProductPart main{product};
  int64_t bytes = elementBytes(product), atOnce = bytes ? kBytesAtOnce / bytes : 1;
  if (!isPadded(product, atOnce))
    return {main};
  std::vector<ProductPart> parts;
  if (int64_t rest = restOf(product.p, atOnce))
    parts.push_back(takeLastOfP(main, rest, bytes));
  bool sumsNeighbours = product.first.isTransposed || !product.second.isTransposed;
  bool canAdd = product.sums < 0; // cannot add to an operand's sums
  if (int64_t rest = sumsNeighbours && canAdd ? restOf(product.k, atOnce) : 0)
    parts.push_back(takeLastOfK(main, rest, bytes));
  parts.push_back(main);
  return parts;
}

} // namespace sluice::cuda
