// Values of explicit data parallelism: items 44, 46 and 47 of the checklist on virtual accelerators.
#include <cmath>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <numeric>
#include <sluice/compile.h>
#include <sluice/sluice.h>

using namespace sluice;
using testing::DoubleNear;
using testing::ElementsAre;
using testing::Pointwise;

namespace {

struct Net : nn::Module {
  using Module::Module;
  nn::Linear fc1{this, "fc1", 20, 16}, fc2{this, "fc2", 16, 10};
  Tensor forward(Tensor x) override { return fc2(tanh(fc1(x))); }
};

std::vector<Device> firstOf(size_t count) {
  std::vector<Device> devices;
  for (size_t i = 0; i < count; ++i)
    devices.push_back(gpu(int(i)));
  return devices;
}

/// The results of the last step and all parameters after three steps with 50 rows on this many devices.
template <class T> std::vector<double> trained(size_t count) {
  Graph g{"net"};
  g.set_devices("sim:0-3");
  std::vector<Device> devices = firstOf(count);
  Net net{g};
  net.to(gpu(0));
  Tensor x = g.input("x", f32, {50, 20});
  Tensor y = nn::data_parallel(net, x, devices, {.even_split = false});
  g.output("y", y);
  g.minimize(mean(y * y), optim::SGD{.lr = 0.5});
  Program program = compile(g, {.dtype = DTypeOf<T>::value});
  program.seed(3);
  program.run("init", 1);
  std::vector<T> values(50 * 20);
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = T(std::sin(double(i)));
  for (int step = 0; step < 3; ++step) {
    program.set_input("x", values);
    program.run("train_step", 1);
  }
  program.set_input("x", values);
  program.run("predict", 1);
  std::vector<T> all = program.output<T>("y");
  for (const char *name : {"fc1.weight", "fc1.bias", "fc2.weight", "fc2.bias"}) {
    std::vector<T> state = program.state<T>(name);
    all.insert(all.end(), state.begin(), state.end());
  }
  return {all.begin(), all.end()};
}

} // namespace

TEST(checklist_44_split, RowsGoToTheirDevices) {
  Graph g{"split"};
  g.set_devices("sim:0-1");
  std::vector<Tensor> parts = split(g.input("x", f32, {4, 6}), firstOf(2));
  g.output("first", parts[0]);
  g.output("second", parts[1]);
  Program program = compile(g);
  std::vector<float> values(24);
  std::iota(values.begin(), values.end(), 0.0F);
  program.set_input("x", values);
  program.run("predict", 1);
  EXPECT_EQ(program.output<float>("first"), std::vector<float>(values.begin(), values.begin() + 12));
  EXPECT_EQ(program.output<float>("second"), std::vector<float>(values.begin() + 12, values.end()));
}

TEST(checklist_46_data_parallel, TrainsAsOneDeviceDoes) {
  std::vector<double> one = trained<double>(1), single = trained<float>(1);
  for (size_t count : {2, 3, 4}) {
    EXPECT_THAT(trained<double>(count), Pointwise(DoubleNear(1e-12), one)) << count << " devices";
    EXPECT_THAT(trained<float>(count), Pointwise(DoubleNear(1e-6), single)) << count << " devices";
  }
}

// As in PyTorch, the statistics are those of the first device's rows.
TEST(checklist_46_data_parallel, KeepsTheStatisticsOfTheFirstDevice) {
  Graph g{"norm"};
  g.set_devices("sim:0-1");
  nn::Module net{g};
  nn::BatchNorm2d bn{&net, "bn", 1};
  net.to(gpu(0));
  Tensor y = nn::data_parallel(bn, g.input("x", f32, {4, 1, 1, 1}), firstOf(2));
  g.minimize(mean(y * y), optim::SGD{.lr = 0});
  Program program = compile(g);
  program.seed(1);
  program.run("init", 1);
  program.set_input("x", std::vector<float>{1, 3, 70, 90});
  program.run("train_step", 1);
  EXPECT_THAT(program.state<float>("bn.running_mean"), ElementsAre(testing::FloatNear(0.1F * 2, 1e-6F)));
  EXPECT_THAT(program.state<float>("bn.running_var"), ElementsAre(testing::FloatNear(0.9F + 0.1F * 2, 1e-6F)));
}

TEST(checklist_47_allreduce, GivesTheSumToAll) {
  Graph g{"sum"};
  g.set_devices("sim:0-1");
  Tensor a = g.input("a", f32, {2}), b = g.input("b", f32, {2});
  std::vector<Tensor> sums = allreduce({a.to(gpu(0)), b.to(gpu(1))});
  g.output("first", sums[0]);
  g.output("second", sums[1]);
  Program program = compile(g);
  program.set_input("a", std::vector<float>{1, 1});
  program.set_input("b", std::vector<float>{2, 2});
  program.run("predict", 1);
  EXPECT_THAT(program.output<float>("first"), ElementsAre(3, 3));
  EXPECT_THAT(program.output<float>("second"), ElementsAre(3, 3));
}

// All copies have the same initial bits, generated once, and are updated independently.
TEST(checklist_47_get_params, CopiesAreParametersOfTheirOwn) {
  Graph g{"copies"};
  g.set_devices("cpu,sim:0-1");
  nn::Module net{g};
  Tensor weight = net.parameter("weight", {10, 6}, init::normal(0.0, 1.0));
  Tensor other = net.parameter("other", {2}, init::uniform(0.0, 1.0));
  net.to(cpu());
  Tensor host = get_params({weight}, cpu()).front(), first = get_params({weight}, gpu(0)).front();
  Tensor second = get_params({weight}, gpu(1)).front();
  first.copy_(first + 1.0);
  g.output("second", second);
  g.output("other", other);
  Program program = compile(g);
  program.seed(1);
  program.run("init", 1);
  std::vector<float> begin = program.state<float>("weight"), later = begin;
  for (float &each : later)
    each += 1;
  for (const char *name : {"weight.cpu", "weight.gpu0", "weight.gpu1"})
    EXPECT_EQ(program.state<float>(name), begin) << name;
  program.run("train_step", 1);
  EXPECT_EQ(program.state<float>("weight.gpu0"), later);
  for (const char *name : {"weight", "weight.cpu", "weight.gpu1"})
    EXPECT_EQ(program.state<float>(name), begin) << name;
  program.run("predict", 1);
  EXPECT_EQ(program.output<float>("second"), begin);
  EXPECT_NE(begin, std::vector<float>(60, begin[0]));
}
