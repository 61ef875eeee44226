// NumPy's .npy files: versions 1 to 3, little-endian f4 f8 i4 i8 u1 and b1, C order.
#ifndef SLUICE_RUNTIME_IO_NPY_H
#define SLUICE_RUNTIME_IO_NPY_H

#include "runtime/io/File.h"
#include "runtime/plan/DType.h"

#include <span>
#include <string>

namespace sluice::runtime {

/// Parses the content of a file; `name` begins the messages.
HostTensor parseNpy(std::span<const std::byte> content, const std::string &name);
HostTensor readNpy(const std::string &path);

/// Writes version 1.0, atomically.
void writeNpy(const std::string &path, const HostTensor &tensor);

} // namespace sluice::runtime

#endif
