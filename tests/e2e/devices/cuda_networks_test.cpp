// Networks that train on emulated CUDA devices, alone, on several and beside the host, agree with the interpreter in f64: their
// losses and what training changes are at most three times as far off as f32 on the host is, or 1e-6 where that is smaller.
#include "tests/cuda_emu/Doubles.h"
#include "tests/e2e/GoldenTraining.h"
#include "tests/e2e/Portable.h"
#include "tests/e2e/devices/SmallResNet.h"
#include <gtest/gtest.h>

using namespace sluice::test;

namespace {

constexpr int64_t kRows = 16;
constexpr int kSteps = 5;

struct Place {
  const char *name, *network, *devices;

  bool isResNet() const { return std::string(network) == "small_resnet"; }
  std::string textFor(const std::string &which) const {
    return isResNet() ? smallResNet(which, kRows)
                      : modelText(network, "--input f32 --batch 16 --copies insert --devices " + which);
  }
  Values batch(int step) const {
    std::string key = "devices/step" + std::to_string(step);
    int64_t pixels = isResNet() ? kSmallResNetChannels * kSmallResNetSide * kSmallResNetSide : 28 * 28;
    std::vector<float> image = portableUniform(key, size_t(kRows * pixels));
    std::vector<int64_t> labels = portableIntegers(key + "/label", size_t(kRows), 10);
    return {{"image", {image.begin(), image.end()}}, {"label", {labels.begin(), labels.end()}}};
  }
};
constexpr Place kPlaces[] = {
    {"LenetOnOne", "lenet", "cuda:0"},
    {"LenetOnTwo", "lenet", "cuda:0,cuda:1 --pin conv=gpu:0 --pin fc=gpu:1"},
    {"LenetOnFour", "lenet",
     "cuda:0,cuda:1,cuda:2,cuda:3 --pin conv1=gpu:0 --pin conv2=gpu:1 --pin fc1=gpu:2 --pin fc2=gpu:3"},
    {"LenetBesideTheHost", "lenet", "cpu,cuda:0 --pin conv=gpu:0"},
    {"LenetOnTwoBesideTheHost", "lenet", "cpu,cuda:0,cuda:1 --pin conv=gpu:0 --pin fc1=gpu:1"},
    {"MlpOnOne", "mlp", "cuda:0"},
    {"MlpOnTwo", "mlp", "cuda:0,cuda:1 --pin hidden=gpu:0 --pin fc1=gpu:0 --pin fc2=gpu:1 --pin fc3=gpu:1"},
    {"MlpOnFour", "mlp",
     "cuda:0,cuda:1,cuda:2,cuda:3 --pin hidden=gpu:0 --pin fc1=gpu:1 --pin fc2=gpu:2 --pin fc3=gpu:3"},
    {"MlpBesideTheHost", "mlp", "cpu,cuda:0 --pin hidden=gpu:0 --pin fc2=gpu:0"},
    {"ResNetOnOne", "small_resnet", "cuda:0"},
    {"ResNetOnTwo", "small_resnet", "cuda:0,cuda:1"},
    {"ResNetOnFour", "small_resnet", "cuda:0,cuda:1,cuda:2,cuda:3"},
    {"ResNetBesideTheHost", "small_resnet", "cpu,cuda:0"},
};

/// What training gives: losses, and by how much it moved each parameter.
struct Trained {
  std::vector<double> losses;
  Values changes;
};

/// By a model that has its states.
template <typename Model> Trained train(const Place &place, Model &model, const std::vector<std::string> &parameters) {
  Trained trained;
  for (const std::string &name : parameters)
    trained.changes[name] = model.state(name);
  for (int step = 0; step < kSteps; ++step)
    trained.losses.push_back(model.run("train_step", place.batch(step), kRows).at("loss")[0]);
  for (auto &[name, change] : trained.changes) {
    std::vector<double> after = model.state(name);
    for (size_t i = 0; i < change.size(); ++i)
      change[i] = after[i] - change[i];
  }
  return trained;
}

std::vector<std::string> parametersOf(const Compiled &model) {
  std::vector<std::string> names;
  for (const sluice::runtime::State &state : model.plan().states)
    if (state.kind == sluice::runtime::StateKind::parameter)
      names.push_back(state.name);
  return names;
}

void expectWithinYardstick(const std::string &what, const std::vector<double> &values, const std::vector<double> &host,
                           const std::vector<double> &truth) {
  double error = relativeError(values, truth), onHost = relativeError(host, truth);
  std::printf("  %-22s error %.2e, the host's %.2e\n", what.c_str(), error, onHost);
  EXPECT_TRUE(error <= allowedError(onHost)) << what << ": " << error << ", the host's is " << onHost;
}

class CudaNetworks : public testing::TestWithParam<Place> {};

} // namespace

TEST_P(CudaNetworks, TrainAsTheInterpreter) {
  const Place &place = GetParam();
  useCudaDoubles(/*devices=*/4, /*seed=*/int(place.name[0]));
  Compiled host(place.textFor("cpu")), model(place.textFor(place.devices));
  Interpreted interpreter(place.textFor("cpu"));
  host.init(3);
  model.init(3);
  for (auto &[name, value] : interpreter.states)
    value.data = host.state(name);
  std::vector<std::string> parameters = parametersOf(host);
  ASSERT_FALSE(parameters.empty());
  Trained truth = train(place, interpreter, parameters), onHost = train(place, host, parameters),
          trained = train(place, model, parameters);
  for (size_t step = 0; step < size_t(kSteps); ++step)
    expectWithinYardstick("loss of step " + std::to_string(step), {trained.losses[step]}, {onHost.losses[step]},
                          {truth.losses[step]});
  for (const auto &[name, change] : truth.changes)
    expectWithinYardstick(name, trained.changes.at(name), onHost.changes.at(name), change);
}

INSTANTIATE_TEST_SUITE_P(Emulated, CudaNetworks, testing::ValuesIn(kPlaces),
                         [](const auto &info) { return info.param.name; });
