// The notebook's LeNet on several devices: the parameters of each device equal those of a single device, and match
// PyTorch's.
#include "tests/Worse.h"
#include "tests/e2e/Golden.h"
#include "tests/e2e/devices/LeNetBatches.h"
#include <cmath>
#include <gtest/gtest.h>

using namespace sluice::test;

namespace {

constexpr int kSteps = 20;
const std::vector<std::string> kParameters = {"W1", "b1", "W2", "b2", "W3", "b3", "W4", "b4"};

/// A model on one or more devices, and the suffixes of its state names.
struct DataParallel {
  std::string devices;
  std::vector<std::string> names;

  std::string text(const std::string &arguments) const {
    return modelText("lenet_data_parallel", "--input f32 --devices " + devices + " " + arguments);
  }
};

const DataParallel kOne{"sim:0", {"gpu0"}}, kTwo{"sim:0-1", {"gpu0", "gpu1"}},
    kThree{"sim:0-2", {"gpu0", "gpu1", "gpu2"}}, kFour{"sim:0-3", {"gpu0", "gpu1", "gpu2", "gpu3"}},
    kHost{"cpu", {"cpu"}};

Values parametersOf(const Compiled &model, const std::string &device) {
  Values states;
  for (const std::string &name : kParameters)
    states[name] = model.state(device.empty() ? name : name + "." + device);
  return states;
}

/// Expects equal bits on all devices; parameters that were only copied keep their initial values.
void expectAlike(const Compiled &model, const DataParallel &program, const Values &begin) {
  for (const std::string &name : program.names)
    EXPECT_EQ(parametersOf(model, name), parametersOf(model, program.names.front())) << name;
  EXPECT_EQ(parametersOf(model, ""), begin);
}

/// All parameters after 20 steps of 50 rows, unevenly split on 3 and 4 devices.
Values trained(const DataParallel &program) {
  Compiled model(program.text("--batch 50"));
  model.init(3);
  Values begin = parametersOf(model, "");
  expectAlike(model, program, begin);
  for (int step = 0; step < kSteps; ++step) {
    model.run("train_step", lenetBatch(step, 50), 1);
    expectAlike(model, program, begin);
  }
  EXPECT_NE(parametersOf(model, program.names.front()), begin);
  return parametersOf(model, program.names.front());
}

/// The name of the notebook's parameter in tests/data/golden/lenet.json.
std::string goldenName(const std::string &parameter) {
  static const std::map<char, std::string> layers = {{'1', "conv1"}, {'2', "conv2"}, {'3', "fc1"}, {'4', "fc2"}};
  return layers.at(parameter[1]) + (parameter[0] == 'W' ? ".weight" : ".bias");
}

/// The largest difference between a parameter's change over 20 steps and PyTorch's in float64, at its samples, relative
/// to the largest change.
double errorOfChange(const Golden &golden, const std::string &parameter, const std::vector<double> &value) {
  std::vector<double> begin = golden.initial(goldenName(parameter));
  const nlohmann::json &samples = golden.finalValues()[goldenName(parameter)]["samples"];
  double scale = 0, worst = 0;
  for (size_t i = 0; i < samples["index"].size(); ++i) {
    size_t at = samples["index"][i];
    double change = double(samples["value"][i]) - begin[at];
    scale = std::max(scale, std::abs(change));
    worst = worse(worst, std::abs(value[at] - begin[at] - change));
  }
  return worst / scale;
}

} // namespace

TEST(checklist_47_train_batch, ParametersAreThoseOfOneDevice) {
  Values one = trained(kOne);
  for (const DataParallel &program : {kTwo, kThree, kFour, kHost})
    for (const auto &[name, values] : trained(program))
      EXPECT_LE(relativeError(values, one.at(name)), 1e-5) << name << " on " << program.devices;
}

TEST(checklist_47_train_batch, RerunsGiveTheSameBits) { EXPECT_EQ(trained(kThree), trained(kThree)); }

// 256 rows are split into 86, 85 and 85: a gradient divided by the device's own rows would be three times too large.
TEST(checklist_47_train_batch, IsPyTorchsInDoublePrecision) {
  Golden golden({"lenet", "lenet", {1, 28, 28}, 10});
  sluice::CompileOptions options;
  options.dtype = sluice::f64;
  for (const DataParallel &program : {kOne, kThree}) {
    Compiled model(program.text("--batch 256 --lr 0.02"), options);
    model.init(0);
    for (const std::string &name : program.names)
      for (const std::string &parameter : kParameters)
        model.setState(parameter + "." + name, golden.initial(goldenName(parameter)));
    for (int step = 0; step < golden.steps(); ++step)
      EXPECT_NEAR(model.run("train_step", golden.batch(step), 1).at("loss")[0], golden.loss(step), 1e-9) << step;
    for (const std::string &name : program.names)
      for (const auto &[parameter, value] : parametersOf(model, name))
        EXPECT_LE(errorOfChange(golden, parameter, value), 1e-7) << parameter << " on " << name;
  }
}

// Evaluation and prediction write no state.
TEST(checklist_47_train_batch, OnlyTrainingUpdates) {
  Compiled model(kTwo.text("--batch 50"));
  model.init(3);
  std::vector<std::byte> before = model.stateBytes();
  Values batch = lenetBatch(0, 50);
  EXPECT_NEAR(model.run("eval_step", batch, 1).at("loss")[0], std::log(10.0), 0.02);
  EXPECT_EQ(model.run("predict", batch, 1).at("logits").size(), 500u);
  EXPECT_EQ(model.stateBytes(), before);
  model.run("train_step", batch, 1);
  EXPECT_NE(model.stateBytes(), before);
}
