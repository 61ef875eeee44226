#include "runtime/io/Weights.h"

#include "runtime/base/Status.h"
#include "runtime/base/Text.h"
#include "runtime/data/Convert.h"

#include <algorithm>
#include <zlib.h>

namespace sluice::runtime {

namespace {
/// Fills elements from narrower ones, of which `read` gives the bytes from a place on.
struct Widening {
  Convert convert;
  size_t narrow, wide; // bytes of an element

  template <typename Read> void operator()(std::span<std::byte> to, size_t at, Read read) const {
    size_t count = to.size() / wide;
    Bytes from(count * narrow);
    read(at / wide * narrow, std::span(from));
    convert(from.data(), to.data(), static_cast<int64_t>(count));
  }
};
} // namespace

static void loadState(Instance &instance, const State &state, const SafetensorsFile &file, const TensorRange &tensor,
                      const std::string &name) {
  Convert convert = isFloat(state.dtype) ? conversion(tensor.dtype, state.dtype) : nullptr;
  if (tensor.shape != state.shape || (tensor.dtype != state.dtype && !convert))
    failInvalid(concat(name, ": ", quote(state.name), " is ", typeText(tensor.dtype, tensor.shape),
                       ", but the model has ", typeText(state.dtype, state.shape)));
  auto read = [&](size_t at, std::span<std::byte> to) { file.read(tensor, at, to); };
  Widening widen{convert, sizeOf(tensor.dtype), sizeOf(state.dtype)};
  instance.setState(state, [&](size_t at, std::span<std::byte> to) { convert ? widen(to, at, read) : read(at, to); });
}

static void loadOneOf(Instance &instance, const State &state, const SafetensorsFile &file, const std::string &name) {
  const TensorRange *tensor = file.find(state.name);
  if (!tensor)
    failInvalid(concat(name, ": has no ", quote(state.name), ", which the model needs"));
  loadState(instance, state, file, *tensor, name);
}

void loadWeights(Instance &instance, const std::string &path) {
  SafetensorsFile file(path);
  std::vector<std::string> names;
  for (const State &state : instance.plan().states)
    if (state.isKept())
      names.push_back(state.name);
  for (const TensorRange &tensor : file.tensors()) {
    // PyTorch counts batches in every batch norm; nothing that is computed depends on it.
    bool known = std::find(names.begin(), names.end(), tensor.name) != names.end() ||
                 tensor.name.ends_with("num_batches_tracked");
    if (!known)
      failInvalid(concat(path, ": has a tensor ", quote(tensor.name), ", which the model does not have",
                         didYouMean(tensor.name, names)));
  }
  for (const State &state : instance.plan().states)
    if (state.isWeight())
      loadOneOf(instance, state, file, path);
}

static constexpr const char *checksumKey = "sluice.crc32";

namespace {

/// A CRC-32 of texts and bytes, each with its length before it.
class Checksum {
public:
  void begin(uint64_t size) { more(std::as_bytes(std::span(&size, 1))); }
  void more(std::span<const std::byte> bytes) {
    if (!bytes.empty()) // zlib takes no address for a beginning
      sum_ = crc32_z(sum_, reinterpret_cast<const Bytef *>(bytes.data()), bytes.size());
  }
  void add(const std::string &text) {
    begin(text.size());
    more(std::as_bytes(std::span(text)));
  }
  std::string text() const { return std::to_string(sum_); }

private:
  uLong sum_ = 0;
};

} // namespace

/// Over all that a file says but the sum itself: metadata, then tensors by name. `give` hands a tensor's bytes on.
template <typename Give>
static std::string checksumOf(const Metadata &metadata, std::vector<TensorRange> tensors, Give give) {
  Checksum sum;
  for (const auto &[key, value] : metadata)
    if (key != checksumKey) {
      sum.add(key);
      sum.add(value);
    }
  std::sort(tensors.begin(), tensors.end(), [](const TensorRange &a, const TensorRange &b) { return a.name < b.name; });
  for (const TensorRange &tensor : tensors) {
    sum.add(tensor.name);
    sum.add(typeText(tensor.dtype, tensor.shape));
    sum.begin(tensor.bytes);
    give(tensor, [&](std::span<const std::byte> bytes) { sum.more(bytes); });
  }
  return sum.text();
}

static void giveFromFile(const SafetensorsFile &file, const TensorRange &tensor, const WriteBytes &write) {
  constexpr uint64_t pieceBytes = 1 << 20;
  Bytes piece;
  for (uint64_t at = 0; at < tensor.bytes; at += pieceBytes) {
    piece.resize(std::min(pieceBytes, tensor.bytes - at));
    file.read(tensor, at, piece);
    write(piece);
  }
}

void checkWhole(const SafetensorsFile &file, const std::string &name) {
  auto recorded = file.metadata().find(checksumKey);
  auto give = [&](const TensorRange &tensor, const WriteBytes &write) { giveFromFile(file, tensor, write); };
  if (recorded == file.metadata().end() || recorded->second != checksumOf(file.metadata(), file.tensors(), give))
    failInvalid(concat(name, ": its checksum does not fit its content"));
}

void loadStates(Instance &instance, const SafetensorsFile &file, const std::string &name) {
  for (const State &state : instance.plan().states)
    if (state.isKept())
      loadOneOf(instance, state, file, name);
}

/// Writes the states that `chosen` picks, and a checksum if the metadata asks for one.
template <typename Chosen>
static void writeStates(const Instance &instance, const std::string &path, Metadata metadata, Chosen chosen) {
  std::vector<TensorRange> tensors;
  for (const State &state : instance.plan().states)
    if (chosen(state))
      tensors.push_back({state.name, state.dtype, state.shape, 0, static_cast<uint64_t>(state.logicalBytes())});
  auto give = [&](const TensorRange &tensor, const WriteBytes &write) {
    instance.getState(instance.state(tensor.name), write);
  };
  if (metadata.count(checksumKey))
    metadata[checksumKey] = checksumOf(metadata, tensors, give);
  writeSafetensors(path, std::move(tensors), metadata, give);
}

void saveWeights(const Instance &instance, const std::string &path) {
  writeStates(instance, path, {{"format", "pt"}}, [](const State &state) { return state.isWeight(); });
}

void saveStates(const Instance &instance, const std::string &path, Metadata metadata) {
  metadata[checksumKey]; // filled in when the states are written
  writeStates(instance, path, std::move(metadata), [](const State &state) { return state.isKept(); });
}

} // namespace sluice::runtime
