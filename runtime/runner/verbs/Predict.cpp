// `predict`: runs an entry point on npy files with any number of rows, one batch at a time.
#include "runtime/base/Status.h"
#include "runtime/base/Text.h"
#include "runtime/instance/Indices.h"
#include "runtime/instance/SizedEntries.h"
#include "runtime/io/Convert.h"
#include "runtime/io/Npy.h"
#include "runtime/runner/verbs/Verbs.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <tuple>

namespace sluice::runtime {

/// The shortest text that reads back as the same value.
static std::string numberText(DType type, double value) {
  if (type == DType::f64)
    return Json(value).dump();
  return isFloat(type) ? Json(static_cast<float>(value)).dump() : std::to_string(static_cast<int64_t>(value));
}

/// Standard input or output, as spelled in `--input` and `--output`.
static constexpr std::string_view standardStream = "-";

namespace {

/// Indices [begin, begin + count) of dimension `dim` of a tensor: one range of bytes in each of `outer` blocks, since
/// `dim` need not be the outermost dimension.
struct RowRange {
  int64_t outer = 1, blockBytes = 1, beginBytes = 0, bytes = 0;

  RowRange(const Shape &shape, int dim, size_t elementSize, int64_t begin, int64_t count) {
    int64_t inner = static_cast<int64_t>(elementSize);
    for (size_t i = 0; i < shape.size(); ++i)
      (static_cast<int>(i) < dim ? outer : inner) *= static_cast<int>(i) == dim ? 1 : shape[i];
    blockBytes = inner * shape[static_cast<size_t>(dim)];
    beginBytes = inner * begin;
    bytes = inner * count;
  }
};

/// The arrays of the files of inputs. A file may be a pipe, so it is read once until it is taken.
class InputArrays {
public:
  /// Reads "-" from the standard input.
  const HostTensor &of(const std::string &path) {
    auto [found, isNew] = arrays_.try_emplace(path);
    if (isNew)
      found->second = readNpyStream(path == standardStream ? "/dev/stdin" : path, nameOf(path));
    return found->second;
  }
  HostTensor take(const std::string &path) {
    of(path);
    return std::move(arrays_.extract(path).mapped());
  }
  /// The name of a file in messages.
  static std::string nameOf(const std::string &path) { return path == standardStream ? "standard input" : path; }

private:
  std::map<std::string, HostTensor> arrays_;
};

/// The shape that an input takes for an array: with any size in the dimension that counts rows.
Shape shapeTaken(const Value &value, const Shape &given) {
  Shape wanted = value.shape;
  if (value.rowsDim >= 0 && given.size() == wanted.size())
    wanted[static_cast<size_t>(value.rowsDim)] = given[static_cast<size_t>(value.rowsDim)];
  return wanted;
}

/// An input or output of the entry, with all its rows.
struct Binding {
  const Value *value;
  HostTensor tensor;
  std::string path; ///< the name in messages; for an output as spelled in `--output`, empty if it is printed
};

/// The files of the options `flag`, by the name of an input or output. Fails for unknown and repeated names.
std::vector<NamedText> filesOf(const char *flag, const std::vector<std::string> &texts, const Entry &entry,
                               const std::vector<Value> &values) {
  std::vector<std::string> names;
  for (const Value &value : values)
    names.push_back(value.name);
  std::vector<NamedText> files;
  for (const std::string &text : texts) {
    const NamedText &file = files.emplace_back(splitNamed(text, names, "=@"));
    if (std::ranges::find(names, file.name) == names.end())
      failUsage(concat(flag, ": entry point ", quote(entry.name), " has no ", quote(file.name),
                       didYouMean(file.name, names), " (it has: ", listed(names), ")"));
    if (std::ranges::count(files, file.name, &NamedText::name) > 1)
      failUsage(concat(flag, ": ", quote(file.name), " is given twice"));
  }
  return files;
}

class Prediction {
public:
  Prediction(const Options &options, Instance &instance, const Entry &entry, InputArrays &arrays)
      : options_(options), instance_(instance), entry_(entry), batch_(instance.plan().batch),
        inputFiles_(filesOf("--input", options.inputs, entry, entry.inputs)),
        outputFiles_(filesOf("--output", options.outputs, entry, entry.outputs)) {
    readInputs(arrays);
    makeOutputs();
  }

