// MNIST-style folders: IDX files of images and labels, plain or gzipped.
#ifndef SLUICE_RUNTIME_IO_IDX_H
#define SLUICE_RUNTIME_IO_IDX_H

#include "runtime/io/File.h"
#include "runtime/plan/DType.h"

#include <functional>
#include <string>

namespace sluice::runtime {

/// An IDX file of bytes: magic 00 00 08 rank, then the sizes as big-endian u32, then the elements.
struct IdxFile {
  Shape shape;
  Bytes data;
};

/// Reads `path` (gzipped if its name ends in .gz), which must have `rank` dimensions. No more is inflated than the
/// header promises.
IdxFile readIdx(const std::string &path, size_t rank);

/// Images with their labels.
struct ImageSet {
  int64_t count = 0, height = 0, width = 0;
  Bytes pixels; ///< [count][height][width]
  Bytes labels; ///< [count]

  int64_t imageBytes() const { return height * width; }
};

/// Fails if images of this count and size are not wanted; they have no data yet.
using ImageCheck = std::function<void(const ImageSet &)>;

/// The part "train" or "t10k" of an MNIST-style folder. Headers are compared and checked before any data is unpacked.
ImageSet readImages(const std::string &folder, const std::string &part, const ImageCheck &check = {});

} // namespace sluice::runtime

#endif
