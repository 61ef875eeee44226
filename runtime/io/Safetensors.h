// safetensors files: an 8-byte header length, a JSON header, the tensors' bytes.
#pragma once

#include "runtime/io/File.h"
#include "runtime/plan/DType.h"

#include <functional>
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

  /// Parses the content of a file; messages begin with `name`. The tensors must fill the file without overlaps or gaps.
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

/// The location of a tensor in the data of a file.
struct TensorRange {
  std::string name;
  DType dtype = DType::f32;
  Shape shape;
  uint64_t begin = 0, bytes = 0;
};

/// A file whose tensors stay on disk until they are read.
class SafetensorsFile {
public:
  /// Reads the header, with the checks of Safetensors.
  explicit SafetensorsFile(const std::string &path);
  const std::vector<TensorRange> &tensors() const { return tensors_; } ///< by name
  const TensorRange *find(std::string_view name) const;
  const Metadata &metadata() const { return metadata_; }
  /// Fills `to` with the tensor's bytes from offset `from` on.
  void read(const TensorRange &tensor, uint64_t from, std::span<std::byte> to) const;

private:
  struct Descriptor {
    explicit Descriptor(int number) : number(number) {}
    Descriptor(const Descriptor &) = delete;
    Descriptor &operator=(const Descriptor &) = delete;
    ~Descriptor();
    const int number; ///< negative: not open
  };
  void readAt(uint64_t at, std::span<std::byte> to) const;

  std::string path_;
  Descriptor file_;
  uint64_t begin_ = 0; ///< offset of the data
  std::vector<TensorRange> tensors_;
  Metadata metadata_;
};

/// Writes the file atomically, tensors in the reference implementation's order: largest element type first, then by
/// name.
void writeSafetensors(const std::string &path, std::vector<Safetensors::Tensor> tensors, const Metadata &metadata);

/// Receives the next bytes of a tensor.
using WriteBytes = std::function<void(std::span<const std::byte>)>;
/// The same with data produced during the write: `give` passes all bytes of a tensor to `write`, in order. `begin` and
/// `bytes` of the ranges are ignored.
void writeSafetensors(const std::string &path, std::vector<TensorRange> tensors, const Metadata &metadata,
                      const std::function<void(const TensorRange &tensor, const WriteBytes &write)> &give);

} // namespace sluice::runtime
