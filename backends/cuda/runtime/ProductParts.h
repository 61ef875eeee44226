// Splits a product into parts, each a cublasLt product. The fast kernels of cublasLt access 16 bytes at once, and are
// selected only if contiguous extents are multiples of 16 bytes. The logits of a vocabulary of 50257 are not. If the
// matrices are padded, the largest multiple is a product for fast kernels, and the last few elements are a small
// product:
//
//   D[0:50257, q]  =  D[0:50256, q], D[50256:50257, q]
//   sum over k < 50257    =  sum over k < 50256, to which the term of k = 50256 is added
#pragma once

#include "backends/cuda/runtime/ModuleImage.h"

#include <vector>

namespace sluice::cuda {

struct ProductPart {
  /// Bytes from the start of a buffer to the start of the part.
  struct Offsets {
    int64_t first = 0, second = 0, result = 0, vector = 0; ///< the input's offset is the result's
  };

  ImageProduct product;
  Offsets offsets = {};
  bool addsToResult = false; ///< the result of the previous part
};

/// Parts in execution order; the whole product alone if a split does not pay.
std::vector<ProductPart> partsOf(const ImageProduct &product);

} // namespace sluice::cuda
