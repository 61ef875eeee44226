#include "tests/onnx/Case.h"

#include "frontend/graph/GraphImpl.h"
#include "frontend/onnx/File.h"
#include "frontend/onnx/file/Wire.h"
#include "frontend/onnx/import/Importer.h"
#include "sluice/backend/halves.h"
#include "sluice/compile.h"
#include "sluice/sluice.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <iomanip>
#include <optional>
#include <sstream>

namespace sluice::onnx_test {

namespace fs = std::filesystem;
using onnx::ElementType;
using onnx::Known;
using onnx::ValuePtr;

const char *nameOf(Outcome::Kind kind) {
  static constexpr const char *names[] = {"computed", "parameters", "folded", "wrong", "unsupported", "failed"};
  return names[int(kind)];
}

//===- files ------------------------------------------------------------------------------------------------------===//

namespace {

/// Tensors in memory that outlive their files.
struct Data {
  std::vector<std::optional<Known>> tensors; ///< nothing: not a tensor
};

} // namespace

static std::optional<Known> readTensor(const std::string &path) {
  auto file = std::make_shared<const runtime::MappedFile>(path);
  std::optional<Known> known;
  file->use([&](std::span<const std::byte> all) {
    std::string_view bytes(reinterpret_cast<const char *>(all.data()), all.size());
    try {
      known = onnx::file::Tensors(file, bytes, "").read(bytes);
    } catch (const onnx::Malformed &) { // a sequence, or strings
    }
  });
  return known;
}

static Data readData(const std::string &folder, const char *kind) {
  Data data;
  for (int number = 0;; ++number) {
    std::string path = folder + "/test_data_set_0/" + kind + "_" + std::to_string(number) + ".pb";
    if (!fs::exists(path))
      return data;
    data.tensors.push_back(readTensor(path));
  }
}

//===- comparison -------------------------------------------------------------------------------------------------===//

/// ONNX's own tolerance of elements near 0. The reference of the inverse DFT has errors of 2e-7 where the result is 0.
static double absoluteTolerance(const onnx::File &file) {
  return file.model().graph.name.starts_with("test_dft_inverse") ? 3e-7 : 1e-7;
}

static bool agree(double y, double expected, double absolute) {
  if (std::isnan(expected) || std::isnan(y))
    return std::isnan(expected) && std::isnan(y);
  return y == expected || std::abs(y - expected) <= absolute + 1e-3 * std::abs(expected);
}

/// Whether outputs of a case are random, so that only their types and dimensions can agree.
static bool isRandom(const onnx::File &file) {
  static constexpr std::string_view kRandom[] = {"Bernoulli", "Multinomial", "RandomNormalLike", "RandomUniformLike"};
  std::string_view name = file.model().graph.name;
  return name == "test_training_dropout" || name == "test_training_dropout_mask" ||
         name == "test_training_dropout_default" || name == "test_training_dropout_default_mask" ||
         std::ranges::any_of(file.model().graph.nodes, [](const onnx::file::Node &node) {
           return std::ranges::find(kRandom, node.op) != std::end(kRandom);
         });
}

static std::string numberText(double number) {
  std::ostringstream text;
  text << std::setprecision(9) << number;
  return text.str();
}

/// What follows the elements of an output whose number is computed: a graph has the greatest possible number.
static std::optional<double> paddingOf(const onnx::File &file, size_t output) {
  for (const onnx::file::Node &node : file.model().graph.nodes)
    if (node.op == "NonMaxSuppression" || node.op == "TopK")
      return node.op == "TopK" && output == 0 ? 0 : -1; // values, and indices
  return std::nullopt;
}

/// The first elements along each dimension, as many as expected; nothing if there are fewer, or if the others are not
/// the padding.
static std::optional<Known> cropped(const Known &y, const Known &expected, double padding) {
  const onnx::Dims &dims = y.dims(), &to = expected.dims();
  if (dims.size() != to.size())
    return std::nullopt;
  std::vector<int64_t> from;
  for (int64_t i = 0; i < y.count(); ++i) {
    bool isInside = true;
    int64_t rest = i;
    for (size_t axis = dims.size(); axis-- > 0; rest /= dims[axis])
      isInside = isInside && rest % dims[axis] < to[axis];
    if (isInside)
      from.push_back(i);
    else if (y.real(i) != padding)
      return std::nullopt;
  }
  return int64_t(from.size()) == expected.count() ? std::optional(y.taking(to, from)) : std::nullopt;
}

static std::string difference(const Known &y, const Known &expected, size_t output, const onnx::File &file) {
  std::string what = "output " + std::to_string(output) + ": ";
  if (y.dims() != expected.dims()) {
    std::optional<double> padding = paddingOf(file, output);
    std::optional<Known> first = padding ? cropped(y, expected, *padding) : std::nullopt;
    return first ? difference(*first, expected, output, file) : what + "other dimensions";
  }
  if (y.type() != expected.type())
    return what + "type " + onnx::nameOf(y.type()) + ", not " + onnx::nameOf(expected.type());
  for (int64_t i = 0; i < y.count() && !isRandom(file); ++i)
    if (onnx::isFloat(y.type()) ? !agree(y.real(i), expected.real(i), absoluteTolerance(file))
                                : y.integer(i) != expected.integer(i))
      return what + "element " + std::to_string(i) + " is " + numberText(y.real(i)) + ", not " +
             numberText(expected.real(i));
  return {};
}

//===- programs ---------------------------------------------------------------------------------------------------===//

template <class T> static void setInput(Program &program, const std::string &name, const runtime::TensorSource &from) {
  std::vector<T> values(from.bytes() / sizeof(T));
  from.read(0, std::as_writable_bytes(std::span(values)));
  program.set_input(name, std::span<const T>(values));
}

static void setInput(Program &program, const std::string &name, const Known &known) {
  runtime::TensorSource source = known.source(name);
  switch (DType(source.dtype)) {
  case DType::f32:
    return setInput<float>(program, name, source);
  case DType::f64:
    return setInput<double>(program, name, source);
  case DType::f16:
    return setInput<sluice_f16>(program, name, source);
  case DType::bf16:
    return setInput<sluice_bf16>(program, name, source);
  case DType::i32:
    return setInput<int32_t>(program, name, source);
  case DType::i64:
    return setInput<int64_t>(program, name, source);
  case DType::u8:
    return setInput<uint8_t>(program, name, source);
  case DType::boolean: {
    std::vector<std::byte> bytes(source.bytes());
    source.read(0, bytes);
    std::vector<bool> values;
    for (std::byte byte : bytes)
      values.push_back(byte != std::byte(0));
    return program.set_input(name, values);
  }
  }
}

template <class T>
static Known outputOf(Program &program, const std::string &name, ElementType type, const onnx::Dims &dims) {
  std::vector<T> values = program.output<T>(name);
  std::vector<double> reals;
  for (T value : values)
    reals.push_back(double(value));
  return Known::ofReals(type, dims, reals);
}

static Known outputOf(Program &program, const std::string &name, DType dtype, ElementType type,
                      const onnx::Dims &dims) {
  switch (dtype) {
  case DType::f32:
    return outputOf<float>(program, name, type, dims);
  case DType::f64:
    return outputOf<double>(program, name, type, dims);
  case DType::f16:
    return outputOf<sluice_f16>(program, name, type, dims);
  case DType::bf16:
    return outputOf<sluice_bf16>(program, name, type, dims);
  case DType::i32:
    return outputOf<int32_t>(program, name, type, dims);
  case DType::i64: {
    std::vector<int64_t> values = program.output<int64_t>(name);
    return Known::ofIntegers(type, dims, values);
  }
  case DType::u8:
    return outputOf<uint8_t>(program, name, type, dims);
  case DType::boolean:
    return outputOf<bool>(program, name, type, dims);
  }
  return Known::scalar(0);
}

namespace {

/// A case with some inputs known when the model is imported.
class Attempt {
public:
  Attempt(onnx::File &file, const Data &inputs, const Data &expected)
      : file(file), inputs(inputs), expected(expected) {}

