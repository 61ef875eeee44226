// Bits depend on the model and the instruction set, and on no other property of the target CPU.
#include "backends/cpu/compiler/machine/Target.h"
#include "tests/e2e/Harness.h"
#include "tests/e2e/Portable.h"
#include <functional>
#include <gtest/gtest.h>

using namespace sluice::test;

namespace {

struct Network {
  const char *program;
  int64_t rows, pixels, classes;
};

constexpr Network kLeNet{"lenet", 20, 784, 10}, kResNet{"resnet56", 4, 3 * 32 * 32, 10},
    kAlexNet{"alexnet_s", 2, 3 * 224 * 224, 1000};

/// A hash of all states after a full and a short step, which covers every pass of every layer.
size_t trainedFor(const std::string &cpu, const Network &network) {
  sluice::CompileOptions options;
  options.target_cpu = cpu;
  Compiled model(modelText(network.program, "--batch " + std::to_string(network.rows)), options);
  model.init(7);
  for (int64_t rows : {network.rows, network.rows / 2}) {
    std::vector<int64_t> image = portableIntegers("x", rows * network.pixels, 256);
    std::vector<int64_t> label = portableIntegers("y", rows, network.classes);
    model.run("train_step", {{"image", {image.begin(), image.end()}}, {"label", {label.begin(), label.end()}}}, rows);
  }
  std::vector<std::byte> states = model.stateBytes();
  return std::hash<std::string_view>()({reinterpret_cast<const char *>(states.data()), states.size()});
}

/// This machine's CPU name with its cache sizes multiplied by `times`.
std::string withCaches(double times) {
  sluice::cpu::Target host = sluice::cpu::Target::host();
  auto kilobytes = [&](int64_t bytes) { return std::to_string(int64_t(double(bytes) * times) >> 10) + "K"; };
  return "native:l1=" + kilobytes(host.l1) + ",l2=" + kilobytes(host.l2);
}

class TargetTest : public ::testing::TestWithParam<Network> {};

} // namespace

TEST_P(TargetTest, SameBitsWithHalfAndTwiceTheCaches) {
  size_t here = trainedFor("native", GetParam());
  EXPECT_EQ(here, trainedFor(withCaches(0.5), GetParam()));
  EXPECT_EQ(here, trainedFor(withCaches(2), GetParam()));
}

INSTANTIATE_TEST_SUITE_P(Networks, TargetTest, ::testing::Values(kLeNet, kResNet, kAlexNet),
                         [](const auto &network) { return std::string(network.param.program); });

// CPUs with one instruction set and different ports, caches and schedules.
TEST(TargetTest, SameBitsOnAllCpusOfAnInstructionSet) {
  size_t narrow = trainedFor("x86-64-v3", kLeNet);
  EXPECT_EQ(narrow, trainedFor("haswell", kLeNet));
  EXPECT_EQ(narrow, trainedFor("znver3:l1=8K,l2=4M", kLeNet));
  if (sluice::cpu::Target::host().vectorBits < 512)
    GTEST_SKIP() << "this machine has no AVX-512";
  size_t wide = trainedFor("x86-64-v4", kLeNet);
  EXPECT_EQ(wide, trainedFor("skylake-avx512", kLeNet)); // two 512-bit multiply-adds per cycle
  EXPECT_EQ(wide, trainedFor("icelake-client", kLeNet)); // one per cycle
  EXPECT_EQ(wide, trainedFor("native", kLeNet));
}
