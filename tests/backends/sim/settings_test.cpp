// Accepted values of `--sim`, and errors of other values.
#include "tests/backends/sim/SimTest.h"

#include <algorithm>
#include <cctype>
#include <gmock/gmock.h>

using namespace sluice::test;
using ::testing::HasSubstr;

TEST(SimSettings, DefaultsAreFourDevices) {
  Simulation simulation;
  int32_t count = 0;
  EXPECT_EQ(simulator().device_count(simulation.run, &count), SLUICE_OK);
  EXPECT_EQ(count, 4);
}

TEST(SimSettings, EverySettingIsRead) {
  Simulation simulation("seed=7,devices=2,memory=1.5MiB,link=12GB/s,latency=5us,pending=3,races=off");
  ASSERT_EQ(simulation.status, SLUICE_OK) << simulation.error();
  sluice_device_info info{};
  info.struct_size = sizeof(info);
  EXPECT_EQ(simulator().device_info(simulation.run, 1, &info), SLUICE_OK);
  EXPECT_EQ(info.memory_bytes, 1572864);
  EXPECT_EQ(info.free_bytes, 1572864);
  EXPECT_GT(info.cores, 0);
  EXPECT_GT(info.clock_hz, 0);
  EXPECT_GT(info.peak_flops, 0);
  EXPECT_EQ(info.host_accessible, 0);
}

struct Refusal {
  const char *settings, *reason;
};

/// The settings as a name of letters, digits and underscores.
static std::string nameOf(const ::testing::TestParamInfo<Refusal> &info) {
  std::string name = info.param.settings;
  std::replace_if(name.begin(), name.end(), [](unsigned char c) { return !std::isalnum(c); }, '_');
  return name;
}

class RefusedSettings : public ::testing::TestWithParam<Refusal> {};

TEST_P(RefusedSettings, NamesTheSettingAndWhatItMustBe) {
  Simulation simulation(GetParam().settings);
  EXPECT_EQ(simulation.status, SLUICE_USAGE);
  EXPECT_THAT(simulation.error(), HasSubstr(GetParam().reason));
}

INSTANTIATE_TEST_SUITE_P(
    Sim, RefusedSettings,
    ::testing::Values(Refusal{"devices=0", "devices is '0', but must be a whole number from 1 to 64"},
                      Refusal{"devices=4x", "devices is '4x'"}, Refusal{"link=12", "such as 12GB/s"},
                      Refusal{"link=-1GB/s", "link is '-1GB/s'"}, Refusal{"link=nanGB/s", "link is 'nanGB/s'"},
                      Refusal{"latency=1h", "such as 5us"}, Refusal{"latency=11s", "a time from 0s to 10s"},
                      Refusal{"memory=1EB", "such as 16GB"}, Refusal{"memory=5", "such as 16GB"},
                      Refusal{"seed=-1", "a whole number"}, Refusal{"seed", "seed is ''"},
                      Refusal{"races=maybe", "report or off"}, Refusal{"pending=0", "from 1 to 1000000"},
                      Refusal{"sed=7", "no setting 'sed'; there are: seed, devices, memory"},
                      Refusal{"seed=7,,devices=2", "no setting ''"}),
    nameOf);

TEST(SimDevices, AnAbsentDeviceIsNamedWithTheCount) {
  Simulation simulation("devices=2");
  void *address = nullptr;
  EXPECT_EQ(simulator().allocate(simulation.run, 2, 64, &address), SLUICE_UNSUPPORTED);
  EXPECT_EQ(simulation.error(), "there is no device sim:2; this context has 2");
}
