// Image resizing.
#pragma once

#include "runtime/data/images/ImageFile.h"

namespace sluice::runtime {

/// Matches Pillow's resize with BILINEAR bit for bit. Each pixel is the mean of its neighborhood, weighted by a
/// triangle as wide as the scale factor, and rounded once per dimension.
Image resized(const Image &image, int64_t width, int64_t height);

} // namespace sluice::runtime
