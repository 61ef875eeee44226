// A product in parts, each of them a product that cublasLt does. Its fast kernels read and write 16 bytes at once, and
// it takes them only where the extents of neighbours are multiples of that: the logits of 50257 words are not. Where the
// matrices are padded, all of such an extent but its last few elements is a product for fast kernels, and the rest is a
// small one:
//
//   D[0:50257, q]  =  D[0:50256, q], D[50256:50257, q]
//   sum of k below 50257  =  sum of the last one, which the sum of k below 50256 is added to
#pragma once

#include "backends/cuda/runtime/ModuleImage.h"

#include <vector>

namespace sluice::cuda {

struct ProductPart {
  /// Bytes from where a buffer begins to where the part does.
  struct Offsets {
    int64_t first = 0, second = 0, result = 0, vector = 0; ///< that of an input is the result's
  };

  ImageProduct product;
  Offsets offsets = {};
  bool addsToResult = false; ///< what the part before it gave
};

/// In the order in which they are done; the whole product alone where parts would not pay.
std::vector<ProductPart> partsOf(const ImageProduct &product);

} // namespace sluice::cuda
