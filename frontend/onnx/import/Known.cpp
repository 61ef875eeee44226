#include "frontend/onnx/import/Known.h"

#include "frontend/onnx/file/Wire.h"
#include "sluice/backend/halves.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstring>

namespace sluice::onnx {

std::int64_t countOf(const Dims &dims) {
  std::int64_t count = 1;
  for (std::int64_t size : dims)
    if (size < 0 || __builtin_mul_overflow(count, size, &count) || count > std::int64_t(1) << 40)
      throw Malformed("a tensor has a negative dimension or more than 2^40 elements");
  return count;
}

static std::size_t widthOf(ElementType type) {
  std::optional<std::size_t> size = sizeOf(type);
  if (!size)
    throw Malformed("elements of type " + nameOf(type) + " cannot be read");
  return *size;
}

Known::Known(ElementType type, Dims dims, std::span<const std::byte> bytes, std::shared_ptr<const void> owner,
             std::shared_ptr<const runtime::MappedFile> file, std::size_t offset)
    : elementType(type), shape(std::move(dims)), elements(countOf(shape)), width(widthOf(type)), data(bytes),
      owner(std::move(owner)), file(std::move(file)), offset(offset) {
  assert(data.size() == std::size_t(elements) * width && "the bytes of a tensor");
}

static std::shared_ptr<const std::vector<std::byte>> kept(std::vector<std::byte> bytes) {
  return std::make_shared<const std::vector<std::byte>>(std::move(bytes));
}

Known::Known(ElementType type, Dims dims, std::vector<std::byte> bytes)
    : Known(type, std::move(dims), std::span<const std::byte>(), nullptr) {
  auto own = kept(std::move(bytes));
  data = *own;
  owner = own;
}

Known Known::uniform(ElementType type, Dims dims, std::span<const std::byte> element) {
  Known known(type, {}, std::vector<std::byte>(element.begin(), element.end()));
  known.shape = std::move(dims);
  known.elements = countOf(known.shape);
  known.uniformElement = true;
  return known;
}

template <class T, class Store>
static Known stored(ElementType type, Dims dims, std::span<const T> values, Store store) {
  std::size_t width = widthOf(type);
  if (type == ElementType::complex64 || type == ElementType::complex128)
    throw Malformed("elements of type " + nameOf(type) + " are not numbers");
  std::vector<std::byte> bytes(values.size() * width);
  for (std::size_t i = 0; i < values.size(); ++i)
    store(type, values[i], bytes.data() + i * width);
  return {type, std::move(dims), std::move(bytes)};
}

Known Known::ofIntegers(ElementType type, Dims dims, std::span<const std::int64_t> values) {
  return stored(type, std::move(dims), values, storeInteger);
}
Known Known::ofReals(ElementType type, Dims dims, std::span<const double> values) {
  return stored(type, std::move(dims), values, storeReal);
}
Known Known::vector(std::span<const std::int64_t> values) {
  return ofIntegers(ElementType::i64, {std::int64_t(values.size())}, values);
}
Known Known::scalar(std::int64_t value) { return ofIntegers(ElementType::i64, {}, {&value, 1}); }

/// Lists of a repeated number could be much larger than the file.
static constexpr std::int64_t kMostRepeated = std::int64_t(1) << 22;

//===- elements ---------------------------------------------------------------------------------------------------===//

template <class T> static T loaded(const std::byte *from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}
template <class T> static void put(T value, std::byte *to) { std::memcpy(to, &value, sizeof value); }

std::int64_t Known::integer(std::int64_t index) const {
  const std::byte *from = at(index);
  switch (elementType) {
  case ElementType::boolean:
    return loaded<std::uint8_t>(from) != 0;
  case ElementType::u8:
    return loaded<std::uint8_t>(from);
  case ElementType::i8:
    return loaded<std::int8_t>(from);
  case ElementType::u16:
    return loaded<std::uint16_t>(from);
  case ElementType::i16:
    return loaded<std::int16_t>(from);
  case ElementType::i32:
    return loaded<std::int32_t>(from);
  case ElementType::u32:
    return loaded<std::uint32_t>(from);
  case ElementType::i64:
  case ElementType::u64:
    return loaded<std::int64_t>(from);
  default: {
    double value = real(index);
    if (std::isnan(value))
      return 0;
    return value >= 0x1p63    ? std::numeric_limits<std::int64_t>::max()
           : value <= -0x1p63 ? std::numeric_limits<std::int64_t>::min()
                              : std::int64_t(value);
  }
  }
}

double Known::real(std::int64_t index) const {
  const std::byte *from = at(index);
  switch (elementType) {
  case ElementType::f32:
    return loaded<float>(from);
  case ElementType::f64:
    return loaded<double>(from);
  case ElementType::f16:
    return sluice_float_of_f16(loaded<std::uint16_t>(from));
  case ElementType::bf16:
    return sluice_float_of_bf16(loaded<std::uint16_t>(from));
  case ElementType::u64:
    return double(loaded<std::uint64_t>(from));
  case ElementType::complex64:
  case ElementType::complex128:
    throw Malformed("elements of type " + nameOf(elementType) + " are not numbers");
  default:
    return double(integer(index));
  }
}

void Known::requireListable() const {
  if (uniformElement && elements > kMostRepeated)
    throw Malformed(std::to_string(elements) + " elements that repeat one number are listed");
}

std::vector<std::int64_t> Known::integers() const {
  requireListable();
  std::vector<std::int64_t> values(static_cast<std::size_t>(elements));
  for (std::int64_t i = 0; i < elements; ++i)
    values[std::size_t(i)] = integer(i);
  return values;
}

std::vector<double> Known::reals() const {
  requireListable();
  std::vector<double> values(static_cast<std::size_t>(elements));
  for (std::int64_t i = 0; i < elements; ++i)
    values[std::size_t(i)] = real(i);
  return values;
}

void storeInteger(ElementType type, std::int64_t value, std::byte *to) {
  switch (type) {
  case ElementType::boolean:
    return put(std::uint8_t(value != 0), to);
  case ElementType::u8:
  case ElementType::i8:
    return put(std::uint8_t(value), to);
  case ElementType::u16:
  case ElementType::i16:
    return put(std::uint16_t(value), to);
  case ElementType::i32:
  case ElementType::u32:
    return put(std::uint32_t(value), to);
  case ElementType::i64:
  case ElementType::u64:
    return put(value, to);
  default:
    return storeReal(type, double(value), to);
  }
}

void storeReal(ElementType type, double value, std::byte *to) {
  switch (type) {
  case ElementType::f32:
    return put(float(value), to);
  case ElementType::f64:
    return put(value, to);
  case ElementType::f16:
    return put(sluice_f16_of_float(float(value)), to);
  case ElementType::bf16:
    return put(sluice_bf16_of_float(float(value)), to);
  case ElementType::boolean:
    return put(std::uint8_t(value != 0), to);
  default: {
    auto [least, most] = limitsOf(type);
    double whole = std::isnan(value) ? 0 : std::trunc(value);
    storeInteger(type, whole <= double(least) ? least : whole >= double(most) ? most : std::int64_t(whole), to);
  }
  }
}

//===- results ----------------------------------------------------------------------------------------------------===//

bool Known::equals(const Known &other) const {
  return elementType == other.elementType && shape == other.shape && uniformElement == other.uniformElement &&
         data.size() == other.data.size() &&
         (data.empty() || std::memcmp(data.data(), other.data.data(), data.size()) == 0);
}

Known Known::reshaped(Dims dims) const {
  Known other = *this;
  assert(countOf(dims) == elements && "a reshape keeps the number of elements");
  other.shape = std::move(dims);
  return other;
}

Known Known::rows(std::int64_t first, std::int64_t count) const {
  assert(first >= 0 && count >= 0 && first + count <= shape.at(0) && "rows that exist");
  Known part = *this;
  std::int64_t size = shape[0] == 0 ? 0 : elements / shape[0];
  part.shape[0] = count;
  part.elements = count * size;
  if (uniformElement)
    return part;
  part.data = data.subspan(std::size_t(first * size) * width, std::size_t(part.elements) * width);
  part.offset += std::size_t(first * size) * width;
  return part;
}

Known Known::taking(Dims dims, std::span<const std::int64_t> from) const {
  if (uniformElement && std::find(from.begin(), from.end(), -1) == from.end())
    return uniform(elementType, std::move(dims), data);
  std::vector<std::byte> bytes(from.size() * width);
  for (std::size_t i = 0; i < from.size(); ++i)
    if (from[i] >= 0)
      std::memcpy(bytes.data() + i * width, at(from[i]), width);
  return {elementType, std::move(dims), std::move(bytes)};
}

runtime::TensorSource Known::source(const std::string &what) const {
  std::optional<DType> held = heldAs(elementType);
  assert(held && "a type that graphs hold");
  if (elementTypeOf(*held) != elementType) {
    ElementType wide = elementTypeOf(*held);
    return ofIntegers(wide, shape, integers()).source(what);
  }
  runtime::TensorSource source{what, runtime::DType(*held), shape, {}};
  if (uniformElement)
    source.read = [known = *this](std::size_t at, std::span<std::byte> to) {
      for (std::size_t i = 0; i < to.size(); ++i)
        to[i] = known.data[(at + i) % known.width];
    };
  else if (file)
    source.read = [file = file, offset = offset](std::size_t at, std::span<std::byte> to) {
      file->read(std::int64_t(offset + at), to);
    };
  else
    source.read = [data = data, owner = owner](std::size_t at, std::span<std::byte> to) {
      std::memcpy(to.data(), data.data() + at, to.size());
    };
  return source;
}

} // namespace sluice::onnx
