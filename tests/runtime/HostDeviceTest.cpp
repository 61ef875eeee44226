// The host is a device like the others: the CPU run half receives the calls of a host-only model.
#include "LogisticRegression.h"
#include "runtime/base/Status.h"
#include "runtime/instance/Initialise.h"
#include "sluice/backend/host.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

using namespace sluice;
using namespace sluice::runtime;

namespace {

const sluice_backend_run &host = *sluice_host_backend()->run;
std::map<std::string, int> asked; // number of calls by function

sluice_status record(sluice_queue *queue, sluice_event *event) {
  ++asked["record"];
  return host.record(queue, event);
}

sluice_status createEvent(sluice_run *run, sluice_event **event) {
  ++asked["event_create"];
  return host.event_create(run, event);
}

sluice_status synchronizeQueue(sluice_queue *queue) {
  ++asked["synchronize_queue"];
  return host.synchronize_queue(queue);
}

sluice_status launch(sluice_queue *queue, const sluice_launch *launch) {
  ++asked["launch"];
  return host.launch(queue, launch);
}

sluice_status allocate(sluice_run *run, int32_t device, size_t bytes, void **address) {
  ++asked["allocate"];
  return host.allocate(run, device, bytes, address);
}

/// The host's run half, with all calls recorded.
const sluice_backend_run *noting(int immediate) {
  static sluice_backend_run half;
  half = host;
  half.record = record;
  half.event_create = createEvent;
  half.synchronize_queue = synchronizeQueue;
  half.launch = launch;
  half.allocate = allocate;
  half.immediate = immediate;
  asked.clear();
  return &half;
}

std::vector<float> logitsOf(Instance &instance) {
  const Entry &predict = instance.entry("predict");
  std::vector<uint8_t> images(2 * test::pixels, 7);
  instance.setInput(predict.inputs[0], std::as_bytes(std::span(images)), 2);
  instance.run(predict, 2);
  std::vector<float> logits(2 * test::classes);
  instance.getOutput(predict.outputs[0], std::as_writable_bytes(std::span(logits)), 2);
  return logits;
}

/// The results of a model whose host has this run half.
std::vector<float> logitsWith(const sluice_backend_run *half) {
  std::string plan = test::logisticRegressionPlan();
  sluice_artifact artifact = test::logisticRegression(plan);
  DeviceOptions devices;
  devices.backends["cpu"] = half;
  Instance instance(artifact, std::make_shared<DevicePool>(), {2, "", devices});
  initialise(instance, 5);
  return logitsOf(instance);
}

} // namespace

TEST(HostDevice, RunsAllLaunchesAndHoldsAllMemory) {
  logitsWith(noting(1));
  EXPECT_EQ(asked["launch"], 2); // from init and from predict
  EXPECT_EQ(asked["allocate"], 2);
}

TEST(HostDevice, HasNoEventsAndWaitsForNothing) {
  logitsWith(noting(1));
  EXPECT_EQ(asked["event_create"] + asked["record"] + asked["synchronize_queue"], 0);
}

// A host with a worker thread would not be immediate: the same plan, with events.
TEST(HostDevice, NeedNotBeImmediate) {
  std::vector<float> expected = logitsWith(&host);
  EXPECT_EQ(logitsWith(noting(0)), expected);
  EXPECT_GT(asked["record"], 0);
  EXPECT_GT(asked["synchronize_queue"], 0);
}

TEST(HostDevice, TakesNoSettings) {
  std::string plan = test::logisticRegressionPlan();
  sluice_artifact artifact = test::logisticRegression(plan);
  DeviceOptions devices;
  devices.settings["cpu"] = "cores=3";
  Status status = guarded([&] { Instance(artifact, std::make_shared<DevicePool>(), {1, "", devices}); });
  EXPECT_EQ(status.code, ExitCode::usage);
  EXPECT_NE(status.message.find("cpu has no settings"), std::string::npos) << status.message;
}

TEST(HostDevice, NamesTheArenaThatItHasNoRoomFor) {
  std::string plan = test::logisticRegressionPlan();
  std::string bytes = std::to_string(INT64_C(1) << 42);
  plan.replace(plan.find("56256"), 5, bytes);
  sluice_artifact artifact = test::logisticRegression(plan);
  Status status = guarded([&] { Instance(artifact, std::make_shared<DevicePool>(), {1, ""}); });
  EXPECT_EQ(status.code, ExitCode::exhausted);
  EXPECT_NE(status.message.find("cpu: the transient arena needs " + bytes + " bytes"), std::string::npos)
      << status.message;
}
