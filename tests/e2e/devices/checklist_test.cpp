// Values for checklist items that tests/frontend checks on graphs, on virtual accelerators: 3, 16, 21, 22, 24, 25, 35
// and 43.
#include <functional>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <map>
#include <sluice/compile.h>
#include <sluice/sluice.h>

using namespace sluice;
using testing::Contains;
using testing::Each;
using testing::ElementsAre;

namespace {

constexpr std::int64_t kRows = 2;

struct Accelerators : testing::Test {
  Accelerators() {
    g.set_capacity(kRows);
    g.set_devices("cpu,sim:0,sim:1");
  }

  Graph g{"checklist"};
  Tensor x = g.input("x", f32, {Dim{"batch"}, 2});

  /// The compiled graph after one call with x = 1, 2, 3, 4.
  Program ran(const char *entry) {
    Program program = compile(g);
    program.seed(3);
    program.run("init", 1);
    program.set_input("x", std::vector<float>{1, 2, 3, 4});
    program.run(entry, kRows);
    return program;
  }
};

/// The number of copies between two devices so far.
std::int64_t copies(const Program &program, const std::string &from, const std::string &to) {
  for (const TransferCount &count : program.transfers())
    if (count.from == from && count.to == to)
      return count.copies;
  return 0;
}

using checklist_03_gpu_is_one_accelerator = Accelerators;
using checklist_16_ops_preserve_dtype_and_device = Accelerators;
using checklist_21_to_and_copy_to = Accelerators;
using checklist_22_cpu_and_cuda = Accelerators;
using checklist_24_mixing_is_for_copy_alone = Accelerators;
using checklist_25_copy_to_existing = Accelerators;

struct Net : nn::Module {
  using Module::Module;
  nn::Conv2d conv{this, "conv", 3, 8, 3, {.padding = 1}};
  nn::BatchNorm2d bn{this, "bn", 8};
  nn::Linear fc{this, "fc", 512, 10};
  Tensor forward(Tensor x) override { return fc(relu(bn(conv(x))).flatten(1)); }
};

/// A loss with a buffer, like the weights of PyTorch's CrossEntropyLoss.
struct Criterion : nn::Module {
  Tensor weight;
  explicit Criterion(Module *parent) : Module(parent, "criterion") { weight = buffer("weight", {10}, init::ones()); }
  Tensor forward(Tensor logits) override { return (log_softmax(logits, 1) * weight).mean(); }
};

struct Model : nn::Module {
  using Module::Module;
  Net net{this, "net"};
  Criterion criterion{this};
  Tensor forward(Tensor x) override { return criterion(net(x)); }
};

using States = std::map<std::string, std::vector<float>>;

/// All states after three steps of a program for `devices`; `place` selects the device of each part.
States train(const std::string &devices, const std::function<Device(const Graph &)> &place) {
  Graph g{"net"};
  g.set_capacity(kRows);
  g.set_devices(devices);
  Device device = place(g);
  Model model{g};
  model.to(device);
  Tensor x = g.input("x", f32, {Dim{"batch"}, 3, 8, 8});
  g.minimize(model(x.to(device)), optim::SGD{.lr = 0.1, .momentum = 0.9});
  Program program = compile(g);
  program.seed(5);
  program.run("init", 1);
  for (int step = 0; step < 3; ++step) {
    std::vector<float> values(kRows * 3 * 64);
    for (size_t i = 0; i < values.size(); ++i)
      values[i] = float((i * 37 + size_t(step) * 11) % 29) / 29;
    program.set_input("x", values);
    program.run("train_step", kRows);
  }
  States states;
  for (const auto &list : {model.named_parameters(), model.named_buffers()})
    for (const auto &[name, state] : list)
      if (state.dtype() == f32)
        states[name] = program.state<float>(name);
  states["momentum"] = program.state<float>("net.conv.weight.momentum_buffer");
  return states;
}

} // namespace

