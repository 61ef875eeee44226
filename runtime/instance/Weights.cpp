#include "runtime/instance/Weights.h"

#include "runtime/base/Status.h"
#include "runtime/base/Text.h"
#include "runtime/io/Blocks.h"
#include "runtime/io/Convert.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <iterator>
#include <map>
#include <unordered_set>
#include <zlib.h>

namespace sluice::runtime {

void loadState(Instance &instance, const State &state, const TensorSource &source) {
  instance.setState(state, source.as(state.dtype, state.shape).read);
}

namespace {
struct OpenWeights {
  const std::string &path;
  std::shared_ptr<const SafetensorsFile> file;
};
} // namespace

//===- tied parameters --------------------------------------------------------------------------------------------===//

/// Whether two tensors have the same bytes.
static bool isEqual(const TensorSource &a, const TensorSource &b) {
  bool equal = a.dtype == b.dtype && a.shape == b.shape;
  size_t at = 0;
  if (equal)
    a.give([&](std::span<const std::byte> piece) {
      Bytes other(piece.size());
      b.read(at, other);
      equal = equal && std::ranges::equal(piece, other);
      at += piece.size();
    });
  return equal;
}

/// The tensor of a state, by its name or, for a shared parameter, by an alias; all tensors with these names must be
/// equal.
static TensorSource findTensor(const State &state, const OpenWeights &weights) {
  std::vector<std::string> names{state.name}, found;
  names.insert(names.end(), state.aliases.begin(), state.aliases.end());
  std::ranges::copy_if(names, std::back_inserter(found),
                       [&](const std::string &name) { return weights.file->find(name); });
  if (found.empty())
    failInvalid(concat(weights.path, ": has no ", quote(state.name), ", which the model needs"));
  TensorSource first = sourceIn(weights.file, weights.path, found.front());
  for (const std::string &other : std::span(found).subspan(1))
    if (!isEqual(first, sourceIn(weights.file, weights.path, other)))
      failInvalid(concat(weights.path, ": ", quote(found.front()), " and ", quote(other),
                         " differ, but are one parameter of the model"));
  return first;
}

//===- files of transformers --------------------------------------------------------------------------------------===//

/// Whether the state is a weight that transformers' GPT-2 stores as [in, out] (Conv1D); Linear stores [out, in].
static bool mayBeTransposed(const State &state) {
  if (state.kind != StateKind::parameter || state.shape.size() != 2)
    return false;
  std::string dotted = "." + state.name;
  return std::ranges::any_of(std::array{".c_attn.weight", ".q_attn.weight", ".c_proj.weight", ".c_fc.weight"},
                             [&](const char *end) { return dotted.ends_with(end); });
}

/// Whether a file stores these weights transposed. The non-square weights decide for the square ones.
static bool isTransposed(const Plan &plan, const OpenWeights &weights) {
  const TensorRange *straight = nullptr, *transposed = nullptr;
  for (const State &state : plan.states) {
    const TensorRange *tensor = mayBeTransposed(state) ? weights.file->find(state.name) : nullptr;
    if (!tensor || state.shape[0] == state.shape[1])
      continue;
    if (tensor->shape == state.shape)
      straight = tensor;
    else if (tensor->shape == Shape{state.shape[1], state.shape[0]})
      transposed = tensor;
  }
  if (straight && transposed)
    failInvalid(concat(weights.path, ": ", quote(transposed->name), " is transposed and ", quote(straight->name),
                       " is not; a file has all such weights of GPT-2 as [in, out] or as [out, in]"));
  return transposed;
}

/// The transpose of a matrix, in memory.
static TensorSource transposed(const TensorSource &source) {
  if (source.shape.size() != 2)
    return source;
  Bytes stored(source.bytes());
  source.read(0, stored);
  auto turned = std::make_shared<Bytes>(stored.size());
  size_t size = sizeOf(source.dtype), rows = static_cast<size_t>(source.shape[0]),
         columns = static_cast<size_t>(source.shape[1]);
  for (size_t row = 0; row < rows; ++row)
    for (size_t column = 0; column < columns; ++column)
      std::memcpy(&(*turned)[(column * rows + row) * size], &stored[(row * columns + column) * size], size);
  return sourceOf(source.what, source.dtype, {source.shape[1], source.shape[0]}, turned);
}

/// Whether no model needs the tensor: PyTorch's batch counters of batch norms, and the attention mask of transformers'
/// GPT-2.
static bool isIgnored(const TensorRange &tensor) {
  bool isMask = tensor.shape.size() == 4 && tensor.shape[0] == 1 && tensor.shape[1] == 1;
  return tensor.name.ends_with("num_batches_tracked") || (tensor.name.ends_with(".attn.bias") && isMask) ||
         (tensor.name.ends_with(".attn.masked_bias") && elementsOf(tensor.shape) == 1);
}

//===- weights ----------------------------------------------------------------------------------------------------===//

namespace {
/// Counts the tensors whose type differs from the model's.
class OtherTypes {
public:
  void add(DType from, DType to) {
    if (from != to)
      ++counts_[{from, concat(conversion(from, to) ? "widened to " : "rounded to ", nameOf(to))}];
  }
  void addQuantized(DType from) { ++counts_[{from, "quantized to q8_0"}]; }

