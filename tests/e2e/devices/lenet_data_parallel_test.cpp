// The notebook's LeNet on several devices: the same parameters as on one.
#include "tests/e2e/devices/LeNetBatches.h"
#include <gtest/gtest.h>

using namespace sluice::test;

namespace {

constexpr int64_t kRows = 64;

/// All parameters after 20 steps.
Values trained(const std::string &devices) {
  Compiled model(modelText("lenet_data_parallel", "--input f32 --batch 64 --devices " + devices));
  model.init(3);
  for (int step = 0; step < 20; ++step)
    model.run("train_step", lenetBatch(step, kRows), 1);
  Values states;
  for (const char *name : {"W1", "b1", "W2", "b2", "W3", "b3", "W4", "b4"})
    states[name] = model.state(name);
  return states;
}

} // namespace

TEST(checklist_47_train_batch, ParametersAreThoseOfOneDevice) {
  Values one = trained("sim:0");
  for (const char *devices : {"sim:0-1", "sim:0-2", "sim:0-3"})
    for (const auto &[name, values] : trained(devices))
      EXPECT_LE(relativeError(values, one.at(name)), 1e-5) << name << " on " << devices;
}

TEST(checklist_47_train_batch, RerunsGiveTheSameBits) { EXPECT_EQ(trained("sim:0-1"), trained("sim:0-1")); }
