// Every wait of the plans of a small LeNet for CUDA devices is needed: without it, some order of the emulated devices' work
// gives other bits. Launches are replayed as graphs where calls come back. What the host computes is done when it is issued:
// that waits for it are needed is told by races alone (waits_test.cpp).
#include "tests/cuda_emu/Doubles.h"
#include "tests/e2e/Portable.h"
#include "tests/e2e/devices/WaitDeletion.h"
#include <gtest/gtest.h>
#include <sluice/sluice.h>

using namespace sluice;
using namespace sluice::test;

namespace {

constexpr int64_t kBatch = 2, kSide = 10, kClasses = 5;

/// The layers of LeNet, of a size for emulated devices.
struct Convolutions : nn::Module {
  using Module::Module;
  nn::Conv2d conv1{this, "conv1", 1, 4, 3}, conv2{this, "conv2", 4, 6, 3};

  Tensor forward(Tensor x) override { return avg_pool2d(relu(conv2(avg_pool2d(relu(conv1(x)), 2))), 2); }
};

struct Dense : nn::Module {
  using Module::Module;
  nn::Linear fc1{this, "fc1", 6, 8}, fc2{this, "fc2", 8, kClasses};

  Tensor forward(Tensor x) override { return fc2(relu(fc1(x.flatten(1)))); }
};

struct Net : nn::Module {
  using Module::Module;
  Convolutions conv{this, "conv"};
  Dense fc{this, "fc"};

  explicit Net(Graph &graph) : Module(graph) {}
  Tensor forward(Tensor x) override { return fc(conv(x)); }
};

/// Its convolutions on the first accelerator, its dense layers on the last.
std::string smallLeNet(const std::string &devices) {
  Graph graph("small_lenet");
  graph.set_capacity(kBatch);
  graph.set_devices(devices);
  graph.set_copies("insert");
  Tensor image = graph.input("image", f32, {Dim{"batch"}, 1, kSide, kSide});
  Tensor label = graph.input("label", i32, {Dim{"batch"}});
  Net net{graph};
  net.conv.pin(gpu(0));
  net.fc.pin(gpu(int(gpu_count(graph)) - 1));
  Tensor logits = net(image);
  graph.minimize(cross_entropy(logits, label), optim::SGD{.lr = 0.1});
  return graph.str();
}

Values inputsFor(int call) {
  std::string key = "waits/step" + std::to_string(call);
  std::vector<float> pixels = portableUniform(key, size_t(kBatch * kSide * kSide));
  std::vector<int64_t> labels = portableIntegers(key + "/label", size_t(kBatch), int(kClasses));
  return {
      {"image", {pixels.begin(), pixels.end()}}, {"label", {labels.begin(), labels.end()}}, {"key", {double(call), 7}}};
}

struct Placement {
  const char *name, *devices;
};
constexpr Placement kPlacements[] = {{"OnOne", "cuda:0"}, {"OnTwo", "cuda:0,cuda:1"}};

class CudaWaits : public testing::TestWithParam<Placement> {};

} // namespace

TEST_P(CudaWaits, NoneCanBeLeftOut) {
  useCudaDoubles(/*devices=*/2);
  Compiled model(smallLeNet(GetParam().devices));
  EXPECT_GT(expectEveryWaitIsNeeded({model, inputsFor, kBatch, Hostile::EmulatedCuda}).bits, 0);
}

INSTANTIATE_TEST_SUITE_P(LeNet, CudaWaits, testing::ValuesIn(kPlacements),
                         [](const auto &info) { return info.param.name; });
