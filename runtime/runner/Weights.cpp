#include "runtime/runner/Weights.h"

#include "runtime/Status.h"
#include "runtime/Text.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <zlib.h>

namespace sluice::runtime {

using Tensor = Safetensors::Tensor;

static Bytes widened(std::span<const std::byte> floats) {
  Bytes doubles(floats.size() * 2);
  for (size_t i = 0; i < floats.size() / sizeof(float); ++i) {
    float narrow;
    std::memcpy(&narrow, floats.data() + i * sizeof narrow, sizeof narrow);
    double wide = narrow;
    std::memcpy(doubles.data() + i * sizeof wide, &wide, sizeof wide);
  }
  return doubles;
}

static void loadState(Instance &instance, const State &state, const Tensor &tensor, const std::string &file) {
  bool widens = state.dtype == DType::f64 && tensor.dtype == DType::f32;
  if (tensor.shape != state.shape || (tensor.dtype != state.dtype && !widens))
    failInvalid(concat(file, ": ", quote(state.name), " is ", typeText(tensor.dtype, tensor.shape),
                       ", but the model has ", typeText(state.dtype, state.shape)));
  if (widens)
    return instance.setState(state, widened(tensor.data));
  instance.setState(state, tensor.data);
}

static void loadOneOf(Instance &instance, const State &state, const Safetensors &file, const std::string &name) {
  const Tensor *tensor = file.find(state.name);
  if (!tensor)
    failInvalid(concat(name, ": has no ", quote(state.name), ", which the model needs"));
  loadState(instance, state, *tensor, name);
}

void loadWeights(Instance &instance, const std::string &path) {
  Safetensors file = readSafetensors(path);
  std::vector<std::string> names;
  for (const State &state : instance.plan().states)
    names.push_back(state.name);
  for (const Tensor &tensor : file.tensors()) {
    // PyTorch counts batches in every batch norm; nothing that is computed depends on it.
    bool known = instance.plan().findState(tensor.name) || tensor.name.ends_with("num_batches_tracked");
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

/// A CRC-32 of texts, numbers and bytes, each with its length before it.
class Checksum {
public:
  void add(std::span<const std::byte> bytes) {
    uint64_t size = bytes.size();
    sum_ = crc32_z(sum_, reinterpret_cast<const Bytef *>(&size), sizeof size);
    if (!bytes.empty()) // zlib takes no address for a beginning
      sum_ = crc32_z(sum_, reinterpret_cast<const Bytef *>(bytes.data()), bytes.size());
  }
  void add(const std::string &text) { add(std::as_bytes(std::span(text))); }
  std::string text() const { return std::to_string(sum_); }

private:
  uLong sum_ = 0;
};

} // namespace

/// Over all that a file says but the sum itself: metadata, then tensors by name.
static std::string checksumOf(const Metadata &metadata, std::vector<Tensor> tensors) {
  Checksum sum;
  for (const auto &[key, value] : metadata)
    if (key != checksumKey) {
      sum.add(key);
      sum.add(value);
    }
  std::sort(tensors.begin(), tensors.end(), [](const Tensor &a, const Tensor &b) { return a.name < b.name; });
  for (const Tensor &tensor : tensors) {
    sum.add(tensor.name);
    sum.add(typeText(tensor.dtype, tensor.shape));
    sum.add(tensor.data);
  }
  return sum.text();
}

void checkWhole(const Safetensors &file, const std::string &name) {
  auto recorded = file.metadata().find(checksumKey);
  if (recorded == file.metadata().end() || recorded->second != checksumOf(file.metadata(), file.tensors()))
    failInvalid(concat(name, ": its checksum does not fit its content"));
}

void loadStates(Instance &instance, const Safetensors &file, const std::string &name) {
  for (const State &state : instance.plan().states)
    loadOneOf(instance, state, file, name);
}

/// Writes the states that `chosen` picks.
template <typename Chosen>
static void writeStates(const Instance &instance, const std::string &path, Metadata metadata, Chosen chosen) {
  std::deque<Bytes> logical; // what the tensors are views of
  std::vector<Tensor> tensors;
  for (const State &state : instance.plan().states) {
    if (!chosen(state))
      continue;
    logical.emplace_back(static_cast<size_t>(state.logicalBytes()));
    instance.getState(state, logical.back());
    tensors.push_back({state.name, state.dtype, state.shape, logical.back()});
  }
  if (metadata.count(checksumKey))
    metadata[checksumKey] = checksumOf(metadata, tensors);
  writeSafetensors(path, std::move(tensors), metadata);
}

void saveWeights(const Instance &instance, const std::string &path) {
  writeStates(instance, path, {{"format", "pt"}}, [](const State &state) { return state.isWeight(); });
}

void saveStates(const Instance &instance, const std::string &path, Metadata metadata) {
  metadata[checksumKey]; // filled in once the tensors are gathered
  writeStates(instance, path, std::move(metadata), [](const State &) { return true; });
}

} // namespace sluice::runtime
