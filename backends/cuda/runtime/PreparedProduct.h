// A cublasLt product on one device, in one or several calls of the library (ProductParts.h).
#pragma once

#include "backends/cuda/runtime/PreparedPart.h"

#include <memory>
#include <vector>

namespace sluice::cuda {

class PreparedProduct {
public:
  /// Null if the library has no algorithm for the product. The device's context must be current. `name` is the prefix
  /// of errors; algorithms are timed in `timing`, if at all. An activation that reads a matrix, and sums of an
  /// operand, are omitted if the library only has an algorithm without them.
  static std::unique_ptr<PreparedProduct> prepare(const BlasLt &blas, BlasHandle handle, const ImageProduct &product,
                                                  const std::string &name, const TimingPlace &timing);

  /// Whether the library runs calls with this many rows: no part is empty, and its algorithm supports it. Cached.
  bool does(int64_t rows);
  /// Which part of a call the library runs; `addresses` are the kernel's buffers. If a result shares the memory of its
  /// activation's input, the functions run: the library does not guarantee that it reads an element before it writes
  /// another one there.
  ProductMaker makerOf(int64_t rows, void *const *addresses);
  /// Enqueues the library's part into the stream. Throws if the buffers lack the alignment that the algorithms were
  /// chosen for, or if the library rejects the call.
  void launch(int64_t rows, void *const *addresses, void *workspace, DriverStream stream);

private:
  using Parts = std::vector<std::unique_ptr<PreparedPart>>;

  PreparedProduct(const ImageProduct &product, Parts parts, ProductMaker maker)
      : result(product.result.buffer), input(product.input), parts(std::move(parts)), maker(maker) {}

  static Parts partsWith(const BlasLt &blas, BlasHandle handle, const ImageProduct &product, const std::string &name,
                         const TimingPlace &timing);

  int64_t result, input; // buffers
  Parts parts;
  ProductMaker maker; // of calls whose rows are supported
};

} // namespace sluice::cuda
