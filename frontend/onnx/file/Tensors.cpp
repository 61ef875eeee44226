#include "frontend/onnx/file/Tensors.h"

#include "frontend/onnx/file/Wire.h"
#include "runtime/base/Status.h"

#include <charconv>
#include <cstring>
#include <filesystem>

namespace sluice::onnx::file {

namespace fs = std::filesystem;

/// Where external data lies.
struct Tensors::Place {
  std::string location;
  std::uint64_t offset = 0;
  std::optional<std::uint64_t> length;
};

Tensors::Tensors(std::shared_ptr<const runtime::MappedFile> file, std::string_view bytes, std::string dataFolder)
    : file(std::move(file)), bytes(bytes), dataFolder(std::move(dataFolder)) {}

namespace {

/// The fields of a TensorProto.
struct Fields {
  std::string_view name;
  ElementType type = ElementType::undefined;
  Dims dims;
  std::optional<std::string_view> raw;
  std::vector<float> floats;
  std::vector<double> doubles;
  std::vector<std::int64_t> integers; ///< of int32_data, int64_data or uint64_data
  std::map<std::string_view, std::string_view> external;
  bool isExternal = false, isSegment = false, hasStrings = false;
};

} // namespace

static void readEntry(std::string_view message, std::map<std::string_view, std::string_view> &entries) {
  std::string_view key, value;
  Message fields(message);
  for (Field field; fields.next(field);) {
    if (field.number == 1)
      key = field.bytes();
    else if (field.number == 2)
      value = field.bytes();
  }
  entries[key] = value;
}

static Fields readFields(std::string_view message) {
  Fields tensor;
  Message fields(message);
  for (Field field; fields.next(field);) {
    switch (field.number) {
    case 1:
      field.appendTo(tensor.dims);
      break;
    case 2:
      tensor.type = ElementType(field.integer());
      break;
    case 3:
      tensor.isSegment = true;
      break;
    case 4:
      field.appendTo(tensor.floats);
      break;
    case 5:
    case 7:
    case 11:
      field.appendTo(tensor.integers);
      break;
    case 6:
      tensor.hasStrings = true;
      break;
    case 8:
      tensor.name = field.bytes();
      break;
    case 9:
      tensor.raw = field.bytes();
      break;
    case 10:
      field.appendTo(tensor.doubles);
      break;
    case 13:
      readEntry(field.bytes(), tensor.external);
      break;
    case 14:
      tensor.isExternal = field.integer() == 1;
      break;
    }
  }
  return tensor;
}

static std::string quoted(std::string_view name) { return "tensor '" + std::string(name) + "'"; }

static std::uint64_t numberOf(std::string_view name, std::string_view text) {
  std::uint64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size())
    throw Malformed(quoted(name) + ": '" + std::string(text) + "' is not a place in a file of data");
  return value;
}

static void requireBytes(std::string_view name, std::int64_t count, std::size_t width, std::uint64_t bytes) {
  if (std::uint64_t(count) * width != bytes)
    throw Malformed(quoted(name) + " has " + std::to_string(bytes) + " bytes; its dimensions and type need " +
                    std::to_string(std::uint64_t(count) * width));
}

/// Typed fields as elements. Halves are stored as their bits in int32_data.
static Known typed(const Fields &tensor, std::int64_t count) {
  auto require = [&](std::size_t there) {
    if (there != std::size_t(count))
      throw Malformed(quoted(tensor.name) + " has " + std::to_string(there) + " elements; its dimensions need " +
                      std::to_string(count));
  };
  auto bytesOf = [](const auto &list) {
    auto *begin = reinterpret_cast<const std::byte *>(list.data());
    return std::vector<std::byte>(begin, begin + list.size() * sizeof(list[0]));
  };
  if (tensor.type == ElementType::f32) {
    require(tensor.floats.size());
    return {tensor.type, tensor.dims, bytesOf(tensor.floats)};
  }
  if (tensor.type == ElementType::f64) {
    require(tensor.doubles.size());
    return {tensor.type, tensor.dims, bytesOf(tensor.doubles)};
  }
  require(tensor.integers.size());
  if (tensor.type == ElementType::f16 || tensor.type == ElementType::bf16) {
    std::vector<std::uint16_t> bits(tensor.integers.begin(), tensor.integers.end());
    return {tensor.type, tensor.dims, bytesOf(bits)};
  }
  return Known::ofIntegers(tensor.type, tensor.dims, tensor.integers);
}