  /// `areKnown`: of each input.
  Outcome run(const std::vector<bool> &areKnown) {
    Graph graph("case");
    std::vector<std::pair<std::string, const Known *>> passed;
    std::vector<ValuePtr> results;
    Outcome refused{Outcome::Kind::unsupported, ""};
    file.use({}, [&] { results = import(graph, areKnown, passed, refused); });
    if (results.empty())
      return refused;
    return compareAll(graph, results, passed);
  }

private:
  /// The dimension "batch" of the file is the batch; all others have the sizes of the data.
  Shape shapeOf(const onnx::file::ValueInfo &input, const Known &known) {
    std::vector<Dim> dims(known.dims().begin(), known.dims().end());
    for (size_t i = 0; input.shape && i < dims.size() && i < input.shape->size(); ++i) {
      if ((*input.shape)[i].name != "batch")
        continue;
      rows = known.dims()[i];
      dims[i] = Dim("batch");
    }
    return Shape(dims);
  }

  std::vector<ValuePtr> import(Graph &graph, const std::vector<bool> &areKnown,
                               std::vector<std::pair<std::string, const Known *>> &passed, Outcome &refused) {
    std::map<std::string, ValuePtr, std::less<>> values;
    for (size_t i = 0; i < inputs.tensors.size(); ++i) {
      const Known &known = *inputs.tensors[i];
      std::string name = "x" + std::to_string(i);
      ValuePtr value;
      if (areKnown[i]) {
        value = valueOf(known);
      } else {
        Shape shape = shapeOf(file.inputs()[i], known);
        value = valueOf(graph.input(name, *onnx::heldAs(known.type()), shape), known.type());
        passed.emplace_back(name, &known);
      }
      values.emplace(file.inputs()[i].name, value);
    }
    std::vector<std::string> names;
    for (const onnx::file::ValueInfo &output : file.model().graph.outputs)
      names.emplace_back(output.name);
    std::map<std::string, int> made;
    auto makeState = [&](const char *kind, const std::string &own, const Known &known) {
      std::string name = own + "_" + std::to_string(++made[own]);
      struct Holder : nn::Module {
        using Module::Module;
        using Module::importedState;
      } holder(graph);
      init::Init data{.kind = init::Init::Kind::data};
      data.source = std::make_shared<const runtime::TensorSource>(known.source(name));
      Shape shape(std::vector<Dim>(known.dims().begin(), known.dims().end()));
      return holder.importedState(kind, name, *onnx::heldAs(known.type()), shape, data,
                                  std::source_location::current());
    };
    onnx::Importer importer(graph, file.model(), file.tensors(), makeState);
    std::vector<ValuePtr> results = importer.run(values, names);
    refused.reason = importer.problemText();
    if (!refused.reason.empty())
      return {};
    for (size_t i = 0; i < results.size(); ++i) {
      if (results[i]->known())
        continue;
      ValuePtr &result = results[i];
      ElementType type = result->type;
      result = valueOf(importer.tensorOf(result, false), type);
      graph.output("y" + std::to_string(i), *result->tensor());
    }
    std::erase_if(passed, [&](const auto &input) { return !isRead(values, input.second); });
    return results;
  }

