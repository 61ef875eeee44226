#include "runtime/runner/Means.h"

#include <cmath>

namespace sluice::runtime {

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
    for (size_t i = 0; i < sums_.size(); ++i)
      sums_[i] += values[call * sums_.size() + i] * static_cast<double>(pending_[call]);
    if (double loss = loss_ ? values[call * sums_.size() + *loss_] : 0; !std::isfinite(loss) && !firstNonFinite_)
      firstNonFinite_ = {callsKnown_, loss};
    rowsKnown_ += pending_[call];
    ++callsKnown_;
  }
  pending_.clear();
}

double Means::mean(size_t output) {
  collect();
  return sums_[output] / static_cast<double>(rows_);
}

std::vector<std::pair<std::string, double>> Means::results() {
  std::vector<std::pair<std::string, double>> results;
  std::optional<double> nll;
  double words = 1;
  for (size_t i = 0; i < outputs_.size(); ++i) {
    const auto &[name, value] = results.emplace_back(outputs_[i]->name, mean(i));
    if (name == "nll")
      nll = value;
    if (name == "words")
      words = value;
  }
  if (nll)
    results.emplace_back("perplexity", std::exp(*nll / words));
  return results;
}

std::optional<double> Means::meanSoFar(std::string_view name) {
  if (instance_->plan().isHostOnly())
    collect();
  for (size_t i = 0; i < outputs_.size(); ++i)
    if (outputs_[i]->name == name && rowsKnown_ > 0)
      return sums_[i] / static_cast<double>(rowsKnown_);
  return std::nullopt;
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
