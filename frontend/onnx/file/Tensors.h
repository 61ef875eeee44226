// Decodes TensorProto messages, with data in the file or in files beside it.
#pragma once

#include "frontend/onnx/import/Known.h"

#include <map>
#include <memory>
#include <string>
#include <string_view>

namespace sluice::onnx::file {

/// Tensors of one model file. Views of the mapped file are used in place.
class Tensors {
public:
  /// `bytes` are those of `file`. External data lies below the folder of the file. With `dataFolder`, symbolic links
  /// may also lead to files below that folder.
  Tensors(std::shared_ptr<const runtime::MappedFile> file, std::string_view bytes, std::string dataFolder);
  /// Throws Malformed if the tensor is invalid, or its external data is missing or outside of the folders.
  Known read(std::string_view message);
  /// The size of the file and of the files with external data that have been read.
  std::uint64_t bytesOfFiles() const;

private:
  struct Place;
  Known external(ElementType type, Dims dims, const Place &place);
  /// Elements in the mapped file itself.
  Known inPlace(ElementType type, Dims dims, std::string_view raw) const;
  std::shared_ptr<const runtime::MappedFile> open(const std::string &location);

  std::shared_ptr<const runtime::MappedFile> file;
  std::string_view bytes;
  std::string dataFolder;
  std::map<std::string, std::shared_ptr<const runtime::MappedFile>, std::less<>> others;
};

} // namespace sluice::onnx::file
