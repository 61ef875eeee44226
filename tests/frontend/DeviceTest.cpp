// Devices by name, a graph's target, and scopes: items 1 to 10 of the checklist at graph level.
#include "tests/frontend/Observe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sstream>

using namespace sluice;
using namespace sluice::test;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {

Graph graphFor(const std::string &devices) {
  Graph g{"test"};
  g.set_devices(devices);
  return g;
}

std::string printed(const Device &device) {
  std::ostringstream text;
  text << device;
  return text.str();
}

} // namespace

TEST(checklist_01_cpu_and_gpu_print, AsTheyAreWritten) {
  EXPECT_EQ(printed(cpu()), "cpu()");
  EXPECT_EQ(printed(gpu()), "gpu(0)");
  EXPECT_EQ(printed(gpu(1)), "gpu(1)");
}

TEST(checklist_01_cpu_and_gpu_print, OneDeviceHasOneName) {
  EXPECT_EQ(gpu(), gpu(0));
  EXPECT_NE(gpu(0), gpu(1));
  EXPECT_NE(gpu(0), cpu());
}

TEST(checklist_02_cpu_is_one_device, ForEveryNumber) {
  EXPECT_EQ(cpu(), cpu(0));
  EXPECT_EQ(cpu(), cpu(7));
  EXPECT_EQ(cpu(), cpu(-1));
  EXPECT_EQ(Device("cpu:3"), cpu());
  EXPECT_EQ(printed(cpu(7)), "cpu()");
}

TEST(checklist_03_gpu_is_one_accelerator, OfItsOwn) {
  Graph g = graphFor("cpu,sim:4,sim:2");
  Tensor a = g.ones({2}).to(gpu(0)), b = a.to(gpu(1));
  EXPECT_EQ(a.device(), gpu(0));
  EXPECT_EQ(b.device(), gpu(1));
  EXPECT_THAT(messageOf([&] { a + b; }), HasSubstr("on two devices"));
}

TEST(checklist_04_device_parsing, TakesTheSpellingsInUse) {
  EXPECT_EQ(Device("cpu"), cpu());
  EXPECT_EQ(Device("cuda"), gpu());
  EXPECT_EQ(Device("cuda:1"), gpu(1));
  EXPECT_EQ(Device("gpu"), gpu());
  EXPECT_EQ(Device("gpu:0"), gpu());
  EXPECT_EQ(Device("/GPU:1"), gpu(1));
  EXPECT_EQ(Device("/device:GPU:1"), gpu(1));
  EXPECT_EQ(Device("/CPU:0"), cpu());
  EXPECT_EQ(Device(std::string("cuda:2")), gpu(2));
}

TEST(checklist_04_device_parsing, TakesWhatPrintingGives) {
  EXPECT_EQ(Device(printed(cpu())), cpu());
  EXPECT_EQ(Device(printed(gpu(3))), gpu(3));
}

TEST(checklist_04_device_parsing, RefusesOthers) {
  for (const char *wrong : {"",
                            "gpu:",
                            "gpu:x",
                            "gpu:-1",
                            "gpu: 1",
                            "gpu:1 ",
                            "gpu:1:2",
                            "gpu1",
                            "gpu(1",
                            "gpu(",
                            "gpu:99999999999",
                            "GPU:1",
                            "CUDA",
                            "sim:0",
                            "acc0",
                            "tpu",
                            "/GPU",
                            "/GPU:",
                            "/TPU:0",
                            "GPU:1",
                            "//GPU:1",
                            "/job:/device:GPU:0",
                            "/job:a",
                            "/job:a/task:/device:GPU:0",
                            "/job:a/task:0/GPU:0x"})
    EXPECT_EQ(messageOf([&] { Device{wrong}; }),
              std::string("'").append(wrong) +
                  "' names no device; cpu, gpu, gpu:1, cuda:1, /GPU:1 and /job:worker/task:0/device:GPU:1 do");
  EXPECT_EQ(messageOf([] { gpu(-1); }), "gpu(-1): devices are numbered from 0");
}

TEST(checklist_05_absent_gpu, CanBeNamedAndCompared) {
  Device far = gpu(100);
  EXPECT_EQ(far.str(), "gpu(100)");
  EXPECT_EQ(far.index(), 100);
}

