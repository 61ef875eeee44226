// Decodes image files. The libraries are loaded when the first image is read: libturbojpeg for JPEG, libpng for PNG.
#pragma once

#include "runtime/io/File.h"

#include <cstdint>
#include <string>
#include <vector>

namespace sluice::runtime {

/// Rows of pixels from the top, with interleaved red, green and blue.
struct Image {
  int64_t width = 0, height = 0;
  std::vector<uint8_t> pixels;
};

enum class ImageKind { jpeg, png };

/// Fails with the name of the package to install unless the decoder library is available.
void requireDecoder(ImageKind kind);

/// Decodes the content of a file; the format follows from its first bytes. Messages begin with `name`. Damaged images
/// and images with more than 2^26 pixels are errors. Alpha channels and profiles are dropped, 16 bits are rounded to 8,
/// and CMYK is converted as in Pillow. Thread-safe.
Image decodeImage(const Bytes &content, const std::string &name);

} // namespace sluice::runtime
