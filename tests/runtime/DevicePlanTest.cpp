// Validation of plans for several devices: an invalid change is rejected with its path.
#include "FileContents.h"
#include "Scaler.h"
#include "runtime/base/Status.h"
#include "runtime/plan/Plan.h"
#include "runtime/plan/WritePlan.h"

#include <gtest/gtest.h>

using namespace sluice;
using namespace sluice::runtime;
using Json = nlohmann::ordered_json;

namespace {

/// Replaces the value at `place`, a JSON pointer, by `value`.
struct BadPlan {
  const char *name, *place, *value, *message;
};

class BadDevicePlan : public testing::TestWithParam<BadPlan> {};

/// A plan whose kernel on "acc0", a device of "sim", is a function of a module of `backend`.
Json planWithModuleOf(const char *backend) {
  Json json = test::scalerPlan();
  json["modules"] = Json::array({{{"backend", backend}, {"section", 0}}});
  Json &kernel = json["kernels"][2];
  kernel.erase("stages");
  kernel.update({{"function", "scale_i32"}, {"parameters", "0aff"}, {"module", 0}});
  return json;
}

} // namespace

TEST(DevicePlan, AModuleOfAnotherBackendIsRefused) {
  test::expectInvalid(guarded([] { test::parsed(planWithModuleOf("null")); }),
                      "kernels[2].module: is of another backend");
}

TEST(DevicePlan, ReadsEveryField) {
  Plan plan = test::parsed(planWithModuleOf("sim"));
  EXPECT_EQ(readPlan(test::scaler(writePlan(plan))), plan);
  EXPECT_FALSE(plan.isHostOnly());
  EXPECT_EQ(plan.queues[2].name, "acc0.in");
  EXPECT_EQ(plan.queues[2].kind, QueueKind::copy);
  EXPECT_EQ(plan.findState("factor")->mirrors, (std::vector<Slot>{{2, 64, 0}}));
  EXPECT_EQ(plan.peakBytes(1), 16512);
  EXPECT_EQ(plan.modules[0].backend, "sim");
  EXPECT_EQ(plan.kernels[2].function, "scale_i32");
  EXPECT_EQ(plan.kernels[2].parameters, (std::vector<std::byte>{std::byte(0x0a), std::byte(0xff)}));
  EXPECT_EQ(plan.kernels[2].module, 0u);
  const Entry &step = *plan.findEntry("step");
  EXPECT_EQ(step.inputs[0].slot.offsetOf(plan.copyOf(3)), 256);
  EXPECT_EQ(step.inputs[0].waits[0].calls, 2);
  const Copy &x = *step.actions[test::bringX].copy();
  EXPECT_EQ(x.bytesFor(3), 12);
  EXPECT_EQ(x.reason, "input");
  EXPECT_EQ(step.actions[test::refreshFactor].copy()->when, Copy::When::stale);
  EXPECT_EQ(step.actions[test::scale].waits[1].action, size_t(test::returnY));
  EXPECT_EQ(step.actions[test::scale].launch()->buffers[2].access, Access::readWrite);
  EXPECT_EQ(step.actions[test::scale].lastUses[0].bytes, 256);
}

TEST_P(BadDevicePlan, IsRefusedWithItsPlace) {
  Json plan = test::scalerPlan();
  plan[Json::json_pointer(GetParam().place)] = Json::parse(GetParam().value);
  test::expectInvalid(guarded([&] { test::parsed(plan); }), GetParam().message);
}

