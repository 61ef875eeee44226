// NumPy's .npy files: versions 1 to 3, little-endian f2 f4 f8 i4 i8 u1 b1 and V2, C order. numpy writes bfloat16 of
// ml_dtypes as V2 (untyped bytes), so V2 is read as bf16.
#pragma once

#include "runtime/io/File.h"
#include "runtime/plan/DType.h"

#include <cstdint>
#include <span>
#include <string>

namespace sluice::runtime {

struct NpyHeader {
  DType dtype = DType::f32;
  Shape shape;
  int64_t begin = 0, bytes = 0; ///< range of the elements, up to the end of the file
};

/// Upper bound of the size of an accepted header.
inline constexpr int64_t npyStartBytes = (1 << 16) + 12;

/// Parses the header of a file of `fileBytes` bytes. `start` holds its first `npyStartBytes` bytes, or all.
NpyHeader parseNpyHeader(std::span<const std::byte> start, int64_t fileBytes, const std::string &name);

/// Parses the content of a file; messages begin with `name`.
HostTensor parseNpy(std::span<const std::byte> content, const std::string &name);
HostTensor readNpy(const std::string &path);
/// Reads an array from a file or a pipe; messages call it `name`. Reads no more of a pipe than the header declares.
HostTensor readNpyStream(const std::string &path, const std::string &name);

/// Writes version 1.0, atomically.
void writeNpy(const std::string &path, const HostTensor &tensor);
void writeNpy(const std::string &path, DType dtype, const Shape &shape, std::span<const std::byte> elements);
/// Writes the same to standard output, after any text printed there before.
void printNpy(const HostTensor &tensor);

} // namespace sluice::runtime
