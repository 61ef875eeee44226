#include "runtime/runner/session/Session.h"

#include "runtime/base/Status.h"
#include "runtime/base/Text.h"
#include "runtime/data/Feed.h"
#include "runtime/instance/Initialise.h"
#include "runtime/instance/Variants.h"
#include "runtime/instance/Weights.h"
#include "runtime/io/File.h"
#include "runtime/runner/report/Report.h"
#include "runtime/runner/report/Terminal.h"
#include "runtime/runner/report/TraceFile.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>

namespace sluice::runtime {

InstanceOptions instanceOptions(const Options &options) {
  InstanceOptions wanted{options.threads, options.device};
  wanted.devices.list = options.devices;
  wanted.devices.replays = options.replays;
  wanted.devices.deadline = options.deadline;
  wanted.devices.onLate = options.onLate;
  for (const NamedText &setting : options.backends)
    if (!wanted.devices.settings.emplace(setting.name, setting.text).second)
      failUsage(concat("the settings of ", quote(setting.name), " are given twice"));
  return wanted;
}

/// "gpu(0) (cuda:0), NVIDIA H200" for each accelerator of the first replica in this process.
static std::string acceleratorsText(const Instance &instance) {
  const Devices &devices = instance.executor().devices();
  std::string text;
  for (size_t device = 1; device < instance.plan().devices.size(); ++device)
    text += concat(text.empty() ? "" : "; ", devices.textOf(device), ", ", devices.nameOf(device));
  return text.empty() ? "the host alone" : text;
}

Instance startInstance(const Options &options, ProcessGroup *processes) {
  InstanceOptions wanted = instanceOptions(options);
  wanted.devices.processes = processes;
  checkBackends(readPlan(*options.artifact), wanted.devices);
  Instance instance(*options.artifact, DevicePool::ofProcess(), wanted);
  if (!options.quiet && sluice_artifact_query()->next)
    talk(concat("runs on ", acceleratorsText(instance)));
  return instance;
}

void requireWeights(const char *verb, const Options &options, const Plan &plan) {
  auto isUnknown = [](const State &state) { return state.kind == StateKind::parameter && !state.initial; };
  if (options.weights.empty() && std::any_of(plan.states.begin(), plan.states.end(), isUnknown))
    failUsage(concat(verb, " needs --weights FILE"));
}

/// Further calls add no information, and trace viewers cannot open a trace of an hour.
static constexpr int64_t mostTracedCalls = 64;

void startTrace(Instance &instance, const Options &options) {
  if (!options.trace.empty())
    instance.times().start(/*oneByOne=*/false, mostTracedCalls);
}

void finishRun(Instance &instance, const Options &options, const std::vector<WorkTime> &times) {
  if (!options.trace.empty()) {
    AtomicFile file(options.trace);
    file.write(traceText(instance.plan(), times));
    file.commit();
  }
  if (!options.report)
    return;
  Json report = reportOf(instance);
  if (options.json)
    return printLine(Json{{"report", report}}.dump());
  printReport(report);
}

/// Rounds to the nearest value of the type.
static double roundedTo(DType type, double value) {
  switch (type) {
  case DType::f16:
    return sluice_f16(static_cast<float>(value));
  case DType::bf16:
    return sluice_bf16(static_cast<float>(value));
  case DType::f32:
    return static_cast<float>(value);
  default:
    return value;
  }
}

/// The name of the learning rate's state in graphs that call minimize, and by convention in other graphs.
static constexpr std::string_view learningRate = "lr";

static Setting checkSetting(const Plan &plan, const NamedText &setting) {
  std::vector<std::string> names;
  for (const State &state : plan.states)
    if (state.kind == StateKind::hyperparameter)
      names.push_back(state.name);
  const State *state = plan.findState(setting.name);
  if (!state || state->kind != StateKind::hyperparameter)
    failUsage(concat("--set: the model has no setting ", quote(setting.name), didYouMean(setting.name, names),
                     " (settings: ", listed(names), ")"));
  char *end = nullptr;
  double value = std::strtod(setting.text.c_str(), &end);
  bool fits = !setting.text.empty() && *end == '\0' && std::isfinite(value);
  if (isFloat(state->dtype))
    fits = fits && std::isfinite(roundedTo(state->dtype, value));
  else
    fits = fits && value == std::floor(value) && std::abs(value) < (state->dtype == DType::i64 ? 0x1p53 : 0x1p31);
  if (!fits)
    failUsage(concat("--set: ", quote(setting.text), " is not a value for ", quote(setting.name), " of type ",
                     nameOf(state->dtype)));
  if (setting.name == learningRate && value < 0)
    failUsage(concat("--set: a learning rate is at least 0, and ", quote(setting.name), " is set to ", setting.text));
  return {state, value};
}

std::vector<Setting> checkSettings(const Plan &plan, const std::vector<NamedText> &settings) {
  std::vector<Setting> checked;
  for (const NamedText &setting : settings)
    checked.push_back(checkSetting(plan, setting));
  return checked;
}

template <typename T> static void fillState(Instance &instance, const Setting &setting) {
  std::vector<T> values(static_cast<size_t>(setting.state->elements()), static_cast<T>(setting.value));
  instance.setState(*setting.state, std::as_bytes(std::span(values)));
}

void applySettings(Instance &instance, const std::vector<Setting> &settings) {
  for (const Setting &setting : settings) {
    switch (setting.state->dtype) {
    case DType::f32:
      fillState<float>(instance, setting);
      break;
    case DType::f64:
      fillState<double>(instance, setting);
      break;
    case DType::f16:
      fillState<sluice_f16>(instance, setting);
      break;
    case DType::bf16:
      fillState<sluice_bf16>(instance, setting);
      break;
    case DType::i32:
      fillState<int32_t>(instance, setting);
      break;
    case DType::i64:
      fillState<int64_t>(instance, setting);
      break;
    case DType::u8:
    case DType::boolean:
      fillState<uint8_t>(instance, setting);
      break;
    }
  }
}

void beginStates(Instance &instance, const Options &options, uint64_t seed, const std::vector<Setting> &settings) {
  initialise(instance, seed);
  if (!options.weights.empty())
    for (const std::string &line : loadWeights(instance, options.weights))
      if (!options.quiet)
        talk(concat("note: ", line));
  applySettings(instance, settings);
}

namespace fs = std::filesystem;

/// "data/mnist" for "data/mnist/"
static fs::path withoutSlash(const fs::path &path) { return path.has_filename() ? path : path.parent_path(); }

/// Where data sets are looked up by name: beside the model's data, and in the installation of this executable.
static std::vector<fs::path> dataFolders(const Plan &plan) {
  std::error_code error;
  fs::path home = fs::read_symlink("/proc/self/exe", error).parent_path();
  fs::path ofModel = home / withoutSlash(plan.data).parent_path(); // an absolute path replaces `home`
  return {ofModel.lexically_normal(), (home / "../share/sluice").lexically_normal()};
}

/// The data sets in these folders.
static std::vector<std::string> dataSetsIn(const std::vector<fs::path> &folders) {
  std::vector<std::string> names;
  for (const fs::path &folder : folders) {
    std::error_code error;
    for (fs::directory_iterator next(folder, error), end; !error && next != end; next.increment(error))
      if (next->is_directory(error))
        names.push_back(next->path().filename());
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

std::string findData(const std::string &given, const Plan &plan) {
  std::error_code error;
  if (given.find('/') != std::string::npos || fs::exists(given, error))
    return given; // a missing file is reported where it is opened
  std::vector<fs::path> folders = dataFolders(plan);
  for (const fs::path &folder : folders)
    if (fs::exists(folder / given, error))
      return folder / given;
  std::vector<std::string> tried(folders.begin(), folders.end());
  failInvalid(concat("no data ", quote(given), ": it is neither a file or folder here nor a data set in ",
                     listed(tried), didYouMean(given, dataSetsIn(folders))));
}

std::string dataPath(const Options &options, const Plan &plan) {
  if (!options.data.empty())
    return findData(options.data, plan);
  if (const char *path = std::getenv("SLUICE_DATA"); path && *path)
    return findData(path, plan);
  if (plan.data.empty())
    failInvalid("no data: give --data PATH or set SLUICE_DATA; the model names none");
  fs::path name = withoutSlash(plan.data).filename();
  std::vector<std::string> tried;
  for (const fs::path &folder : dataFolders(plan)) {
    std::error_code error;
    if (fs::exists(folder / name, error))
      return folder / name;
    tried.push_back(folder / name);
  }
  failInvalid(concat("no data: give --data PATH or set SLUICE_DATA; looked in ", listed(tried)));
}

Table trainingTable(const DataPath &data) {
  if (!data.hasParts())
    return data.whole();
  if (std::optional<Table> table = data.part(DataPart::train))
    return std::move(*table);
  failInvalid(concat(data.path(), ": has a test part and no training part"));
}

Table evaluationTable(const DataPath &data) {
  if (!data.hasParts())
    return data.whole();
  if (std::optional<Table> table = data.part(DataPart::test))
    return std::move(*table);
  failInvalid(concat(data.path(), ": has a training part and no test part"));
}

std::optional<Table> testTable(const DataPath &data, const Options &options, const Plan &plan) {
  if (!options.testData.empty()) {
    DataOptions dataOptions = options.dataOptions;
    dataOptions.classes = data.classes();
    return evaluationTable(DataPath(findData(options.testData, plan), dataOptions));
  }
  return data.part(DataPart::test);
}

int64_t batchRows(const Options &options, const Plan &plan, int64_t fixedRows) {
  if (fixedRows > 0 && options.batch > 0 && options.batch != fixedRows)
    failUsage(concat("--batch: ", options.batch, " rows, and every call of the model has ", fixedRows));
  if (fixedRows > 0)
    return fixedRows;
  if (options.batch > plan.batch && plan.batch > 0)
    failUsage(concat("--batch: ", options.batch, " exceeds the model's capacity of ", plan.batch, " rows"));
  return options.batch > 0 && plan.batch > 0 ? options.batch : std::max<int64_t>(plan.batch, 1);
}

void tellWhatIsLeftOut(const Options &options, const Feed &feed, const char *rows) {
  if (!options.quiet)
    for (const std::string &note : feed.notes())
      talk(note);
  if (feed.rowsLeftOut() > 0 && !options.quiet)
    talk(concat("the last ", feed.rowsLeftOut(), " of ", feed.rows() + feed.rowsLeftOut(), " ", rows,
                " are left out: every call has ", feed.fixedRows()));
}

} // namespace sluice::runtime
