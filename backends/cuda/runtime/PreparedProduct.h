// A product that cublasLt does, on one device, in one call of the library or in several (ProductParts.h).
#pragma once

#include "backends/cuda/runtime/PreparedPart.h"

#include <memory>
#include <vector>

namespace sluice::cuda {

class PreparedProduct {
public:
  /// Null if the library has no algorithm for it. The device's context must be current. `name` is what errors begin with;
  /// algorithms are timed at the place, if they are. An activation that reads a matrix, and sums of an operand, are left out
  /// where the library has no algorithm with them, but one without.
  static std::unique_ptr<PreparedProduct> prepare(const BlasLt &blas, BlasHandle handle, const ImageProduct &product,
                                                  const std::string &name, const TimingPlace &timing);

  /// Whether there is anything to multiply in a call of so many rows, and the algorithms of all parts do it, which is asked
  /// once.
  bool does(int64_t rows);
  /// Who makes what of a call; `addresses` are the kernel's buffers. A result in the place of what its activation reads is the
  /// functions': nothing says that the library reads an element before it writes another one there.
  ProductMaker makerOf(int64_t rows, void *const *addresses);
  /// Puts the library's part of it into the stream. Throws if the buffers are not aligned as was promised when the algorithms
  /// were chosen, or if the library refuses the call.
  void launch(int64_t rows, void *const *addresses, void *workspace, DriverStream stream);

private:
  using Parts = std::vector<std::unique_ptr<PreparedPart>>;

  PreparedProduct(const ImageProduct &product, Parts parts, ProductMaker maker)
      : result(product.result.buffer), input(product.input), parts(std::move(parts)), maker(maker) {}

  static Parts partsWith(const BlasLt &blas, BlasHandle handle, const ImageProduct &product, const std::string &name,
                         const TimingPlace &timing);

  int64_t result, input; // buffers
  Parts parts;
  ProductMaker maker; // if it does the rows
};

} // namespace sluice::cuda