  /// Lines that must be equal in all processes.
  std::vector<NamedText> lines() const {
    std::string outputs;
    for (const Binding &output : outputs_)
      outputs += concat(outputs.empty() ? "" : ", ", output.value->name);
    return {{"the entry point", entry_.name}, {"the number of rows", std::to_string(rows_)}, {"the outputs", outputs}};
  }

  void run() {
    Progress progress(!options_.quiet && !options_.json);
    for (int64_t done = 0; done < rows_;) {
      int64_t rows = batch_ > 0 ? std::min(batch_, rows_ - done) : rows_;
      runRows(done, rows);
      done += rows;
      progress.update("predict", done, rows_, concat(done, "/", rows_));
    }
  }

  /// Writes the outputs to their files or prints them.
  void deliver() const {
    for (const Binding &output : outputs_)
      if (output.path == standardStream)
        printNpy(output.tensor);
      else if (!output.path.empty())
        writeNpy(output.path, output.tensor);
    if (options_.json)
      return printLine(json().dump());
    for (const Binding &output : outputs_)
      output.path.empty() ? print(output)
                          : talk(concat("wrote ", output.path == standardStream ? "the standard output" : output.path,
                                        ": ", typeText(output.tensor.dtype, output.tensor.shape)));
  }

private:
  static const NamedText *given(const std::vector<NamedText> &list, const std::string &name) {
    for (const NamedText &item : list)
      if (item.name == name)
        return &item;
    return nullptr;
  }

  void readInputs(InputArrays &arrays) {
    checkStreams();
    const Binding *counted = nullptr;
    for (const Value &value : entry_.inputs) {
      const NamedText *file = given(inputFiles_, value.name);
      if (!file && value.isUnread)
        continue;
      if (!file)
        failUsage(concat("--input: ", quote(value.name), " is missing: give ", value.name, "=@file.npy with ",
                         typeText(value.dtype, value.shape), value.rowsDim < 0 ? "" : " and any number of rows"));
      inputs_.push_back({&value, arrays.take(file->text), InputArrays::nameOf(file->text)});
    }
    for (Binding &input : inputs_) {
      checkInput(input);
      widen(input);
      if (input.value->rowsDim < 0)
        continue;
      int64_t rows = rowsOf(input);
      if (counted && rows != rows_)
        failInvalid(concat(input.path, ": has ", rows, " rows, but ", counted->path, " has ", rows_));
      rows_ = rows;
      counted = &input;
    }
    for (const Binding &input : inputs_) // the input files determine the rows
      checkIndices(instance_.plan(), *input.value, input.tensor.data.data(), {rows_, 0, rows_}, rows_);
  }

  void checkInput(const Binding &input) const {
    const Value &value = *input.value;
    bool isNarrower = conversion(input.tensor.dtype, value.dtype);
    bool isOfType = input.tensor.dtype == value.dtype || isNarrower;
    if (input.tensor.shape != shapeTaken(value, input.tensor.shape) || !isOfType)
      failInvalid(concat(input.path, ": is ", typeText(input.tensor.dtype, input.tensor.shape), ", but input ",
                         quote(value.name), " is ", typeText(value.dtype, value.shape),
                         value.rowsDim < 0 ? "" : concat(" with any number of rows in dimension ", value.rowsDim),
                         isOfType ? "" : "; a file has its input's type or a narrower one of its kind"));
    if (value.rowsDim >= 0 && input.tensor.shape[static_cast<size_t>(value.rowsDim)] % perRow(value) != 0)
      failInvalid(concat(input.path, ": dimension ", value.rowsDim, " has size ",
                         input.tensor.shape[static_cast<size_t>(value.rowsDim)], ", not a multiple of ",
                         perRow(value)));
  }

