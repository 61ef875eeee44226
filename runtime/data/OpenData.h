// Detects the kind of data at a path and opens a part of it. DATA.md lists the kinds for users.
#pragma once

#include "runtime/data/tables/Table.h"

#include <optional>
#include <string>
#include <vector>

namespace sluice::runtime {

enum class DataPart { train, test };

/// Options for reading data.
struct DataOptions {
  std::string tokenizer = {}; ///< tokenizer folder for texts, as for Bpe; empty: bytes are tokens
  bool augments = false;      ///< training augmentation, see `imageTable`
  /// Classes of images, whose indices are the labels; empty: the classes of the data.
  std::vector<std::string> classes = {};
};

/// A file or folder of data: either in parts, for example MNIST, or one set of rows, for example an .npz file.
class DataPath {
public:
  /// Fails if the path is missing, if no kind or several kinds match, or if an option does not apply to its kind.
  explicit DataPath(const std::string &path, DataOptions options = {});

  const std::string &path() const { return path_; }
  /// The classes of image folders with training data; empty for other data.
  std::vector<std::string> classes() const;
  bool hasParts() const;
  /// A part of data in parts; nothing if the part is missing.
  std::optional<Table> part(DataPart part) const;
  /// All rows of data without parts.
  Table whole() const;

  /// A kind of data: how to recognize it and how to open it. The source file has a table of all kinds.
  struct Format;

private:
  std::optional<Table> open(DataPart part) const;

  std::string path_;
  DataOptions options_;
  std::vector<std::string> files_; ///< names of the folder's files; empty for a file
  const Format *format_ = nullptr;
};

} // namespace sluice::runtime