Known Tensors::read(std::string_view message) {
  Fields tensor = readFields(message);
  if (tensor.isSegment)
    throw Malformed(quoted(tensor.name) + " is one of several segments, which no exporter writes");
  std::optional<std::size_t> width = sizeOf(tensor.type);
  if (tensor.hasStrings || !width)
    throw Malformed(quoted(tensor.name) + " has elements of type " + nameOf(tensor.type) +
                    ", which cannot be imported");
  std::int64_t count = countOf(tensor.dims);
  if (tensor.isExternal) {
    Place place;
    place.location = tensor.external["location"];
    if (auto offset = tensor.external.find("offset"); offset != tensor.external.end())
      place.offset = numberOf(tensor.name, offset->second);
    if (auto length = tensor.external.find("length"); length != tensor.external.end())
      place.length = numberOf(tensor.name, length->second);
    if (place.length)
      requireBytes(tensor.name, count, *width, *place.length);
    place.length = std::uint64_t(count) * *width;
    try {
      return external(tensor.type, tensor.dims, place);
    } catch (const Malformed &error) {
      throw Malformed(quoted(tensor.name) + ": " + error.what());
    }
  }
  if (tensor.raw) {
    requireBytes(tensor.name, count, *width, tensor.raw->size());
    return inPlace(tensor.type, tensor.dims, *tensor.raw);
  }
  return typed(tensor, count);
}

std::uint64_t Tensors::bytesOfFiles() const {
  std::uint64_t sum = bytes.size();
  for (const auto &[location, other] : others)
    sum += std::uint64_t(other->bytes());
  return sum;
}

Known Tensors::inPlace(ElementType type, Dims dims, std::string_view raw) const {
  auto *begin = reinterpret_cast<const std::byte *>(raw.data());
  return {type, std::move(dims), {begin, raw.size()}, file, file, std::size_t(raw.data() - bytes.data())};
}

Known Tensors::external(ElementType type, Dims dims, const Place &place) {
  auto &other = others[place.location];
  if (!other)
    other = open(place.location);
  auto size = std::uint64_t(other->bytes());
  if (place.offset > size || *place.length > size - place.offset)
    throw Malformed("its data lies at bytes " + std::to_string(place.offset) + " to " +
                    std::to_string(place.offset + *place.length) + " of '" + place.location + "', which has " +
                    std::to_string(size));
  std::vector<std::byte> none;
  std::span<const std::byte> all;
  other->use([&](std::span<const std::byte> view) { all = view; });
  return {type,  std::move(dims), all.subspan(std::size_t(place.offset), std::size_t(*place.length)),
          other, other,           std::size_t(place.offset)};
}

static bool isBelow(const fs::path &path, const fs::path &folder) {
  auto [end, rest] = std::mismatch(folder.begin(), folder.end(), path.begin(), path.end());
  return end == folder.end();
}

std::shared_ptr<const runtime::MappedFile> Tensors::open(const std::string &location) {
  fs::path relative(location);
  bool leaves = relative.is_absolute() || relative.empty();
  for (const fs::path &part : relative)
    leaves |= part == "..";
  if (leaves)
    throw Malformed("its data is in '" + location + "', which is not a path below the folder of the model");
  fs::path folder = fs::path(file->path()).parent_path();
  std::error_code error;
  fs::path home = fs::canonical(folder.empty() ? "." : folder, error);
  fs::path target = error ? fs::path() : fs::canonical(home / relative, error);
  if (error)
    throw Malformed("its data is in '" + location + "', which cannot be opened: " + error.message());
  bool isAllowed = isBelow(target, home);
  if (!isAllowed && !dataFolder.empty())
    isAllowed = isBelow(target, fs::canonical(dataFolder, error)) && !error;
  if (!isAllowed)
    throw Malformed("its data is in '" + location +
                    "', a symbolic link that leaves the folder of the model; if it leads into a cache of downloads, "
                    "allow the folder of the cache by --data-dir");
  try {
    return std::make_shared<const runtime::MappedFile>(target.string());
  } catch (const runtime::Error &failure) {
    throw Malformed(failure.what());
  }
}

} // namespace sluice::onnx::file
