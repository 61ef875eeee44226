// IDX files of bytes, plain or gzipped, and folders of them such as MNIST.
#pragma once

#include "runtime/data/tables/Table.h"

#include <memory>
#include <string>
#include <vector>

namespace sluice::runtime {

/// Opens `path` as a column of bytes: magic 00 00 08 rank, then the sizes as big-endian u32, rows first, then the
/// elements. Gzip data is unpacked when the column is loaded, and only up to the size in the header.
std::unique_ptr<Column> openIdx(const std::string &path, const std::string &column, size_t rank);

/// The fields in the name of a file of an MNIST-style folder: "train-images-idx3-ubyte.gz" is the column "image" of
/// part "train", of rank 3. The parts are "train" and "t10k".
struct IdxName {
  std::string part, column;
  size_t rank = 0;
  bool isPacked = false;
};

/// Whether a file has such a name.
bool parseIdxName(const std::string &file, IdxName &parsed);

/// The columns of a part of a folder with these files; a plain file takes precedence over a gzipped file.
Table idxTable(const std::string &folder, const std::vector<std::string> &files, const std::string &part);

} // namespace sluice::runtime
