// Arrays in files: NumPy's .npy, and .safetensors.
//
//     save_safetensors("net.safetensors", {{"w", w}, {"b", b}});
//     for (const auto &[name, x] : load_safetensors("net.safetensors", gpu(0)))
//       std::cout << name << ' ' << x << '\n';
//
// Files are written atomically: after a failure, the old file is unchanged. Writing an array of an accelerator, or
// reading one to it, counts as one copy. Functions throw Error: code 3 if a file cannot be read or written, or is
// damaged; code 4 for a missing device; code 5 if memory is exhausted.
#pragma once

#include "sluice/array.h"

#include <optional>
#include <source_location>
#include <string>
#include <utility>
#include <vector>

namespace sluice {

/// Writes an array of any shape and dtype as format version 1.0, little-endian, in C order. bf16 is stored as V2, as
/// NumPy stores ml_dtypes.bfloat16. Waits.
void save_npy(const std::string &path, const Array &array,
              std::source_location where = std::source_location::current());
/// Reads format versions 1 to 3 to `device`, or to the default device. Throws Error (code 3) for big-endian elements,
/// Fortran order and unsupported element types; the message contains the conversion in Python.
Array load_npy(const std::string &path, std::optional<Device> device = {},
               std::source_location where = std::source_location::current());

/// Writes named arrays, which may be on several devices. Names must be distinct, UTF-8, and not "__metadata__";
/// otherwise throws Error (code 2). Waits.
void save_safetensors(const std::string &path, const std::vector<std::pair<std::string, Array>> &arrays,
                      std::source_location where = std::source_location::current());
/// Reads all arrays of a file to `device`, or to the default device. Sorted by name. Throws Error (code 3) for
/// unsupported element types.
std::vector<std::pair<std::string, Array>>
load_safetensors(const std::string &path, std::optional<Device> device = {},
                 std::source_location where = std::source_location::current());

} // namespace sluice