TEST(checklist_05_absent_gpu, FailsAtItsFirstUse) {
  Graph g = graphFor("cpu,sim:0");
  Tensor x = g.input("x", f32, {4});
  nn::Module root{g};
  std::string absent = "there is no gpu(3): the graph's target 'cpu,sim:0' has 1 accelerator";
  EXPECT_EQ(messageOf([&] { x.to(gpu(3)); }), "to: " + absent);
  EXPECT_EQ(messageOf([&] { x.copy_to(gpu(3)); }), "copy_to: " + absent);
  EXPECT_EQ(messageOf([&] { x.cuda(3); }), "to: " + absent);
  EXPECT_EQ(messageOf([&] { pin(x + x, gpu(3)); }), "pin: " + absent);
  EXPECT_EQ(messageOf([&] { root.to(gpu(3)); }), "to: " + absent);
  EXPECT_EQ(messageOf([&] { root.pin(gpu(3)); }), "pin: " + absent);
  EXPECT_EQ(messageOf([&] { DeviceScope on(g, gpu(3)); }), "DeviceScope: " + absent);
}

TEST(checklist_05_absent_gpu, IsEveryOneOfAHostAlone) {
  Graph g{"test"};
  EXPECT_EQ(messageOf([&] { g.ones({2}).cuda(); }),
            "to: there is no gpu(0): the graph's target 'cpu' has 0 accelerators");
}

TEST(checklist_06_gpu_count, IsThatOfTheTarget) {
  EXPECT_EQ(gpu_count(Graph("test")), 0);
  EXPECT_FALSE(is_available(Graph("test")));
  EXPECT_EQ(gpu_count(graphFor("cpu")), 0);
  EXPECT_EQ(gpu_count(graphFor("sim:0")), 1);
  EXPECT_EQ(gpu_count(graphFor("cpu,sim:0,cuda:1,sim:1")), 3);
  EXPECT_TRUE(is_available(graphFor("cpu,sim:0")));
}

TEST(checklist_07_try_gpu, FallsBackToTheHost) {
  Graph two = graphFor("cpu,sim:0,sim:1"), none{"test"};
  EXPECT_EQ(try_gpu(two), gpu(0));
  EXPECT_EQ(try_gpu(two, 1), gpu(1));
  EXPECT_EQ(try_gpu(two, 10), cpu());
  EXPECT_EQ(try_gpu(two, -1), cpu());
  EXPECT_EQ(try_gpu(none), cpu());
}

TEST(checklist_07_try_gpu, ListsAllInOrder) {
  EXPECT_THAT(try_all_gpus(graphFor("sim:1,cpu,sim:0")), ElementsAre(gpu(0), gpu(1)));
  EXPECT_THAT(try_all_gpus(Graph("test")), ElementsAre(cpu()));
}

TEST(checklist_08_device_info, NamesBackendsAndOrdinals) {
  std::vector<Graph::DeviceInfo> list = graphFor("sim:1,cuda").devices();
  ASSERT_EQ(list.size(), 3u);
  EXPECT_EQ(list[0].device, cpu());
  EXPECT_EQ(list[0].backend, "cpu");
  EXPECT_EQ(list[1].device, gpu(0));
  EXPECT_EQ(list[1].backend, "sim");
  EXPECT_EQ(list[1].ordinal, 1);
  EXPECT_EQ(list[2].device, gpu(1));
  EXPECT_EQ(list[2].backend, "cuda");
  EXPECT_EQ(list[2].ordinal, 0);
}

namespace {

struct checklist_09_device_scopes : testing::Test {
  Graph g = graphFor("cpu,sim:0,sim:1");
  nn::Module root{g};
};

} // namespace

TEST_F(checklist_09_device_scopes, PlaceWhatIsCreated) {
  DeviceScope on{g, gpu(1)};
  EXPECT_EQ(g.ones({2}).device(), gpu(1));
  EXPECT_EQ(g.zeros({2}).device(), gpu(1));
  EXPECT_EQ(g.full({2}, 0.5).device(), gpu(1));
  EXPECT_EQ(g.input("x", f32, {2}).device(), gpu(1));
  EXPECT_EQ(root.parameter("p", {2}, init::ones()).device(), gpu(1));
  EXPECT_EQ(root.buffer("b", {2}, init::ones()).device(), gpu(1));
}

TEST_F(checklist_09_device_scopes, PlaceOnTheHostToo) {
  DeviceScope on{g, cpu()};
  EXPECT_EQ(g.input("x", f32, {2}).device(), cpu());
  EXPECT_EQ(g.ones({2}).device(), cpu());
}