  std::vector<std::string> lines(const std::string &path) const {
    std::vector<std::string> lines;
    for (const auto &[change, count] : counts_)
      lines.push_back(concat(path, ": ", count, count == 1 ? " tensor of " : " tensors of ", nameOf(change.first),
                             count == 1 ? " is " : " are ", change.second));
    return lines;
  }

private:
  std::map<std::pair<DType, std::string>, int64_t> counts_; // by the type in the file, and its change
};
} // namespace

static BlockShape blockShapeOf(const State &state, const State &scales) {
  return *BlockShape::of(state.shape, scales.shape); // which reading the plan has checked
}

/// Sets a parameter in blocks of bytes, and its scales, from a tensor of floats.
static void loadBlocks(Instance &instance, const State &state, const State &scales, const TensorSource &source) {
  Blocks blocks = quantize(source.roundedTo(DType::f32, state.shape), blockShapeOf(state, scales));
  instance.setState(state, blocks.elements);
  instance.setState(scales, blocks.scales);
}

/// The f32 values of a parameter in blocks of bytes.
static Bytes valuesOfBlocks(const Instance &instance, const State &state, const State &scales) {
  Blocks blocks{Bytes(static_cast<size_t>(state.logicalBytes())), Bytes(static_cast<size_t>(scales.logicalBytes()))};
  instance.getState(state, blocks.elements);
  instance.getState(scales, blocks.scales);
  return dequantize(blocks, blockShapeOf(state, scales));
}

std::vector<std::string> loadWeights(Instance &instance, const std::string &path) {
  OpenWeights weights{path, std::make_shared<const SafetensorsFile>(path)};
  const Plan &plan = instance.plan();
  std::vector<std::string> names;
  for (const State &state : plan.states)
    if (state.isKept()) {
      names.push_back(state.name);
      names.insert(names.end(), state.aliases.begin(), state.aliases.end());
    }
  std::unordered_set<std::string_view> known(names.begin(), names.end());
  for (const TensorRange &tensor : weights.file->tensors())
    if (!known.contains(tensor.name) && !isIgnored(tensor))
      failInvalid(concat(path, ": has a tensor ", quote(tensor.name), ", which the model does not have",
                         didYouMean(tensor.name, names)));
  bool turns = isTransposed(plan, weights);
  OtherTypes types;
  for (const State &state : plan.states)
    if (state.isWeight()) {
      TensorSource source = findTensor(state, weights);
      TensorSource straight = turns && mayBeTransposed(state) ? transposed(source) : source;
      if (const State *scales = plan.scalesOf(state)) {
        types.addQuantized(source.dtype);
        loadBlocks(instance, state, *scales, straight);
        continue;
      }
      types.add(source.dtype, state.dtype);
      loadState(instance, state, straight.roundedTo(state.dtype, state.shape));
    }
  return types.lines(path);
}

static constexpr const char *checksumKey = "sluice.crc32";

namespace {

/// A CRC-32 of strings and bytes, each prefixed by its length.
class Checksum {
public:
  void begin(uint64_t size) { more(std::as_bytes(std::span(&size, 1))); }
  void more(std::span<const std::byte> bytes) {
    if (!bytes.empty()) // zlib resets the sum for a null address
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

/// The checksum of a file: of its metadata without the checksum, then of the tensors by name. `give` passes a tensor's
/// bytes to a function.
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

/// The file, borrowed from its owner.
static OpenWeights lent(const SafetensorsFile &file, const std::string &name) {
  return {name, std::shared_ptr<const SafetensorsFile>(std::shared_ptr<void>(), &file)};
}

void checkWhole(const SafetensorsFile &file, const std::string &name) {
  auto recorded = file.metadata().find(checksumKey);
  auto give = [&](const TensorRange &tensor, const WriteBytes &write) {
    sourceIn(lent(file, name).file, name, tensor.name).give(write);
  };
  if (recorded == file.metadata().end() || recorded->second != checksumOf(file.metadata(), file.tensors(), give))
    failInvalid(concat(name, ": its checksum does not fit its content"));
}

void loadStates(Instance &instance, const SafetensorsFile &file, const std::string &name) {
  for (const State &state : instance.plan().states)
    if (state.isKept())
      loadState(instance, state, findTensor(state, lent(file, name)));
}

/// Writes the states that `chosen` selects. `elements` maps the name of a state to the name of the state whose elements
/// are written. A parameter in blocks is written as f32 unless its scales are written too. Sets the checksum if the
/// metadata has a key for it.
template <typename Chosen, typename Elements>
static void writeStates(const Instance &instance, const std::string &path, Metadata metadata, Chosen chosen,
                        Elements elements) {
  const Plan &plan = instance.plan();
  auto scalesOf = [&](const State &state) -> const State * {
    const State *scales = plan.scalesOf(state);
    return scales && !chosen(*scales) ? scales : nullptr;
  };
  std::vector<TensorRange> tensors;
  for (const State &state : plan.states)
    if (chosen(state)) {
      DType dtype = scalesOf(state) ? DType::f32 : state.dtype;
      tensors.push_back({state.name, dtype, state.shape, 0, static_cast<uint64_t>(state.elements()) * sizeOf(dtype)});
    }
  auto give = [&](const TensorRange &tensor, const WriteBytes &write) {
    const State &state = instance.state(elements(tensor.name));
    if (const State *scales = scalesOf(state))
      return write(valuesOfBlocks(instance, state, *scales));
    instance.getState(state, write);
  };
  if (metadata.count(checksumKey))
    metadata[checksumKey] = checksumOf(metadata, tensors, give);
  writeSafetensors(path, std::move(tensors), metadata, give);
}

static const std::string &itself(const std::string &name) { return name; }

void saveWeights(const Instance &instance, const std::string &path) {
  writeStates(instance, path, {{"format", "pt"}}, std::mem_fn(&State::isWeight), itself);
}

/// The name of the state with a parameter's average.
static std::string averageOf(const std::string &name) { return name + ".ema"; }

bool hasAverages(const Plan &plan) {
  return std::ranges::any_of(plan.states, [&](const State &state) {
    return state.kind == StateKind::slot && !state.of.empty() && state.name == averageOf(state.of);
  });
}

void saveAverages(const Instance &instance, const std::string &path) {
  writeStates(instance, path, {{"format", "pt"}}, std::mem_fn(&State::isWeight), [&](const std::string &name) {
    std::string average = averageOf(name);
    return instance.plan().findState(average) ? average : name;
  });
}

void saveStates(const Instance &instance, const std::string &path, Metadata metadata) {
  metadata[checksumKey]; // set when the states are written
  writeStates(instance, path, std::move(metadata), std::mem_fn(&State::isKept), itself);
}

} // namespace sluice::runtime
