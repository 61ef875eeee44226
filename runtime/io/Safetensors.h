// safetensors files: an 8-byte header length, a JSON header, the tensors' bytes.
#ifndef SLUICE_RUNTIME_IO_SAFETENSORS_H
#define SLUICE_RUNTIME_IO_SAFETENSORS_H

#include "runtime/DType.h"
#include "runtime/io/File.h"

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::runtime {

using Metadata = std::map<std::string, std::string>;

/// A file in memory; the tensors are views of it.
class Safetensors {
public:
  struct Tensor {
    std::string name;
    DType dtype = DType::f32;
    Shape shape;
    std::span<const std::byte> data;
  };

  /// Parses the content of a file; `name` begins the messages. The tensors must fill the file without overlap or hole.
  Safetensors(Bytes content, const std::string &name);
  Safetensors(Safetensors &&) = default;
  Safetensors &operator=(Safetensors &&) = default;

  const std::vector<Tensor> &tensors() const { return tensors_; } ///< by name
  const Tensor *find(std::string_view name) const;
  const Metadata &metadata() const { return metadata_; }

private:
  Bytes content_;
  std::vector<Tensor> tensors_;
  Metadata metadata_;
};

Safetensors readSafetensors(const std::string &path);

/// Writes the file atomically, tensors in the reference implementation's order: largest element type first, then by
/// name.
void writeSafetensors(const std::string &path, std::vector<Safetensors::Tensor> tensors, const Metadata &metadata);

} // namespace sluice::runtime

#endif