TEST_F(checklist_03_gpu_is_one_accelerator, WithMemoryOfItsOwn) {
  nn::Module first{g}, second{g};
  Tensor a = first.buffer("a", {2}, init::zeros()), b = second.buffer("b", {2}, init::zeros());
  first.to(gpu(0));
  second.to(gpu(1));
  g.output("on0", x.to(gpu(0)) + a);
  g.output("on1", x.to(gpu(1)) + b);
  Program program = ran("predict");
  EXPECT_EQ(program.output<float>("on0"), program.output<float>("on1"));
  program.set_state("a", std::vector<float>{10, 20});
  program.set_input("x", std::vector<float>{1, 2, 3, 4});
  program.run("predict", kRows);
  EXPECT_THAT(program.output<float>("on0"), ElementsAre(11, 22, 13, 24));
  EXPECT_THAT(program.output<float>("on1"), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(program.state<float>("b"), ElementsAre(0, 0));
  EXPECT_EQ(copies(program, "acc0", "acc1") + copies(program, "acc1", "acc0"), 0);
}

TEST_F(checklist_16_ops_preserve_dtype_and_device, WithOneUploadAndOneDownload) {
  Tensor wide = g.input("wide", f64, {Dim{"batch"}, 2}), whole = g.input("whole", i32, {Dim{"batch"}, 2});
  g.output("floats", exp(x.to(gpu(1))) * 2.0);
  g.output("doubles", wide.to(gpu(1)) / 3.0);
  g.output("integers", whole.to(gpu(1)) * whole.to(gpu(1)));
  Program program = compile(g);
  program.set_input("x", std::vector<float>{0, 0, 0, 0});
  program.set_input("wide", std::vector<double>{1, 2, 4, 5});
  program.set_input("whole", std::vector<std::int32_t>{1, -2, 3, 46340});
  program.run("predict", kRows);
  EXPECT_THAT(program.output<float>("floats"), Each(2));
  EXPECT_THAT(program.output<double>("doubles"), ElementsAre(1 / 3., 2 / 3., 4 / 3., 5 / 3.));
  EXPECT_THAT(program.output<std::int32_t>("integers"), ElementsAre(1, 4, 9, 46340 * 46340));
  EXPECT_EQ(copies(program, "cpu", "acc1"), 3);
  EXPECT_EQ(copies(program, "acc1", "cpu"), 3);
  EXPECT_EQ(program.transfers().size(), 2u);
}

TEST_F(checklist_21_to_and_copy_to, ASecondToMovesNothing) {
  Tensor once = x.to(gpu(0)), twice = once.to(gpu(0)), other = once.copy_to(gpu(1));
  g.output("source", once * 1.0);
  g.output("same", twice + 1.0);
  g.output("other", other * 2.0);
  Program program = ran("predict");
  EXPECT_EQ(copies(program, "cpu", "acc0"), 1);
  EXPECT_EQ(copies(program, "acc0", "acc1"), 1);
  EXPECT_THAT(program.output<float>("source"), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(program.output<float>("same"), ElementsAre(2, 3, 4, 5));
  EXPECT_THAT(program.output<float>("other"), ElementsAre(2, 4, 6, 8));
}

TEST_F(checklist_22_cpu_and_cuda, CpuOfWhatIsThereMovesNothing) {
  Tensor up = x.cuda() + 1.0, down = up.cpu();
  g.output("y", down.cpu() * 2.0);
  Program program = ran("predict");
  EXPECT_THAT(program.output<float>("y"), ElementsAre(4, 6, 8, 10));
  EXPECT_EQ(copies(program, "cpu", "acc0"), 1);
  EXPECT_EQ(copies(program, "acc0", "cpu"), 1);
}

TEST_F(checklist_24_mixing_is_for_copy_alone, CopyTakesAnotherDeviceAndDType) {
  nn::Module root{g}, there{g};
  Tensor kept = root.buffer("kept", {2}, init::zeros()), w = there.parameter("w", {2}, init::constant(0.1));
  root.to(gpu(0));
  there.to(gpu(1));
  g.minimize((x.to(gpu(1)) * w).mean(), optim::SGD{.lr = 0.1});
  kept.copy_(g.full({2}, 1.25, f64).to(gpu(1)) + 1.0);
  EXPECT_THAT(ran("train_step").state<float>("kept"), Each(2.25F));
}

TEST_F(checklist_25_copy_to_existing, CrossesDevicesOnceAStep) {
  nn::Module root{g}, there{g};
  Tensor kept = root.buffer("kept", {2}, init::zeros()), w = there.parameter("w", {2}, init::constant(0.5));
  root.to(gpu(0));
  there.to(gpu(1));
  g.minimize((x.to(gpu(1)) * w).mean(), optim::SGD{.lr = 0.0});
  (w + 1.0).copy_to(kept);
  Program program = ran("train_step");
  EXPECT_THAT(program.state<float>("kept"), Each(1.5F));
  EXPECT_THAT(program.transfers(), Contains(TransferCount{"acc1", "acc0", 1, 2 * 4}));
}

TEST(checklist_35_modules_move, AndTrainToTheSameBits) {
  States expected = train("cpu", [](const Graph &) { return cpu(); });
  EXPECT_NE(expected.at("net.bn.running_mean"), std::vector<float>(8, 0));
  EXPECT_NE(expected.at("momentum"), std::vector<float>(expected.at("momentum").size(), 0));
  for (int number : {0, 1})
    EXPECT_EQ(train("cpu,sim:0,sim:1", [&](const Graph &) { return gpu(number); }), expected) << "gpu " << number;
}

TEST(checklist_43_try_gpu_runs_anywhere, ToTheSameBits) {
  auto place = [](const Graph &g) { return try_gpu(g); };
  EXPECT_EQ(train("cpu,sim:0", place), train("cpu", place));
}
