#include "runtime/io/ForeignWeights.h"

#include "runtime/base/Text.h"

#include <algorithm>
#include <string_view>

namespace sluice::runtime {

using namespace std::string_view_literals;

namespace {
/// A file format, recognized by its first bytes.
struct Format {
  std::string_view magic, what;
  std::string_view advice; ///< @ is replaced by the file's name
};
} // namespace

static constexpr std::string_view fromTorch = "convert it in Python: safetensors.torch.save_file(torch.load(\"@\", "
                                              "map_location=\"cpu\"), \"weights.safetensors\")";
static constexpr std::string_view fromNpz =
    "convert it in Python: safetensors.numpy.save_file(dict(numpy.load(\"@\")), \"weights.safetensors\")";

static constexpr Format formats[] = {
    {"\x93NUMPY"sv, "is an npy array, which is one tensor without a name",
     "convert it in Python: safetensors.numpy.save_file({\"NAME\": numpy.load(\"@\")}, \"weights.safetensors\")"},
    {"\x89HDF"sv, "is an HDF5 file, as Keras writes",
     "convert it in Python: safetensors.numpy.save_file({name: array, ...}, \"weights.safetensors\"), with the arrays "
     "that "
     "h5py reads"},
    {"GGUF"sv, "is a GGUF file, as llama.cpp reads", "take the safetensors files that it was made from"},
};

/// The name of the first member of a zip archive.
static std::string_view firstMember(std::string_view start) {
  constexpr size_t lengthAt = 26, nameAt = 30;
  if (start.size() < nameAt)
    return {};
  size_t length = static_cast<unsigned char>(start[lengthAt]) + 256U * static_cast<unsigned char>(start[lengthAt + 1]);
  return start.substr(nameAt, length);
}

static Format zipFormat(std::string_view start) {
  if (firstMember(start).ends_with(".npy"))
    return {{}, "is an npz archive of NumPy", fromNpz};
  if (firstMember(start).find('/') != std::string_view::npos) // "archive/data.pkl"
    return {{}, "is a zip archive as torch.save writes", fromTorch};
  return {{}, "is a zip archive", "unpack it"};
}

static Format jsonFormat(std::string_view start) {
  if (start.find("\"weight_map\"") == std::string_view::npos)
    return {{}, "is a JSON text", "give the safetensors file with the weights, which may be in the same folder"};
  return {{},
          "is the index of weights in several files",
          "convert it in Python: tensors = {}; [tensors.update(safetensors.torch.load_file(f)) for f in "
          "glob.glob(\"*-of-*.safetensors\")]; "
          "safetensors.torch.save_file(tensors, \"weights.safetensors\")"};
}

/// Whether the file begins like a pickle of a binary protocol.
static bool isPickle(std::string_view start) {
  return start.size() > 2 && start[0] == '\x80' && start[1] >= 2 && start[1] <= 5;
}

/// Whether the file begins with the ONNX version as a protobuf field, followed by the producer's name. The version may
/// precede another field, so a name that ends in .onnx also counts.
static bool isOnnx(std::string_view start, const std::string &name) {
  bool isVersioned = start.size() > 3 && start[0] == '\x08' && start[1] > 0 && start[1] < 32 && start[2] == '\x12';
  return isVersioned || name.ends_with(".onnx");
}

static Format formatOf(std::string_view start, const std::string &name) {
  if (start.starts_with("PK\x03\x04"))
    return zipFormat(start);
  if (start.starts_with("{"))
    return jsonFormat(start);
  if (isPickle(start))
    return {{}, "is a pickle, as torch.save of old versions writes", fromTorch};
  if (isOnnx(start, name))
    return {{},
            "is an ONNX model",
            "convert it in Python: safetensors.numpy.save_file({t.name: onnx.numpy_helper.to_array(t) for t in "
            "onnx.load(\"@\").graph.initializer}, \"weights.safetensors\"), with the names of the model's parameters"};
  const Format *found =
      std::ranges::find_if(formats, [&](const Format &format) { return start.starts_with(format.magic); });
  return found == std::end(formats) ? Format{} : *found;
}

std::string foreignFormat(std::span<const std::byte> start, const std::string &name) {
  Format format = formatOf({reinterpret_cast<const char *>(start.data()), start.size()}, name);
  if (format.what.empty())
    return {};
  std::string advice(format.advice);
  if (size_t at = advice.find('@'); at != std::string::npos)
    advice.replace(at, 1, name);
  return concat(format.what, ", not a safetensors file; ", advice);
}

} // namespace sluice::runtime
