#include "backends/cuda/runtime/PreparedProduct.h"

#include <algorithm>

namespace sluice::cuda {

/// None if the library has no algorithm for one of the parts, however the product is split.
PreparedProduct::Parts PreparedProduct::partsWith(const BlasLt &blas, BlasHandle handle, const ImageProduct &product,
                                                  const std::string &name, const TimingPlace &timing) {
  std::vector<std::vector<ProductPart>> ways{partsOf(product)};
  if (ways.front().size() > 1)
    ways.push_back({ProductPart{product}});
  for (const std::vector<ProductPart> &wanted : ways) {
    Parts parts;
    for (const ProductPart &part : wanted)
      parts.push_back(PreparedPart::prepare(blas, handle, part, name, timing));
    if (std::find(parts.begin(), parts.end(), nullptr) == parts.end())
      return parts;
  }
  return {};
}

std::unique_ptr<PreparedProduct> PreparedProduct::prepare(const BlasLt &blas, BlasHandle handle,
                                                          const ImageProduct &product, const std::string &name,
                                                          const TimingPlace &timing) {
  auto with = [&](const ImageProduct &wanted, ProductMaker maker) {
    Parts parts = partsWith(blas, handle, wanted, name, timing);
    return std::unique_ptr<PreparedProduct>(parts.empty() ? nullptr
                                                          : new PreparedProduct(product, std::move(parts), maker));
  };
  std::unique_ptr<PreparedProduct> whole = with(product, ProductMaker::Library);
  if (whole || (product.input < 0 && product.sums < 0))
    return whole;
  ImageProduct plain = product;
  plain.activation = "none", plain.input = plain.sums = -1, plain.sumsSecond = 0;
  return with(plain, ProductMaker::LibraryForProductAlone);
}

bool PreparedProduct::does(int64_t rows) {
  return std::all_of(parts.begin(), parts.end(), [&](auto &part) { return part->does(rows); });
}

ProductMaker PreparedProduct::makerOf(int64_t rows, void *const *addresses) {
  bool isOverwritten = input >= 0 && addresses[input] == addresses[result];
  return does(rows) && !isOverwritten ? maker : ProductMaker::Functions;
}

void PreparedProduct::launch(int64_t rows, void *const *addresses, void *workspace, DriverStream stream) {
  for (auto &part : parts)
    part->launch(rows, addresses, workspace, stream);
}

} // namespace sluice::cuda