  /// Whether an op reads an input. Programs have no other inputs.
  bool isRead(const std::map<std::string, ValuePtr, std::less<>> &values, const Known *known) const {
    for (size_t i = 0; i < inputs.tensors.size(); ++i)
      if (known == &*inputs.tensors[i])
        return !detail::Access::value(*values.find(file.inputs()[i].name)->second->tensor()).use_empty();
    return true;
  }

  Outcome compareAll(const Graph &graph, const std::vector<ValuePtr> &results,
                     const std::vector<std::pair<std::string, const Known *>> &passed) {
    std::optional<Program> program;
    bool isFolded = std::all_of(results.begin(), results.end(), [](const ValuePtr &value) { return value->known(); });
    if (!isFolded) {
      program.emplace(compile(graph));
      program->seed(0);
      program->run("init", 1);
      for (const auto &[name, known] : passed)
        setInput(*program, name, *known);
      program->run("predict", rows);
    }
    for (size_t i = 0; i < results.size() && i < expected.tensors.size(); ++i) {
      const ValuePtr &value = results[i];
      if (value->sizes())
        return {Outcome::Kind::failed, "an output depends on rows"};
      Known y = value->known() ? *value->known()
                               : outputOf(*program, "y" + std::to_string(i), value->tensor()->dtype(), value->type,
                                          dimsOf(*value));
      if (std::string text = difference(y, *expected.tensors[i], i, file); !text.empty())
        return {Outcome::Kind::wrong, text};
    }
    return {isFolded ? Outcome::Kind::folded : Outcome::Kind::computed, ""};
  }

