// The first step of language models on an accelerator, compared with PyTorch's results. Loss and gradients in f32 must
// be within three times PyTorch's own f32 error.
#include "tests/cuda_emu/Doubles.h"
#include "tests/e2e/GoldenNetworks.h"
#include "tests/e2e/GoldenTraining.h"
#include <gtest/gtest.h>

using namespace sluice::test;

namespace {

struct Place {
  const char *name, *device;
  const Network &network;
};
const Place kPlaces[] = {{"LstmSimulated", "sim:0", kSmallLstm},
                         {"LstmEmulated", "cuda:0", kSmallLstm},
                         {"Gpt2Simulated", "sim:0", kSmallGpt2},
                         {"Gpt2Emulated", "cuda:0", kSmallGpt2}};

Golden goldenOn(Network net, const std::string &device) {
  net.arguments += " --devices " + device;
  return Golden(net);
}

class GoldenDevices : public testing::TestWithParam<Place> {};

} // namespace

TEST_P(GoldenDevices, TrainAsPyTorch) {
  useCudaDoubles(/*devices=*/1, /*seed=*/3);
  Golden golden = goldenOn(GetParam().network, GetParam().device), onHost(GetParam().network);
  sluice::CompileOptions doubles;
  doubles.dtype = sluice::f64;
  Compiled model(withMomentum(golden.model(), golden)), exact(withMomentum(onHost.model(), onHost), doubles);
  expectFirstStep(exact, onHost);
  EXPECT_NEAR(train(model, golden, 1).losses[0], golden.loss(0), allowedError(golden.lossError()) * golden.loss(0));
  Values gradients = firstGradients(model, golden);
  for (auto &[name, error] : beyondYardstick(gradients, firstGradients(exact, onHost), golden.firstGradients()))
    ADD_FAILURE() << "the gradient of " << name << " has an error of " << error;
}

INSTANTIATE_TEST_SUITE_P(Accelerators, GoldenDevices, testing::ValuesIn(kPlaces),
                         [](const auto &info) { return info.param.name; });
