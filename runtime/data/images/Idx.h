// IDX files of bytes, plain or gzipped, and folders of them, as MNIST comes.
#pragma once

#include "runtime/data/tables/Table.h"

#include <memory>
#include <string>
#include <vector>

namespace sluice::runtime {

/// Opens `path` as a column of bytes: magic 00 00 08 rank, then the sizes as big-endian u32, rows first, then the
/// elements. Of gzip data no more is unpacked than the header promises, and not before the column is loaded.
std::unique_ptr<Column> openIdx(const std::string &path, const std::string &column, size_t rank);

/// What the name of a file in an MNIST-style folder says: "train-images-idx3-ubyte.gz" is the column "image" of part
/// "train", of rank 3. A part is "train" or "t10k".
struct IdxName {
  std::string part, column;
  size_t rank = 0;
  bool isPacked = false;
};

/// Whether a file has such a name.
bool parseIdxName(const std::string &file, IdxName &parsed);

/// The columns of a part of a folder, which holds these files; a plain file goes before a gzipped one.
Table idxTable(const std::string &folder, const std::vector<std::string> &files, const std::string &part);

} // namespace sluice::runtime