  onnx::Dims dimsOf(const onnx::Value &value) const {
    onnx::Dims dims;
    for (const onnx::Size &size : value.shape())
      dims.push_back(size.constant + size.rows * rows);
    return dims;
  }

  onnx::File &file;
  const Data &inputs, &expected;
  int64_t rows = 1; ///< of the batch
};

} // namespace

/// Tries all inputs at run time; then those that are integers, or small, as known; then all as known.
static Outcome attempt(onnx::File &file, const Data &inputs, const Data &expected) {
  Attempt runs(file, inputs, expected);
  std::vector<bool> areKnown(inputs.tensors.size(), false);
  for (size_t i = 0; i < areKnown.size(); ++i)
    areKnown[i] = inputs.tensors[i]->count() == 0;
  Outcome first = runs.run(areKnown);
  if (first.kind != Outcome::Kind::unsupported)
    return first;
  for (size_t i = 1; i < areKnown.size(); ++i)
    areKnown[i] = areKnown[i] || !onnx::isFloat(inputs.tensors[i]->type());
  for (bool withFloats : {false, true}) {
    for (size_t i = 1; withFloats && i < areKnown.size(); ++i)
      areKnown[i] = true;
    Outcome outcome = runs.run(areKnown);
    if (outcome.kind == Outcome::Kind::computed)
      outcome.kind = Outcome::Kind::parameters;
    if (outcome.reason.empty())
      outcome.reason = first.reason;
    if (outcome.kind != Outcome::Kind::unsupported)
      return outcome;
  }
  areKnown.assign(areKnown.size(), true);
  Outcome last = runs.run(areKnown);
  if (last.reason.empty())
    last.reason = first.reason;
  return last.kind == Outcome::Kind::unsupported ? first : last;
}

/// The input of a whole model: element i of n is i / n.
static std::optional<Known> rampFor(const onnx::file::ValueInfo &input) {
  onnx::Dims dims;
  for (const onnx::file::Dimension &dimension : *input.shape)
    dims.push_back(dimension.size.value_or(1));
  std::vector<double> values(static_cast<size_t>(onnx::countOf(dims)));
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = double(i) / double(values.size());
  return Known::ofReals(input.type, dims, values);
}

static Outcome runFolder(const std::string &folder) {
  onnx::File file(folder + "/model.onnx", "", {});
  Data inputs = readData(folder, "input"), expected = readData(folder, "output");
  for (const std::optional<Known> &input : inputs.tensors)
    if (!input || !onnx::heldAs(input->type()))
      return {Outcome::Kind::unsupported,
              input ? "an input of type " + onnx::nameOf(input->type()) : "an input that is not a tensor of numbers"};
  for (const std::optional<Known> &output : expected.tensors)
    if (!output)
      return {Outcome::Kind::unsupported, "an output that is not a tensor of numbers"};
  if (inputs.tensors.size() > file.inputs().size())
    return {Outcome::Kind::failed, "more inputs than the model has"};
  return attempt(file, inputs, expected);
}

/// A model without a folder; its output is in a file beside it.
static Outcome runFile(const std::string &path) {
  onnx::File file(path, "", {});
  Data inputs, expected;
  for (const onnx::file::ValueInfo &input : file.inputs())
    inputs.tensors.push_back(rampFor(input));
  expected.tensors.push_back(readTensor(path.substr(0, path.size() - 5) + "_output_0.pb"));
  return attempt(file, inputs, expected);
}

Outcome runCase(const std::string &path) {
  try {
    return fs::is_directory(path) ? runFolder(path) : runFile(path);
  } catch (const Error &error) {
    return {Outcome::Kind::failed, "code " + std::to_string(error.code()) + ": " + error.message()};
  } catch (const std::exception &error) {
    return {Outcome::Kind::failed, error.what()};
  }
}

} // namespace sluice::onnx_test
