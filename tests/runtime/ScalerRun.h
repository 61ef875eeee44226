// The hand-written model for two devices on virtual accelerators, with its expected results.
#pragma once

#include "Scaler.h"
#include "runtime/instance/Instance.h"

#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

namespace sluice::test {

/// The scaler on a simulator, with its expected results.
class ScalerRun {
public:
  explicit ScalerRun(const std::string &settings = "", const nlohmann::ordered_json &plan = scalerPlan(),
                     runtime::DeviceOptions devices = {},
                     std::shared_ptr<runtime::DevicePool> pool = std::make_shared<runtime::DevicePool>())
      : plan_(plan.dump()), artifact_(scaler(plan_)) {
    devices.settings["sim"] = settings;
    devices.folder = SLUICE_BINARY_DIR "/lib/sluice/backends";
    instance_ =
        std::make_unique<runtime::Instance>(artifact_, std::move(pool), runtime::InstanceOptions{2, "", devices});
    instance_->run(instance_->entry("init"), 1);
  }

  runtime::Instance &instance() { return *instance_; }
  const runtime::Entry &step() { return instance_->entry("step"); }

  void setFactor(int32_t factor) {
    factor_ = factor;
    instance_->setState(instance_->state("factor"), std::as_bytes(std::span(&factor, 1)));
  }

  /// Runs one step on numbers that depend on the call and `rows`.
  void run(int64_t rows) {
    std::vector<int32_t> x(static_cast<size_t>(rows));
    std::iota(x.begin(), x.end(), static_cast<int32_t>(sums_.size()) * 7 - 5);
    instance_->setInput(step().inputs[0], std::as_bytes(std::span(x)), rows);
    instance_->run(step(), rows);
    sums_.push_back(factor_ * std::accumulate(x.begin(), x.end(), 0));
    largest_.push_back(factor_ * x.back());
  }

  int32_t output(size_t number, int64_t rows = 1) {
    int32_t value = 0;
    instance_->getOutput(step().outputs[number], std::as_writable_bytes(std::span(&value, 1)), rows);
    return value;
  }

  template <typename T> T state(const char *name) {
    T value = 0;
    instance_->getState(instance_->state(name), std::as_writable_bytes(std::span(&value, 1)));
    return value;
  }

  const std::vector<int32_t> &sums() const { return sums_; }
  const std::vector<int32_t> &largest() const { return largest_; }
  int32_t total() const { return std::accumulate(sums_.begin(), sums_.end(), 0); }

private:
  std::string plan_;
  sluice_artifact artifact_;
  std::unique_ptr<runtime::Instance> instance_;
  int32_t factor_ = 3;
  std::vector<int32_t> sums_, largest_;
};

} // namespace sluice::test
