#include "runtime/io/Safetensors.h"

#include "runtime/base/Status.h"
#include "runtime/base/Text.h"
#include "runtime/io/ForeignWeights.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <tuple>
#include <unistd.h>
#include <unordered_map>

namespace sluice::runtime {

static constexpr uint64_t longestHeader = 100'000'000; // limit of the reference implementation
static constexpr size_t mostNumbers = 32;

namespace {

/// A tensor as the header describes it.
struct HeaderTensor {
  std::string name, dtype;
  Shape shape;
  std::vector<int64_t> offsets;
  bool haveDType = false, haveShape = false, haveOffsets = false;
};

/// Reads the header event by event, so that a hostile header costs no more memory than its size.
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
    if (list.size() == mostNumbers)
      fail(concat("tensor ", quote(tensors.back().name), ": a list has more than ", mostNumbers, " numbers"));
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

/// The length of the header of a file of `size` bytes. `start` holds enough of its first bytes to recognize other
/// formats.
static uint64_t headerBytes(std::span<const std::byte> start, uint64_t size, const std::string &name) {
  if (size < 8)
    failInvalid(concat(name, ": not a safetensors file: it has ", size, " bytes"));
  uint64_t bytes = 0;
  for (size_t i = 0; i < 8; ++i)
    bytes |= std::to_integer<uint64_t>(start[i]) << 8 * i;
  bool isHeader = bytes <= std::min(longestHeader, size - 8);
  if (std::string other = isHeader ? "" : foreignFormat(start, name); !other.empty())
    failInvalid(concat(name, ": ", other));
  if (bytes > longestHeader)
    failInvalid(concat(name, ": the header claims ", bytes, " bytes, more than the limit of ", longestHeader));
  if (bytes > size - 8)
    failInvalid(concat(name, ": truncated: the header claims ", bytes, " bytes, the file has ", size));
  return bytes;
}

static DType typeOf(const HeaderTensor &tensor, const std::string &file) {
  std::string known;
  for (DType type : allDTypes()) {
    if (safetensorsNameOf(type) == tensor.dtype)
      return type;
    known += concat(known.empty() ? "" : ", ", safetensorsNameOf(type));
  }
  failInvalid(concat(file, ": tensor ", quote(tensor.name), " has the element type ", quote(tensor.dtype),
                     "; supported: ", known));
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

/// Sorts the tensors by offset, and checks that they fill the data without overlaps or gaps.
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

/// The tensors that a header describes, by name, in a file with `payload` bytes of data.
static std::vector<TensorRange> placesIn(std::string_view text, int64_t payload, const std::string &name,
                                         Metadata &metadata) {
  if (!text.starts_with("{"))
    failInvalid(concat(name, ": not a safetensors file: the header does not begin with '{'"));
  HeaderReader header(name);
  nlohmann::json::sax_parse(text.begin(), text.end(), &header);
  for (const HeaderTensor &tensor : header.tensors)
    checkRange(tensor, typeOf(tensor, name), payload, name);
  checkCover(header.tensors, payload, name);
  std::vector<TensorRange> places;
  for (HeaderTensor &tensor : header.tensors)
    places.push_back({std::move(tensor.name), typeOf(tensor, name), std::move(tensor.shape),
                      static_cast<uint64_t>(tensor.offsets[0]),
                      static_cast<uint64_t>(tensor.offsets[1] - tensor.offsets[0])});
  std::sort(places.begin(), places.end(), [](const TensorRange &a, const TensorRange &b) { return a.name < b.name; });
  for (size_t i = 1; i < places.size(); ++i)
    if (places[i].name == places[i - 1].name)
      failInvalid(concat(name, ": tensor ", quote(places[i].name), " appears twice"));
  metadata = std::move(header.metadata);
  return places;
}

Safetensors::Safetensors(Bytes content, const std::string &name) : content_(std::move(content)) {
  std::span<const std::byte> start(content_.data(), std::min(content_.size(), foreignStartBytes));
  uint64_t length = headerBytes(start, content_.size(), name);
  std::string_view text(reinterpret_cast<const char *>(content_.data()) + 8, length);
  std::span<const std::byte> data = std::span<const std::byte>(content_).subspan(8 + length);
  for (TensorRange &place : placesIn(text, static_cast<int64_t>(data.size()), name, metadata_))
    tensors_.push_back(
        {std::move(place.name), place.dtype, std::move(place.shape), data.subspan(place.begin, place.bytes)});
}

template <typename Tensor> static const Tensor *findByName(const std::vector<Tensor> &tensors, std::string_view name) {
  auto found = std::lower_bound(tensors.begin(), tensors.end(), name,
                                [](const Tensor &tensor, std::string_view wanted) { return tensor.name < wanted; });
  return found != tensors.end() && found->name == name ? &*found : nullptr;
}

const Safetensors::Tensor *Safetensors::find(std::string_view name) const { return findByName(tensors_, name); }

SafetensorsFile::SafetensorsFile(const std::string &path)
    : path_(path), file_(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
  if (file_.number < 0)
    failSystem(path, "open");
  struct stat facts;
  if (fstat(file_.number, &facts) != 0 || !S_ISREG(facts.st_mode))
    failInvalid(concat(path, ": not a regular file"));
  uint64_t size = static_cast<uint64_t>(facts.st_size);
  Bytes start(std::min<uint64_t>(size, foreignStartBytes));
  readAt(0, start);
  std::string text(headerBytes(start, size, path), ' ');
  readAt(8, std::as_writable_bytes(std::span(text)));
  begin_ = 8 + text.size();
  tensors_ = placesIn(text, static_cast<int64_t>(size - begin_), path, metadata_);
}

SafetensorsFile::Descriptor::~Descriptor() {
  if (number >= 0)
    close(number);
}

const TensorRange *SafetensorsFile::find(std::string_view name) const { return findByName(tensors_, name); }

void SafetensorsFile::read(const TensorRange &tensor, uint64_t from, std::span<std::byte> to) const {
  assert(from + to.size() <= tensor.bytes && "reads are inside of the tensor");
  readAt(begin_ + tensor.begin + from, to);
}

void SafetensorsFile::readAt(uint64_t at, std::span<std::byte> to) const {
  while (!to.empty()) {
    ssize_t count = pread(file_.number, to.data(), to.size(), static_cast<off_t>(at));
    if (count < 0 && errno == EINTR)
      continue;
    if (count < 0)
      failSystem(path_, "read");
    if (count == 0)
      failInvalid(concat(path_, ": shrank to ", at, " bytes while it was read"));
    at += static_cast<uint64_t>(count);
    to = to.subspan(static_cast<size_t>(count));
  }
}

Safetensors readSafetensors(const std::string &path) { return Safetensors(readFile(path), path); }

void writeSafetensors(const std::string &path, std::vector<TensorRange> tensors, const Metadata &metadata,
                      const std::function<void(const TensorRange &, const WriteBytes &)> &give) {
  std::sort(tensors.begin(), tensors.end(), [](const TensorRange &a, const TensorRange &b) {
    size_t sizeA = sizeOf(a.dtype), sizeB = sizeOf(b.dtype);
    return sizeA != sizeB ? sizeA > sizeB : a.name < b.name;
  });
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!metadata.empty())
    header["__metadata__"] = metadata;
  uint64_t offset = 0;
  for (const TensorRange &tensor : tensors) {
    uint64_t bytes = static_cast<uint64_t>(elementsOf(tensor.shape)) * sizeOf(tensor.dtype);
    header[tensor.name] = {{"dtype", safetensorsNameOf(tensor.dtype)},
                           {"shape", tensor.shape},
                           {"data_offsets", {offset, offset + bytes}}};
    offset += bytes;
  }
  std::string text = header.dump();
  text.append((8 - text.size() % 8) % 8, ' ');
  char length[8];
  for (size_t i = 0; i < 8; ++i)
    length[i] = static_cast<char>(text.size() >> 8 * i & 0xff);
  AtomicFile file(path);
  file.write(length, sizeof length);
  file.write(text);
  for (const TensorRange &tensor : tensors)
    give(tensor, [&](std::span<const std::byte> bytes) { file.write(bytes.data(), bytes.size()); });
  file.commit();
}

void writeSafetensors(const std::string &path, std::vector<Safetensors::Tensor> tensors, const Metadata &metadata) {
  std::vector<TensorRange> places;
  std::unordered_map<std::string_view, const Safetensors::Tensor *> byName;
  for (const Safetensors::Tensor &tensor : tensors) {
    places.push_back({tensor.name, tensor.dtype, tensor.shape, 0, tensor.data.size()});
    byName.emplace(tensor.name, &tensor);
  }
  writeSafetensors(path, std::move(places), metadata,
                   [&](const TensorRange &place, const WriteBytes &write) { write(byName.at(place.name)->data); });
}

} // namespace sluice::runtime
