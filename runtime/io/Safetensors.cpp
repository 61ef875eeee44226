#include "runtime/io/Safetensors.h"

#include "runtime/Status.h"
#include "runtime/Text.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cstring>
#include <tuple>

namespace sluice::runtime {

static constexpr uint64_t longestHeader = 100'000'000; // as the reference implementation
static constexpr size_t mostDims = 32;

namespace {
struct FileType {
  std::string_view name;
  DType type;
};
} // namespace

static constexpr std::array<FileType, 6> fileTypes = {{{"F32", DType::f32},
                                                       {"F64", DType::f64},
                                                       {"I32", DType::i32},
                                                       {"I64", DType::i64},
                                                       {"U8", DType::u8},
                                                       {"BOOL", DType::boolean}}};

namespace {

/// A tensor as the header describes it.
struct HeaderTensor {
  std::string name, dtype;
  Shape shape;
  std::vector<int64_t> offsets;
  bool haveDType = false, haveShape = false, haveOffsets = false;
};

/// Reads the header event by event, so that a hostile header costs no more memory than its own size.
class HeaderReader : public nlohmann::json_sax<nlohmann::json> {
public:
  explicit HeaderReader(const std::string &file) : file_(file) {}

  std::vector<HeaderTensor> tensors;
  Metadata metadata;

  bool start_object(std::size_t) override {
    if (place_ == Place::outside)
      return move(Place::top);
    if (place_ == Place::entry)
      return move(key_ == "__metadata__" ? Place::metadata : openTensor());
    return unexpected("an object");
  }

  bool end_object() override {
    if (place_ == Place::top)
      return move(Place::done);
    if (place_ == Place::tensor)
      closeTensor();
    return move(Place::top);
  }

  bool key(string_t &key) override {
    switch (place_) {
    case Place::top:
      key_ = std::move(key);
      if (key_ == "__metadata__" && std::exchange(haveMetadata_, true))
        fail("'__metadata__' appears twice");
      return move(Place::entry);
    case Place::metadata:
      if (metadata.count(key))
        fail(concat("the metadata key ", quote(key), " appears twice"));
      key_ = std::move(key);
      return move(Place::metadataValue);
    case Place::tensor:
      return tensorKey(key);
    default:
      return unexpected("a key");
    }
  }

  bool string(string_t &text) override {
    if (place_ == Place::metadataValue) {
      metadata.emplace(key_, std::move(text));
      return move(Place::metadata);
    }
    if (place_ != Place::dtype)
      return unexpected("a string");
    tensors.back().dtype = std::move(text);
    return move(Place::tensor);
  }

  bool start_array(std::size_t) override {
    if (place_ == Place::shape)
      return move(Place::shapeItems);
    if (place_ == Place::offsets)
      return move(Place::offsetItems);
    return unexpected("a list");
  }

  bool end_array() override { return move(Place::tensor); }

  bool number_unsigned(number_unsigned_t value) override {
    if (place_ != Place::shapeItems && place_ != Place::offsetItems)
      return unexpected("a number");
    std::vector<int64_t> &list = place_ == Place::shapeItems ? tensors.back().shape : tensors.back().offsets;
    if (value > static_cast<uint64_t>(INT64_MAX))
      fail(concat("tensor ", quote(tensors.back().name), ": ", value, " is too large"));
    if (list.size() == mostDims)
      fail(concat("tensor ", quote(tensors.back().name), ": a list has more than ", mostDims, " numbers"));
    list.push_back(static_cast<int64_t>(value));
    return true;
  }

  bool number_integer(number_integer_t) override { return unexpected("a negative number"); }
  bool number_float(number_float_t, const string_t &) override { return unexpected("a fraction"); }
  bool null() override { return unexpected("null"); }
  bool boolean(bool) override { return unexpected("a boolean"); }
  bool binary(binary_t &) override { return unexpected("binary data"); }
  bool parse_error(std::size_t, const std::string &, const nlohmann::json::exception &error) override {
    fail(error.what());
  }

private:
  enum class Place {
    outside,
    top,
    entry,
    metadata,
    metadataValue,
    tensor,
    dtype,
    shape,
    shapeItems,
    offsets,
    offsetItems,
    done
  };

