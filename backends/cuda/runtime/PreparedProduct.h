// A product that cublasLt does, on one device, in one call of the library or in several (ProductParts.h).
#pragma once

#include "backends/cuda/runtime/PreparedPart.h"

#include <memory>
#include <vector>

namespace sluice::cuda {

class PreparedProduct {
public:
  /// Null if the library has no algorithm for it. The device's context must be current. `name` is what errors begin with;
  /// algorithms are timed at the place, if they are.
  static std::unique_ptr<PreparedProduct> prepare(const BlasLt &blas, BlasHandle handle, const ImageProduct &product,
                                                  const std::string &name, const TimingPlace &timing);

  /// Whether there is anything to multiply in a call of so many rows, and the algorithms of all parts do it, which is asked
  /// once.
  bool does(int64_t rows);
  /// Puts it into the stream; `addresses` are the kernel's buffers. Throws if they are not aligned as was promised when the
  /// algorithms were chosen, or if the library refuses the call.
  void launch(int64_t rows, void *const *addresses, void *workspace, DriverStream stream);

private:
  using Parts = std::vector<std::unique_ptr<PreparedPart>>;

  explicit PreparedProduct(Parts parts) : parts(std::move(parts)) {}

  Parts parts;
};

} // namespace sluice::cuda
