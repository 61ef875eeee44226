// The hand-written model for several replicas on virtual accelerators, with its expected results.
#pragma once

#include "Averager.h"
#include "runtime/instance/Instance.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace sluice::test {

class AveragerRun {
public:
  explicit AveragerRun(int replicas, const std::string &settings = "seed=1", const Json *plan = nullptr,
                       runtime::DeviceOptions devices = {},
                       std::shared_ptr<runtime::DevicePool> pool = std::make_shared<runtime::DevicePool>())
      : plan_((plan ? *plan : averagerPlan(replicas)).dump()), artifact_(averager(plan_)) {
    devices.settings["sim"] = settings + ",devices=8";
    devices.folder = SLUICE_BINARY_DIR "/lib/sluice/backends";
    instance_ =
        std::make_unique<runtime::Instance>(artifact_, std::move(pool), runtime::InstanceOptions{2, "", devices});
    instance_->run(instance_->entry("init"), 1);
  }

  runtime::Instance &instance() { return *instance_; }
  const runtime::Entry &step() const { return instance_->entry("train_step"); }

  /// Numbers that depend on the call.
  std::vector<int32_t> batchOf(int64_t rows) const {
    std::vector<int32_t> x;
    for (int64_t i = 0; i < rows; ++i)
      x.push_back(static_cast<int32_t>((i * 37 + calls_ * 11) % 100));
    return x;
  }

  void setBatch(const std::vector<int32_t> &x) {
    instance_->setInput(step().inputs[0], std::as_bytes(std::span(x)), static_cast<int64_t>(x.size()));
  }

  /// Runs one step and updates the expected values.
  void run(int64_t rows) {
    std::vector<int32_t> x = batchOf(rows);
    setBatch(x);
    instance_->run(step(), rows);
    ++calls_;
    double sum = 0;
    expectedRows.clear();
    for (size_t i = 0; i < x.size(); ++i) {
      sum += x[i] * static_cast<double>(i + 1);
      expectedRows.push_back(x[i] + static_cast<int32_t>(i));
    }
    expectedMean = sum / static_cast<double>(rows);
    expectedWeight += expectedMean;
    expectedTotal += expectedMean;
  }

  double loss(int64_t rows) {
    double value = 0;
    instance_->getOutput(step().outputs[0], std::as_writable_bytes(std::span(&value, 1)), rows);
    return value;
  }

  std::vector<int32_t> rowsOut(int64_t rows) {
    std::vector<int32_t> y(static_cast<size_t>(rows));
    instance_->getOutput(step().outputs[1], std::as_writable_bytes(std::span(y)), rows);
    return y;
  }

  double state(const char *name, int64_t replica = 0) {
    double value = 0;
    instance_->getState(instance_->state(name), std::as_writable_bytes(std::span(&value, 1)), replica);
    return value;
  }

  std::vector<int32_t> expectedRows;
  double expectedMean = 0, expectedWeight = 1, expectedTotal = 0;

private:
  std::string plan_;
  sluice_artifact artifact_;
  std::unique_ptr<runtime::Instance> instance_;
  int64_t calls_ = 0;
};

} // namespace sluice::test
