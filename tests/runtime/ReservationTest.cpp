// All of a plan's memory on an accelerator is one reservation.
#include "runtime/plan/Reservation.h"
#include "Scaler.h"
#include "runtime/base/Status.h"
#include "runtime/instance/Instance.h"
#include "runtime/plugins/BackendLoader.h"

#include <gtest/gtest.h>

using namespace sluice;
using namespace sluice::runtime;
using Json = nlohmann::ordered_json;

namespace {

constexpr const char *foundIn = SLUICE_BINARY_DIR "/lib/sluice/backends";
constexpr int64_t page = 4096, logOfSum = 8192, transientBytes = 8192, stateBytes = 128;

/// A simulator that counts allocations.
struct CountedSimulator {
  static inline sluice_backend_run sound;
  static inline std::vector<size_t> allocated;
  static inline int64_t released;

  static sluice_backend_run half() {
    sluice_backend_run half = sound = findRunHalf("sim", {foundIn});
    allocated.clear();
    released = 0;
    half.allocate = [](sluice_run *run, int32_t device, size_t bytes, void **address) {
      allocated.push_back(bytes);
      return sound.allocate(run, device, bytes, address);
    };
    half.release = [](sluice_run *run, int32_t device, void *address) {
      ++released;
      return sound.release(run, device, address);
    };
    return half;
  }
};

void writeBefore(void *const *buffers, int64_t, int64_t, int64_t) { static_cast<char *>(buffers[0])[-1] = 1; }

/// Makes the kernel that writes the first state write to the preceding bytes, which are in the transient arena.
void writeBeforeTheStates() {
  Json json = test::scalerPlan();
  json["arenas"][3]["bytes"] = transientBytes - 64;
  std::string plan = json.dump();
  sluice_artifact artifact = test::scaler(plan);
  std::vector<sluice_host_stage> stages(artifact.stages, artifact.stages + artifact.num_stages);
  stages[0] = writeBefore;
  artifact.stages = stages.data();
  DeviceOptions devices;
  devices.folder = foundIn;
  Instance instance(artifact, std::make_shared<DevicePool>(), {1, "", devices});
  instance.run(instance.entry("init"), 1);
  instance.synchronize();
}

} // namespace

TEST(Reservation, HasLogsThenTransientsThenStates) {
  Plan plan = test::parsed(test::scalerPlan());
  Reservation reservation(plan, 1);
  EXPECT_EQ(reservation.offsetOfLog(1), 0);
  EXPECT_EQ(reservation.offsetOfArena(3), logOfSum);
  EXPECT_EQ(reservation.offsetOfArena(2), logOfSum + transientBytes);
  EXPECT_EQ(reservation.bytes(), logOfSum + transientBytes + stateBytes);
  EXPECT_EQ(reservation.text(), "8192 for transient, 8192 for the outputs of step, 128 for state");
}

TEST(Reservation, BeginsEachPartOnAPage) {
  Plan plan = test::parsed(test::scalerPlan());
  plan.arenas[3].bytes = transientBytes + 64;
  EXPECT_EQ(Reservation(plan, 1).offsetOfArena(2), logOfSum + transientBytes + page);
  plan.arenas[2].bytes = 0;
  EXPECT_EQ(Reservation(plan, 1).bytes(), logOfSum + transientBytes + 64) << "nothing takes no page";
}

TEST(Reservation, HasALogForWhatIsMadeThere) {
  Plan plan = test::parsed(test::scalerPlan());
  EXPECT_EQ(logBytes(plan, plan.entries[0], 1), 0);
  EXPECT_EQ(logBytes(plan, plan.entries[1], 1), logOfSum);
  EXPECT_EQ(logBytes(plan, plan.entries[1], 0), 2 * logOfSum) << "all outputs are brought to the host";
}

TEST(Reservation, IsAllThatIsAskedOfAnAccelerator) {
  static sluice_backend_run counted = CountedSimulator::half();
  std::string plan = test::scalerPlan().dump();
  sluice_artifact artifact = test::scaler(plan);
  DeviceOptions options;
  options.backends["sim"] = &counted;
  {
    Instance instance(artifact, std::make_shared<DevicePool>(), {2, "", options});
    const Entry &step = instance.entry("step");
    instance.run(instance.entry("init"), 1);
    instance.keepOutputs(step, {&step.outputs[0], &step.outputs[1]});
    std::vector<int32_t> x(50, 1);
    instance.setInput(step.inputs[0], std::as_bytes(std::span(x)), 50);
    instance.run(step, 50);
    EXPECT_EQ(instance.takeOutputs(step).size(), 2u);

    const Devices &devices = instance.executor().devices();
    int64_t all = Reservation(instance.plan(), 1).bytes();
    EXPECT_EQ(CountedSimulator::allocated, std::vector<size_t>{static_cast<size_t>(all)});
    EXPECT_EQ(devices.allocatedBytes(1), all);
    EXPECT_EQ(devices.takenBytes(1), all);
    EXPECT_EQ(devices.arena(2) - devices.arena(3), transientBytes);
    EXPECT_EQ(devices.arena(3) - devices.log(1, 1), logOfSum);
    EXPECT_EQ(CountedSimulator::released, 0);
  }
  EXPECT_EQ(CountedSimulator::released, 1);
}

TEST(ReservationDeathTest, WorkOnThePartBehindAnotherFaultsBeforeItComesToThat) {
  EXPECT_DEATH(writeBeforeTheStates(), "");
}
