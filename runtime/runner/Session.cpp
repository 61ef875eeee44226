#include "runtime/runner/Session.h"

#include "runtime/Status.h"
#include "runtime/Text.h"

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>

namespace sluice::runtime {

Instance startInstance(const Options &options) {
  return Instance(*sluice_artifact_query(), {options.threads, options.device});
}

void initialise(Instance &instance, uint64_t seed) {
  const Entry *init = instance.plan().findEntry("init");
  if (!init)
    return;
  const int32_t key[2] = {static_cast<int32_t>(seed >> 32), static_cast<int32_t>(seed)};
  for (const Value &input : init->inputs) {
    if (input.dtype != DType::i32 || input.shape != Shape{2})
      failInvalid(concat("entry point 'init' has an input ", quote(input.name), " of type ",
                         typeText(input.dtype, input.shape), ", expected a key i32[2]"));
    instance.setInput(input, std::as_bytes(std::span(key)), 1);
  }
  instance.run(*init, 1);
}

static Setting checkSetting(const Plan &plan, const NamedText &setting) {
  std::vector<std::string> names;
  for (const State &state : plan.states)
    if (state.kind == "hyper")
      names.push_back(state.name);
  const State *state = plan.findState(setting.name);
  if (!state || state->kind != "hyper")
    failUsage(concat("--set: the model has no setting ", quote(setting.name), didYouMean(setting.name, names),
                     " (settings: ", listed(names), ")"));
  char *end = nullptr;
  double value = std::strtod(setting.text.c_str(), &end);
  bool fits = !setting.text.empty() && *end == '\0' && std::isfinite(value);
  if (state->dtype == DType::f32)
    fits = fits && std::isfinite(static_cast<float>(value));
  else if (state->dtype != DType::f64)
    fits = fits && value == std::floor(value) && std::abs(value) < (state->dtype == DType::i64 ? 0x1p53 : 0x1p31);
  if (!fits)
    failUsage(concat("--set: ", quote(setting.text), " is not a value for ", quote(setting.name), " of type ",
                     nameOf(state->dtype)));
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

std::string dataFolder(const Options &options, const Plan &plan) {
  namespace fs = std::filesystem;
  if (!options.data.empty())
    return options.data;
  if (const char *folder = std::getenv("SLUICE_DATA"); folder && *folder)
    return folder;
  std::error_code error;
  fs::path home = fs::read_symlink("/proc/self/exe", error).parent_path();
  std::vector<fs::path> places;
  if (!plan.data.empty())
    places.push_back(home / plan.data); // an absolute path replaces `home`
  places.push_back(home / "../share/sluice/mnist-10k");
  std::vector<std::string> tried;
  for (const fs::path &place : places) {
    if (fs::is_directory(place, error))
      return place;
    tried.push_back(place.lexically_normal());
  }
  failInvalid(concat("no data: give --data DIR or set SLUICE_DATA; looked in ", listed(tried)));
}

int64_t batchRows(const Options &options, const Plan &plan) {
  if (options.batch > plan.capacity && plan.capacity > 0)
    failUsage(concat("--batch: ", options.batch, " exceeds the model's capacity of ", plan.capacity, " rows"));
  return options.batch > 0 && plan.capacity > 0 ? options.batch : std::max<int64_t>(plan.capacity, 1);
}

static bool isScalar(const Value &value) { return value.rowsDim < 0 && elementsOf(value.shape) == 1; }

Means::Means(const Entry &entry) {
  for (const Value &output : entry.outputs)
    if (isScalar(output))
      outputs_.push_back(&output);
  sums_.resize(outputs_.size());
}

void Means::add(const Instance &instance, int64_t rows) {
  for (size_t i = 0; i < outputs_.size(); ++i) {
    alignas(double) std::byte value[sizeof(double)];
    instance.getOutput(*outputs_[i], std::span(value, sizeOf(outputs_[i]->dtype)), rows);
    sums_[i] += elementAsDouble(outputs_[i]->dtype, value, 0) * static_cast<double>(rows);
  }
  rows_ += rows;
}

void Means::reset() { restore(std::vector<double>(sums_.size()), 0); }

std::optional<double> Means::mean(std::string_view name) const {
  for (size_t i = 0; i < outputs_.size(); ++i)
    if (outputs_[i]->name == name && rows_ > 0)
      return mean(i);
  return std::nullopt;
}

void Means::restore(const std::vector<double> &sums, int64_t rows) {
  sums_ = sums;
  rows_ = rows;
}

} // namespace sluice::runtime