  bool move(Place place) {
    place_ = place;
    return true;
  }

  Place openTensor() {
    tensors.emplace_back().name = key_;
    return Place::tensor;
  }

  void closeTensor() {
    const HeaderTensor &tensor = tensors.back();
    if (!tensor.haveDType || !tensor.haveShape || !tensor.haveOffsets)
      fail(concat("tensor ", quote(tensor.name), " lacks one of 'dtype', 'shape' and 'data_offsets'"));
    if (tensor.offsets.size() != 2)
      fail(concat("tensor ", quote(tensor.name), " has ", tensor.offsets.size(), " data offsets, not 2"));
  }

  bool tensorKey(const std::string &key) {
    HeaderTensor &tensor = tensors.back();
    if (key == "dtype" && !std::exchange(tensor.haveDType, true))
      return move(Place::dtype);
    if (key == "shape" && !std::exchange(tensor.haveShape, true))
      return move(Place::shape);
    if (key == "data_offsets" && !std::exchange(tensor.haveOffsets, true))
      return move(Place::offsets);
    fail(concat("tensor ", quote(tensor.name), " has an unexpected or repeated key ", quote(key)));
  }

  bool unexpected(const char *what) {
    fail(concat("unexpected ", what, key_.empty() ? "" : " at ", key_.empty() ? "" : quote(key_)));
  }
  [[noreturn]] void fail(const std::string &message) {
    failInvalid(concat(file_, ": damaged safetensors header: ", message));
  }

