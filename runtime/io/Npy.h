// NumPy's .npy files: versions 1 to 3, little-endian f2 f4 f8 i4 i8 u1 b1 and V2, C order. V2, bytes without a
// meaning, is what numpy writes of the bfloat16 of ml_dtypes, and is read as such.
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
  int64_t begin = 0, bytes = 0; ///< of the elements, which reach to the end of the file
};

/// So many bytes of a file hold any header that is accepted.
inline constexpr int64_t npyStartBytes = (1 << 16) + 12;

/// Parses the header of a file of `fileBytes` bytes, of which `start` is the beginning: `npyStartBytes` or all.
NpyHeader parseNpyHeader(std::span<const std::byte> start, int64_t fileBytes, const std::string &name);

/// Parses the content of a file; `name` begins the messages.
HostTensor parseNpy(std::span<const std::byte> content, const std::string &name);
HostTensor readNpy(const std::string &path);
/// Reads an array from a file or a pipe; messages call it `name`. Reads no more of a pipe than the header declares.
HostTensor readNpyStream(const std::string &path, const std::string &name);

/// Writes version 1.0, atomically.
void writeNpy(const std::string &path, const HostTensor &tensor);
/// Writes the same to standard output, after any text printed there before.
void printNpy(const HostTensor &tensor);

} // namespace sluice::runtime