  /// Converts the elements to the input's type, by the rule for columns (DATA.md).
  static void widen(Binding &input) {
    HostTensor &tensor = input.tensor;
    Convert convert = conversion(tensor.dtype, input.value->dtype);
    if (!convert)
      return;
    int64_t count = elementsOf(tensor.shape);
    Bytes wide(static_cast<size_t>(count) * sizeOf(input.value->dtype));
    convert(tensor.data.data(), wide.data(), count);
    tensor = {input.value->dtype, tensor.shape, std::move(wide)};
  }

  /// Fails if a standard stream would carry several arrays.
  void checkStreams() const {
    for (const auto &[flag, list, stream] : {std::tuple("--input", &inputFiles_, "read from the standard input"),
                                             std::tuple("--output", &outputFiles_, "written to the standard output")}) {
      const NamedText *first = nullptr;
      for (const NamedText &item : *list) {
        if (item.text != standardStream)
          continue;
        if (first)
          failUsage(concat(flag, ": ", quote(first->name), " and ", quote(item.name), " are both ", stream));
        first = &item;
      }
    }
    bool prints = std::ranges::find(outputFiles_, standardStream, &NamedText::text) != outputFiles_.end();
    for (const auto &[flag, isGiven] : {std::pair("--json", options_.json), std::pair("--report", options_.report)})
      if (prints && isGiven)
        failUsage(concat("--output: ", flag, " prints to the standard output, too"));
  }

  /// The number of indices of the rows dimension that belong to one row.
  int64_t perRow(const Value &value) const {
    return value.shape[static_cast<size_t>(value.rowsDim)] / instance_.plan().capacity;
  }
  int64_t rowsOf(const Binding &input) const {
    return input.tensor.shape[static_cast<size_t>(input.value->rowsDim)] / perRow(*input.value);
  }

  void makeOutputs() {
    for (const Value &value : entry_.outputs) {
      const NamedText *file = given(outputFiles_, value.name);
      if (value.rowsDim < 0 && batch_ > 0 && rows_ > batch_ && (file || outputFiles_.empty()))
        failUnsupported(concat("output ", quote(value.name), " is one value for all rows, and ", rows_,
                               " rows exceed the model's capacity of ", batch_));
      HostTensor tensor{value.dtype, value.shape, {}};
      if (value.rowsDim >= 0)
        tensor.shape[static_cast<size_t>(value.rowsDim)] = rows_ * perRow(value);
      tensor.data.resize(static_cast<size_t>(elementsOf(tensor.shape)) * sizeOf(tensor.dtype));
      if (file || outputFiles_.empty())
        outputs_.push_back({&value, std::move(tensor), file ? file->text : ""});
    }
  }

  RowRange range(const Binding &binding, int64_t begin, int64_t rows) const {
    int64_t step = perRow(*binding.value);
    return {binding.tensor.shape, binding.value->rowsDim, sizeOf(binding.tensor.dtype), begin * step, rows * step};
  }

  void runRows(int64_t begin, int64_t rows) {
    for (const Binding &input : inputs_) {
      if (input.value->isUnread)
        continue;
      if (input.value->rowsDim < 0) {
        instance_.setInput(*input.value, input.tensor.data, rows);
        continue;
      }
      RowRange part = range(input, begin, rows);
      Bytes data(static_cast<size_t>(part.outer * part.bytes));
      for (int64_t i = 0; i < part.outer; ++i)
        std::memcpy(data.data() + i * part.bytes, input.tensor.data.data() + i * part.blockBytes + part.beginBytes,
                    static_cast<size_t>(part.bytes));
      instance_.setInput(*input.value, data, rows);
    }
    instance_.run(entry_, rows);
    for (Binding &output : outputs_) {
      Bytes data(static_cast<size_t>(instance_.bytesFor(*output.value, rows)));
      instance_.getOutput(*output.value, data, rows);
      if (output.value->rowsDim < 0) {
        output.tensor.data = std::move(data);
        continue;
      }
      RowRange part = range(output, begin, rows);
      for (int64_t i = 0; i < part.outer; ++i)
        std::memcpy(output.tensor.data.data() + i * part.blockBytes + part.beginBytes, data.data() + i * part.bytes,
                    static_cast<size_t>(part.bytes));
    }
  }