TEST_F(checklist_09_device_scopes, NestAndRestore) {
  EXPECT_EQ(g.ones({2}).device(), std::nullopt);
  {
    DeviceScope outer{g, gpu(0)};
    {
      DeviceScope inner{g, gpu(1)};
      EXPECT_EQ(g.ones({2}).device(), gpu(1));
    }
    EXPECT_EQ(g.ones({2}).device(), gpu(0));
  }
  EXPECT_EQ(g.ones({2}).device(), std::nullopt);
}

TEST_F(checklist_09_device_scopes, RestoreWhenAnExceptionLeavesThem) {
  EXPECT_THAT(messageOf([&] {
                DeviceScope on{g, gpu(1)};
                g.full({2}, 0.5, i32);
              }),
              HasSubstr("is not a value of i32"));
  EXPECT_EQ(g.ones({2}).device(), std::nullopt);
}

TEST_F(checklist_09_device_scopes, MoveNothing) {
  Tensor a = g.ones({2}).to(gpu(0)), b = g.ones({2});
  DeviceScope on{g, gpu(1)};
  EXPECT_EQ(a.device(), gpu(0));
  EXPECT_EQ(b.device(), std::nullopt);
  EXPECT_EQ((a * 2).device(), gpu(0)); // the number is placed on a's device, not the scope's
  EXPECT_EQ((b * 2).device(), std::nullopt);
}

TEST_F(checklist_09_device_scopes, ChooseTheDefaultGpu) {
  Tensor x = g.ones({2});
  EXPECT_EQ(x.cuda().device(), gpu(0));
  DeviceScope on{g, gpu(1)};
  EXPECT_EQ(x.cuda().device(), gpu(1));
}

TEST(checklist_10_host_names, RoundTrip) {
  for (const char *name : {"/job:worker/task:0/device:GPU:0", "/job:ps/replica:1/task:12/device:CPU:0"}) {
    EXPECT_EQ(Device(name).str(), name);
    EXPECT_EQ(Device(Device(name).str()), Device(name));
  }
  EXPECT_EQ(Device("/job:worker/task:0/GPU:1").str(), "/job:worker/task:0/device:GPU:1");
}

TEST(checklist_10_host_names, ArePartOfADevicesIdentity) {
  Device remote("/job:worker/task:1/device:GPU:0");
  EXPECT_EQ(remote.host(), "/job:worker/task:1");
  EXPECT_NE(remote, gpu(0));
  EXPECT_NE(remote, Device("/job:worker/task:0/device:GPU:0"));
}

TEST(checklist_10_host_names, AreNotUsedYet) {
  Graph g = graphFor("cpu,sim:0");
  EXPECT_EQ(messageOf([&] { g.ones({2}).to("/job:worker/task:0/device:GPU:0"); }),
            "to: /job:worker/task:0/device:GPU:0 is a device of another host; a graph uses those of one");
}

TEST(Target, IsRecorded) {
  Graph g = graphFor("sim:0,cpu");
  g.set_copies("insert");
  g.output("y", relu(g.input("x", f32, {2})));
  EXPECT_THAT(g.str(), testing::ContainsRegex(
                           "  sluice.device \"cpu\" = \"cpu\" 0 .*\n  sluice.device \"acc0\" = \"sim\" 0 first "));
  EXPECT_THAT(g.str(), HasSubstr(" copies insert loc"));
}

TEST(Target, RefusesMalformedSettings) {
  Graph g{"test"};
  EXPECT_EQ(messageOf([&] { g.set_devices("sim:0,sim:0"); }), "set_devices: 'sim:0' is listed twice in 'sim:0,sim:0'");
  EXPECT_THAT(messageOf([&] { g.set_devices(""); }), HasSubstr("set_devices: '' names no device"));
  EXPECT_THAT(messageOf([&] { g.set_devices("gpu:0"); }), HasSubstr("names no backend"));
  EXPECT_EQ(messageOf([&] { g.set_copies("never"); }), "set_copies: 'never' is none of explicit, warn, insert");
  EXPECT_EQ(gpu_count(g), 0);
}

TEST(Target, KeepsDevicesThatAreInUse) {
  Graph g = graphFor("cpu,sim:0,sim:1");
  g.ones({2}).to(gpu(1));
  EXPECT_EQ(messageOf([&] { g.set_devices("cpu,sim:0"); }),
            "set_devices: gpu(1) is in use, and 'cpu,sim:0' has 1 accelerator");
  g.set_devices("cpu,sim:5,sim:6,sim:7");
  EXPECT_EQ(gpu_count(g), 3);
}
