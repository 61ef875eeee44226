// Element types and shapes, with their names in plans and files.
#pragma once

#include "sluice/backend/dtypes.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::runtime {

#define SLUICE_DTYPE_NAME(name, ...) name,
enum class DType { SLUICE_FOR_EACH_DTYPE(SLUICE_DTYPE_NAME) };
#undef SLUICE_DTYPE_NAME

/// Bytes of one element.
size_t sizeOf(DType type);
bool isFloat(DType type);
/// "f32", ..., "bool".
std::string_view nameOf(DType type);
std::optional<DType> dtypeFromName(std::string_view name);
/// Its names in npy and safetensors files: "<f4" and "F32".
std::string_view npyNameOf(DType type);
std::string_view safetensorsNameOf(DType type);
/// All element types.
std::span<const DType> allDTypes();

using Shape = std::vector<int64_t>;

/// "[64, 1, 28, 28]".
std::string shapeText(const Shape &shape);
/// "f32[64, 10]".
std::string typeText(DType type, const Shape &shape);

/// The product of the sizes; nothing if a size is negative or the tensor's bytes overflow an int64.
std::optional<int64_t> checkedElements(const Shape &shape, size_t elementSize);

/// The product of validated sizes.
int64_t elementsOf(const Shape &shape);

/// A tensor in memory, row-major.
struct HostTensor {
  DType dtype = DType::f32;
  Shape shape;
  std::vector<std::byte> data;
};

/// The bytes of the smallest element, the neutral element of max: minus infinity if the type has it.
std::vector<std::byte> leastOf(DType type);

/// Element `index` as a double.
double elementAsDouble(DType type, const std::byte *data, int64_t index);

} // namespace sluice::runtime
