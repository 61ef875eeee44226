// Finds out which kind of data a path names, and opens a part of it. DATA.md tells users what there is.
#pragma once

#include "runtime/data/tables/Table.h"

#include <optional>
#include <string>
#include <vector>

namespace sluice::runtime {

enum class DataPart { train, test };

/// How data is read where there is a choice.
struct DataOptions {
  std::string tokenizer = {}; ///< a folder, as Bpe takes one: what texts are read by; empty: bytes are tokens
  bool augments = false;      ///< images to train on, as `imageTable` says
  std::vector<std::string> classes = {}; ///< of images, whose labels are numbers among these; empty: those of the data
};

/// A file or folder of data: in parts, as MNIST is, or one set of rows, as an .npz file is.
class DataPath {
public:
  /// Fails if it is not there, or of no kind or of several, or if an option is not for its kind.
  explicit DataPath(const std::string &path, DataOptions options = {});

  const std::string &path() const { return path_; }
  /// The classes of folders of images to train on; of other data, none.
  std::vector<std::string> classes() const;
  bool hasParts() const;
  /// A part of what is in parts; nothing if the part is not there.
  std::optional<Table> part(DataPart part) const;
  /// All rows of what is not in parts.
  Table whole() const;

  /// What a kind of data looks like, and how it is opened; a table of them is in the source.
  struct Format;

private:
  std::optional<Table> open(DataPart part) const;

  std::string path_;
  DataOptions options_;
  std::vector<std::string> files_; ///< in the folder, by name; of a file, none
  const Format *format_ = nullptr;
};

} // namespace sluice::runtime