  Json json() const {
    Json result;
    result["rows"] = rows_;
    for (const Binding &output : outputs_) {
      Json &entry = result["outputs"][output.value->name];
      entry["dtype"] = nameOf(output.tensor.dtype);
      entry["shape"] = output.tensor.shape;
      if (!output.path.empty()) {
        entry["file"] = output.path;
        continue;
      }
      entry["values"] = Json::array();
      for (int64_t i = 0; i < elementsOf(output.tensor.shape); ++i)
        entry["values"].push_back(elementAsDouble(output.tensor.dtype, output.tensor.data.data(), i));
    }
    return result;
  }

  /// Prints one line for each index of the first dimension.
  static void print(const Binding &output) {
    const HostTensor &tensor = output.tensor;
    printLine(concat(output.value->name, ": ", typeText(tensor.dtype, tensor.shape)));
    int64_t count = elementsOf(tensor.shape);
    int64_t width = tensor.shape.empty() || tensor.shape[0] == 0 ? count : count / tensor.shape[0];
    std::string line;
    for (int64_t i = 0; i < count; ++i) {
      double value = elementAsDouble(tensor.dtype, tensor.data.data(), i);
      line += (line.empty() ? "" : " ") + numberText(tensor.dtype, value);
      if ((i + 1) % width != 0)
        continue;
      printLine(line);
      line.clear();
    }
  }

  const Options &options_;
  Instance &instance_;
  const Entry &entry_;
  int64_t batch_;
  std::vector<NamedText> inputFiles_, outputFiles_;
  int64_t rows_ = 1;
  std::vector<Binding> inputs_, outputs_;
};

/// The entry point of `--entry`, or the one of its sizes whose inputs have the shapes of the files.
const Entry &entryFor(const Options &options, const Instance &instance, InputArrays &arrays) {
  std::string name = options.entry.empty() ? "predict" : options.entry;
  std::vector<const Entry *> entries = entriesFor(instance.plan(), name);
  if (entries.size() < 2)
    return entries.empty() ? instance.entry(name) : *entries.front();
  std::vector<NamedText> files = filesOf("--input", options.inputs, *entries.front(), entries.front()->inputs);
  std::string given;
  for (const NamedText &file : files) {
    const HostTensor &array = arrays.of(file.text);
    given += concat(given.empty() ? "" : ", ", file.name, ": ", typeText(array.dtype, array.shape));
  }
  return entryThatFits(entries, name, given.empty() ? "no inputs" : given, [&](const Entry &entry) {
    return std::ranges::all_of(files, [&](const NamedText &file) {
      const Value *input = entry.findInput(file.name);
      const Shape &shape = arrays.of(file.text).shape;
      return input && shapeTaken(*input, shape) == shape;
    });
  });
}

} // namespace

int runPredict(const Options &options, Processes &processes) {
  Instance instance = startInstance(options, processes.group());
  InputArrays arrays;
  const Entry &entry = entryFor(options, instance, arrays);
  requireWeights("predict", options, instance.plan());
  std::vector<Setting> settings = checkSettings(instance.plan(), options.settings);
  Prediction prediction(options, instance, entry, arrays);
  beginStates(instance, options, options.seed.value_or(0), settings);
  processes.agree(prediction.lines(), instance);
  startTrace(instance, options);
  prediction.run();
  if (processes.isFirst())
    prediction.deliver();
  finishRun(instance, options, instance.times().take());
  return 0;
}

} // namespace sluice::runtime
