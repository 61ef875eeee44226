// Arrays in files: .npy of NumPy, and .safetensors of PyTorch users.
//
//     save_safetensors("net.safetensors", {{"w", w}, {"b", b}});
//     for (const auto &[name, x] : load_safetensors("net.safetensors", gpu(0)))
//       std::cout << name << ' ' << x << '\n';
//
// Files are written atomically: under their name they are either complete or unchanged. Writing an array of an
// accelerator, or reading one to it, counts as one copy. Every function throws Error: code 3 if a file cannot be read or
// written or is damaged, and then there is no array and no file; code 4 for a missing device; code 5 if memory is
// exhausted.
#pragma once

#include "sluice/array.h"

#include <optional>
#include <source_location>
#include <string>
#include <utility>
#include <vector>

namespace sluice {

/// Writes an array of any shape and dtype as version 1.0, little-endian, in C order. bf16 has the type that NumPy writes
/// for ml_dtypes, V2.
void save_npy(const std::string &path, const Array &array,
              std::source_location where = std::source_location::current());
/// Reads versions 1 to 3 to a device, the default device if absent. Big-endian elements, Fortran order, and types that
/// Sluice lacks are errors (code 3) that name the conversion in Python.
Array load_npy(const std::string &path, std::optional<Device> device = {},
               std::source_location where = std::source_location::current());

/// Writes named arrays, which may be on several devices. Names are different texts in UTF-8 other than "__metadata__";
/// anything else throws Error (code 2).
void save_safetensors(const std::string &path, const std::vector<std::pair<std::string, Array>> &arrays,
                      std::source_location where = std::source_location::current());
/// All arrays of a file, by name, on a device, the default device if absent.
std::vector<std::pair<std::string, Array>>
load_safetensors(const std::string &path, std::optional<Device> device = {},
                 std::source_location where = std::source_location::current());

} // namespace sluice
