// Images of another size.
#pragma once

#include "runtime/data/images/ImageFile.h"

namespace sluice::runtime {

/// As Pillow's resize with BILINEAR: each pixel is the mean of those around its place, weighed by a triangle that is as wide as the
/// image shrinks, and rounded once along each dimension. The bits are Pillow's, too.
Image resized(const Image &image, int64_t width, int64_t height);

} // namespace sluice::runtime
