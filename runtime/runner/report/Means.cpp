#include "runtime/runner/report/Means.h"

#include "runtime/base/Text.h"

#include <algorithm>
#include <cmath>
#include <span>

namespace sluice::runtime {

/// The entry point that computes formulas, and two endings of output names. Outputs with `sumEnding` are added over
/// calls. An output with `callsEnding` marks its metric as a mean over calls.
static constexpr std::string_view metricsEntry = "metrics", sumEnding = "/sum", callsEnding = "/calls";

static bool isSum(const Value &output) { return output.name.ends_with(sumEnding); }

bool isScalar(const Value &value) { return value.rowsDim < 0 && elementsOf(value.shape) == 1; }

Means::Means(Instance &instance, const Entry &entry) : instance_(&instance), entry_(&entry) {
  for (const Value &output : entry.outputs) {
    if (!isScalar(output))
      continue;
    if (output.name == "loss")
      loss_ = outputs_.size();
    outputs_.push_back(&output);
  }
  sums_.resize(outputs_.size());
  instance.keepOutputs(entry, outputs_);
}

void Means::add(int64_t rows) {
  pending_.push_back(rows);
  rows_ += rows;
}

void Means::collect() {
  std::vector<double> values = instance_->takeOutputs(*entry_);
  for (size_t call = 0; call < pending_.size(); ++call) {
    for (size_t i = 0; i < sums_.size(); ++i) {
      double weight = isSum(*outputs_[i]) ? 1 : static_cast<double>(pending_[call]);
      sums_[i] += values[call * sums_.size() + i] * weight;
    }
    if (double loss = loss_ ? values[call * sums_.size() + *loss_] : 0; !std::isfinite(loss) && !firstNonFinite_)
      firstNonFinite_ = {callsKnown_, loss};
    rowsKnown_ += pending_[call];
    ++callsKnown_;
  }
  pending_.clear();
}

const Value *Means::find(std::string_view name) const {
  auto found = std::ranges::find(outputs_, name, &Value::name);
  return found == outputs_.end() ? nullptr : *found;
}

double Means::figure(const Value &output, int64_t rows) const {
  double sum = sums_[static_cast<size_t>(std::ranges::find(outputs_, &output) - outputs_.begin())];
  return isSum(output) ? sum : sum / static_cast<double>(rows);
}

std::map<std::string, NamedFigure> Means::formulas() {
  std::map<std::string, NamedFigure> results;
  const std::vector<Entry> &entries = instance_->plan().entries;
  auto metrics = std::ranges::find(entries, metricsEntry, &Entry::name);
  if (metrics == entries.end() ||
      !std::ranges::all_of(metrics->inputs, [&](const Value &input) { return find(input.name); }))
    return results; // no formulas, or the entry is not a step
  bool areNumbers = true;
  for (const Value &input : metrics->inputs) {
    double value = figure(*find(input.name), rows_);
    areNumbers &= std::isfinite(value);
    instance_->setInput(input, std::as_bytes(std::span(&value, 1)), 1);
  }
  instance_->run(*metrics, 1);
  for (const Value &output : metrics->outputs) {
    double value = 0;
    instance_->getOutput(output, std::as_writable_bytes(std::span(&value, 1)), 1);
    results[output.name] = {output.name, value, /*isOverCalls=*/false, areNumbers && !std::isfinite(value)};
  }
  return results;
}

static std::optional<double> valueOf(const std::vector<NamedFigure> &figures, std::string_view name) {
  auto found = std::ranges::find(figures, name, &NamedFigure::name);
  return found == figures.end() ? std::nullopt : std::optional(found->value);
}

std::vector<NamedFigure> Means::results() {
  collect();
  std::map<std::string, NamedFigure> formulas = this->formulas();
  std::vector<NamedFigure> results;
  for (const Value *output : outputs_) {
    const std::string &name = output->name;
    const Value *sum = find(concat(name, sumEnding));
    if (auto formula = formulas.find(name); formula != formulas.end())
      results.push_back(formula->second);
    else if (name.find('/') == std::string::npos) // otherwise it describes how to combine another output
      results.push_back({name, figure(sum ? *sum : *output, rows_), find(concat(name, callsEnding)) != nullptr});
  }
  if (std::optional<double> nll = valueOf(results, "nll")) {
    double words = valueOf(results, "words").value_or(1);
    results.push_back({"perplexity", std::exp(*nll / words), /*isOverCalls=*/false, words == 0});
  }
  return results;
}

std::optional<double> Means::meanSoFar(std::string_view name) {
  if (instance_->plan().isHostOnly())
    collect();
  const Value *output = find(name);
  return output && rowsKnown_ > 0 ? std::optional(figure(*output, rowsKnown_)) : std::nullopt;
}

const std::vector<double> &Means::sums() {
  collect();
  return sums_;
}

void Means::reset() {
  collect();
  restore(std::vector<double>(sums_.size()), 0);
}

void Means::restore(const std::vector<double> &sums, int64_t rows) {
  sums_ = sums;
  rows_ = rowsKnown_ = rows;
}

} // namespace sluice::runtime
