#include "backends/cuda/runtime/PreparedProduct.h"

#include <algorithm>

namespace sluice::cuda {

std::unique_ptr<PreparedProduct> PreparedProduct::prepare(const BlasLt &blas, BlasHandle handle,
                                                          const ImageProduct &product, const std::string &name,
                                                          const TimingPlace &timing) {
  std::vector<std::vector<ProductPart>> ways{partsOf(product)};
  if (ways.front().size() > 1)
    ways.push_back({ProductPart{product}});
  for (const std::vector<ProductPart> &wanted : ways) {
    Parts parts;
    for (const ProductPart &part : wanted)
      parts.push_back(PreparedPart::prepare(blas, handle, part, name, timing));
    if (std::find(parts.begin(), parts.end(), nullptr) == parts.end())
      return std::unique_ptr<PreparedProduct>(new PreparedProduct(std::move(parts)));
  }
  return nullptr;
}

bool PreparedProduct::does(int64_t rows) {
  return std::all_of(parts.begin(), parts.end(), [&](auto &part) { return part->does(rows); });
}

void PreparedProduct::launch(int64_t rows, void *const *addresses, void *workspace, DriverStream stream) {
  for (auto &part : parts)
    part->launch(rows, addresses, workspace, stream);
}

} // namespace sluice::cuda
