// Images of files, decoded by libraries that are looked for when the first one is read: libturbojpeg for JPEG, libpng for PNG.
#pragma once

#include "runtime/io/File.h"

#include <cstdint>
#include <string>
#include <vector>

namespace sluice::runtime {

/// Rows of pixels from the top, red, green and blue one behind another.
struct Image {
  int64_t width = 0, height = 0;
  std::vector<uint8_t> pixels;
};

enum class ImageKind { jpeg, png };

/// Fails, naming what to install, unless the library for such images is there.
void requireDecoder(ImageKind kind);

/// Decodes the content of a file, by what it begins with; `name` begins messages. Damage is an error, and so are more than 2^26
/// pixels. An alpha channel and profiles are left out, 16 bits are rounded to 8, and CMYK is converted as Pillow does. Any thread may
/// call this.
Image decodeImage(const Bytes &content, const std::string &name);

} // namespace sluice::runtime
