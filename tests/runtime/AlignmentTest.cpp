// Alignment of slots: slots have the plan's alignment for their device, and device memory must have it too.
#include "Scaler.h"
#include "runtime/base/Status.h"
#include "runtime/instance/Instance.h"
#include "runtime/plan/WritePlan.h"
#include "runtime/plugins/BackendLoader.h"

#include <gtest/gtest.h>

#include <algorithm>

using namespace sluice;
using namespace sluice::runtime;
using Json = nlohmann::ordered_json;

namespace {

/// A simulator that reports this alignment of its memory.
struct AlignedSimulator {
  static inline sluice_backend_run sound;
  static inline size_t alignment;

  static sluice_backend_run half(size_t said) {
    sluice_backend_run half = sound = findRunHalf("sim", {SLUICE_BINARY_DIR "/lib/sluice/backends"});
    alignment = said;
    half.device_info = [](sluice_run *run, int32_t device, sluice_device_info *info) {
      sluice_status status = sound.device_info(run, device, info);
      info->alignment = alignment;
      return status;
    };
    return half;
  }
};

Status openedWith(const sluice_backend_run &half, const Json &json) {
  std::string plan = json.dump();
  sluice_artifact artifact = test::scaler(plan);
  DeviceOptions devices;
  devices.backends["sim"] = &half;
  return guarded([&] { Instance(artifact, std::make_shared<DevicePool>(), {2, "", devices}); });
}

/// The scaler with device slots aligned to 256 bytes.
Json alignedPlan() {
  Json plan = test::scalerPlan();
  plan["devices"][1]["alignment"] = 256;
  plan["arenas"][2]["bytes"] = 512;
  std::string text = plan.dump(), mirror = R"("arena":2,"offset":64)";
  for (size_t at; (at = text.find(mirror)) != std::string::npos;)
    text.replace(at, mirror.size(), R"("arena":2,"offset":256)");
  return Json::parse(text);
}

} // namespace

TEST(Alignment, IsOfThePlanAndIsKept) {
  Plan plan = test::parsed(alignedPlan());
  EXPECT_EQ(plan.devices[0].alignment, 64);
  EXPECT_EQ(plan.devices[1].alignment, 256);
  EXPECT_EQ(readPlan(test::scaler(writePlan(plan))), plan);
}

TEST(Alignment, OfADeviceMayBeMoreThanThePlanNeeds) {
  static sluice_backend_run half = AlignedSimulator::half(512);
  EXPECT_EQ(openedWith(half, alignedPlan()).message, "");
}

TEST(Alignment, OfADeviceIsNotLessThanThePlanNeeds) {
  for (size_t said : {0, 64, 128}) {
    static sluice_backend_run half;
    half = AlignedSimulator::half(said);
    Status status = openedWith(half, alignedPlan());
    EXPECT_EQ(status.code, ExitCode::unsupported);
    EXPECT_EQ(status.message, "device gpu(0) (sim:0) has memory at multiples of " +
                                  std::to_string(std::max(said, size_t(64))) +
                                  " bytes, and the plan needs multiples of 256");
  }
}