  const std::string &file_;
  Place place_ = Place::outside;
  std::string key_;
  bool haveMetadata_ = false;
};

} // namespace

static std::string_view headerText(const Bytes &content, const std::string &name) {
  if (content.size() < 8)
    failInvalid(concat(name, ": not a safetensors file: it has ", content.size(), " bytes"));
  uint64_t bytes = 0;
  for (size_t i = 0; i < 8; ++i)
    bytes |= std::to_integer<uint64_t>(content[i]) << 8 * i;
  if (bytes > longestHeader)
    failInvalid(concat(name, ": the header claims ", bytes, " bytes, more than the limit of ", longestHeader));
  if (bytes > content.size() - 8)
    failInvalid(concat(name, ": truncated: the header claims ", bytes, " bytes, the file has ", content.size()));
  std::string_view text(reinterpret_cast<const char *>(content.data()) + 8, bytes);
  if (!text.starts_with("{"))
    failInvalid(concat(name, ": not a safetensors file: the header does not begin with '{'"));
  return text;
}

static DType typeOf(const HeaderTensor &tensor, const std::string &file) {
  for (const FileType &known : fileTypes)
    if (known.name == tensor.dtype)
      return known.type;
  failInvalid(concat(file, ": tensor ", quote(tensor.name), " has the element type ", quote(tensor.dtype),
                     "; supported: F32, F64, I32, I64, U8, BOOL"));
}

/// Checks that a tensor's range has the size that its type and shape need.
static void checkRange(const HeaderTensor &tensor, DType type, int64_t payload, const std::string &file) {
  int64_t begin = tensor.offsets[0], end = tensor.offsets[1];
  std::string who = concat(file, ": tensor ", quote(tensor.name));
  if (begin > end || end > payload)
    failInvalid(concat(who, " lies at [", begin, ", ", end, "), but the file has ", payload, " bytes of data"));
  std::optional<int64_t> elements = checkedElements(tensor.shape, sizeOf(type));
  if (!elements)
    failInvalid(concat(who, ": the shape ", shapeText(tensor.shape), " is too large"));
  int64_t wanted = *elements * static_cast<int64_t>(sizeOf(type));
  if (wanted != end - begin)
    failInvalid(
        concat(who, ": ", typeText(type, tensor.shape), " needs ", wanted, " bytes, its range has ", end - begin));
}

static void checkCover(std::vector<HeaderTensor> &tensors, int64_t payload, const std::string &file) {
  std::sort(tensors.begin(), tensors.end(), [](const HeaderTensor &a, const HeaderTensor &b) {
    return std::tie(a.offsets, a.name) < std::tie(b.offsets, b.name);
  });
  int64_t covered = 0;
  for (const HeaderTensor &tensor : tensors) {
    if (tensor.offsets[0] != covered)
      failInvalid(concat(file, ": tensor ", quote(tensor.name), " begins at ", tensor.offsets[0], ", which leaves ",
                         tensor.offsets[0] < covered ? "an overlap" : "a hole", " after ", covered));
    covered = tensor.offsets[1];
  }
  if (covered != payload)
    failInvalid(concat(file, ": the tensors end at ", covered, ", but the file has ", payload, " bytes of data"));
}

Safetensors::Safetensors(Bytes content, const std::string &name) : content_(std::move(content)) {
  std::string_view text = headerText(content_, name);
  HeaderReader header(name);
  nlohmann::json::sax_parse(text.begin(), text.end(), &header);
  size_t begin = 8 + text.size();
  int64_t payload = static_cast<int64_t>(content_.size() - begin);
  for (const HeaderTensor &tensor : header.tensors)
    checkRange(tensor, typeOf(tensor, name), payload, name);
  checkCover(header.tensors, payload, name);
  for (HeaderTensor &tensor : header.tensors) {
    std::span<const std::byte> data(content_.data() + begin + tensor.offsets[0],
                                    static_cast<size_t>(tensor.offsets[1] - tensor.offsets[0]));
    tensors_.push_back({std::move(tensor.name), typeOf(tensor, name), std::move(tensor.shape), data});
  }
  std::sort(tensors_.begin(), tensors_.end(), [](const Tensor &a, const Tensor &b) { return a.name < b.name; });
  for (size_t i = 1; i < tensors_.size(); ++i)
    if (tensors_[i].name == tensors_[i - 1].name)
      failInvalid(concat(name, ": tensor ", quote(tensors_[i].name), " appears twice"));
  metadata_ = std::move(header.metadata);
}

const Safetensors::Tensor *Safetensors::find(std::string_view name) const {
  auto found = std::lower_bound(tensors_.begin(), tensors_.end(), name,
                                [](const Tensor &tensor, std::string_view wanted) { return tensor.name < wanted; });
  return found != tensors_.end() && found->name == name ? &*found : nullptr;
}

Safetensors readSafetensors(const std::string &path) { return Safetensors(readFile(path), path); }

void writeSafetensors(const std::string &path, std::vector<Safetensors::Tensor> tensors, const Metadata &metadata) {
  std::sort(tensors.begin(), tensors.end(), [](const Safetensors::Tensor &a, const Safetensors::Tensor &b) {
    size_t sizeA = sizeOf(a.dtype), sizeB = sizeOf(b.dtype);
    return sizeA != sizeB ? sizeA > sizeB : a.name < b.name;
  });
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!metadata.empty())
    header["__metadata__"] = metadata;
  size_t offset = 0;
  for (const Safetensors::Tensor &tensor : tensors) {
    std::string_view type = fileTypes[static_cast<size_t>(tensor.dtype)].name;
    header[tensor.name] = {
        {"dtype", type}, {"shape", tensor.shape}, {"data_offsets", {offset, offset + tensor.data.size()}}};
    offset += tensor.data.size();
  }
  std::string text = header.dump();
  text.append((8 - text.size() % 8) % 8, ' ');
  char length[8];
  for (size_t i = 0; i < 8; ++i)
    length[i] = static_cast<char>(text.size() >> 8 * i & 0xff);
  AtomicFile file(path);
  file.write(length, sizeof length);
  file.write(text);
  for (const Safetensors::Tensor &tensor : tensors)
    file.write(tensor.data.data(), tensor.data.size());
  file.commit();
}

} // namespace sluice::runtime
