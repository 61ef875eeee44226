#include "runtime/runner/Weights.h"

#include "runtime/Status.h"
#include "runtime/Text.h"

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

/// Over the tensors' bytes, in the order given.
static std::string checksumOf(const std::vector<Tensor> &tensors) {
  uLong sum = crc32_z(0, nullptr, 0);
  for (const Tensor &tensor : tensors)
    sum = crc32_z(sum, reinterpret_cast<const Bytef *>(tensor.data.data()), tensor.data.size());
  return std::to_string(sum);
}

/// The tensors of a file in the order of the plan's states.
static std::vector<Tensor> tensorsOf(const Plan &plan, const Safetensors &file) {
  std::vector<Tensor> tensors;
  for (const State &state : plan.states)
    if (const Tensor *tensor = file.find(state.name))
      tensors.push_back(*tensor);
  return tensors;
}

void loadStates(Instance &instance, const Safetensors &file, const std::string &name) {
  auto recorded = file.metadata().find(checksumKey);
  if (recorded == file.metadata().end() || recorded->second != checksumOf(tensorsOf(instance.plan(), file)))
    failInvalid(concat(name, ": its checksum does not fit its data"));
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
    metadata[checksumKey] = checksumOf(tensors);
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