static const BadPlan badPlans[] = {
    {"NoDevices", "/devices", "[]", "devices: is empty"},
    {"SameDevice", "/devices/1/name", "\"cpu\"", "'cpu' appears twice"},
    {"NegativeOrdinal", "/devices/1/compiled_for", "-1", "outside [0"},
    {"QueueOfNoDevice", "/queues/1/device", "2", "outside [0, 1]"},
    {"QueueKind", "/queues/1/kind", "\"both\"", "not 'compute', 'copy' or 'communication'"},
    {"HostCopyQueue", "/queues/0/kind", "\"copy\"", "the host copies nothing"},
    {"NoQueueOfTheHost", "/queues/0/device", "1", "'cpu' has no queue"},
    {"NoQueueOfADevice", "/queues", R"([{"name": "cpu", "device": 0, "kind": "compute"}])", "'acc0' has no queue"},
    {"MirrorBeyondItsArena", "/states/0/mirrors/0/offset", "128", "exceed the arena's 128"},
    {"MirrorOfNoArena", "/states/0/mirrors/0/arena", "4", "outside [0, 3]"},
    {"StateTwice", "/states/0/stride", "64", "a state exists once"},
    {"KernelOfNoDevice", "/kernels/2/device", "2", "outside [0, 1]"},
    {"KernelElsewhere", "/kernels/2/device", "0", "runs on 'cpu', but its queue is 'acc0'"},
    {"KernelWithoutCode", "/kernels/2/stages", "[]", "neither stages nor a function"},
    {"KernelWithBoth", "/kernels/2/function", "\"f\"", "is not for a kernel with stages"},
    {"Parameters", "/kernels/2/parameters", "\"0g\"", "hexadecimal"},
    {"NoModule", "/kernels/2/module", "0", "outside [0, -1]"},
    {"ModuleOfNoSection", "/modules", R"([{"backend": "sim", "section": 1}])", "outside [0, 0]"},
    {"InputOnADeviceWithAStride", "/entries/1/inputs/0/arena", "3",
     "is not 0, but an input on an accelerator exists once"},
    {"NoCallInFlight", "/in_flight", "0", "outside [1, 16]"},
    {"ThirdInputBeyondItsArena", "/in_flight", "4", "exceed the arena's 896"},
    {"InputStride", "/entries/1/inputs/0/stride", "192", "but the buffer has 256 bytes"},
    {"SecondInputBeyondItsArena", "/entries/1/inputs/0/stride", "832", "exceed the arena's 896"},
    {"InputWaitsForItsCall", "/entries/1/inputs/0/waits/0/1", "0", "later in the same call"},
    {"NeitherNor", "/entries/1/actions/0", R"({"queues": [1]})", "is not one of a launch, a copy"},
    {"UnknownQueue", "/entries/1/actions/1/queues/0", "4", "outside [0, 3]"},
    {"CopyInAStrangeQueue", "/entries/1/actions/1/queues/0", "0", "belongs to neither end"},
    {"LaunchInACopyQueue", "/entries/1/actions/2/queues/0", "2", "its queue is 'acc0.in'"},
    {"WaitForLater", "/entries/1/actions/1/waits/0", "[2, 0]", "outside [0, 0]"},
    {"WaitForNothing", "/entries/1/actions/1/waits/0", "[6, 1]", "outside [0, 5]"},
    {"WaitTooFarBack", "/entries/1/actions/1/waits/0", "[2, 3]", "outside [0, 2]"},
    {"WaitOfOneNumber", "/entries/1/actions/1/waits/0", "[2]", "1 fields, not 2"},
    {"BufferElsewhere", "/entries/1/actions/2/launch/buffers/0/arena", "1", "is not on 'acc0'"},
    {"BufferBytes", "/entries/1/actions/2/launch/buffers/0/bytes", "9000", "but the buffer has 9000 bytes"},
    {"BufferAccess", "/entries/1/actions/2/launch/buffers/0/access", "\"x\"", "not 'r', 'w' or 'rw'"},
    {"CopyWhen", "/entries/1/actions/1/copy/when", "\"often\"", "not 'step', 'stale' or 'asked'"},
    {"CopyMovesMoreThanThereIs", "/entries/1/actions/1/copy/bytes_per_row", "5", "less than what moves"},
    {"CopyMovesTooMuch", "/entries/1/actions/1/copy/bytes_per_row", "1125899906842624", "less than what moves"},
    {"CopyStays", "/entries/1/actions/1/copy/to/arena", "1", "stays on 'cpu'"},
    {"CopyBeyondTheArena", "/entries/1/actions/1/copy/to/offset", "8192", "exceed the arena's 8192"},
    {"StaleCopyOfNoMirror", "/entries/1/actions/0/copy/to/offset", "0", "is no mirror"},
    {"AskedCopyOfNoOutput", "/entries/1/actions/5/copy/to/offset", "704", "is no output"},
    {"LastUseElsewhere", "/entries/1/actions/2/last_uses/0/arena", "1", "is not on the device of the queue 'acc0'"},
    {"MirrorBesideTheAlignment", "/devices/1/alignment", "128", "mirrors[0].offset: is 64, not a multiple of 128"},
    {"StrideBesideTheAlignment", "/devices/0/alignment", "1024", "not a multiple of 1024"},
    {"AlignmentOfNoPower", "/devices/1/alignment", "96", "devices[1].alignment: is 96, no power of two"},
    {"TooLittleAlignment", "/devices/1/alignment", "32", "outside [64, 4096]"},
    {"TooMuchAlignment", "/devices/1/alignment", "8192", "outside [64, 4096]"},
    {"Peaks", "/entries/1/peak_bytes", "[1]", "1 numbers for 2 devices"},
};

INSTANTIATE_TEST_SUITE_P(Cases, BadDevicePlan, testing::ValuesIn(badPlans),
                         [](const auto &info) { return std::string(info.param.name); });
