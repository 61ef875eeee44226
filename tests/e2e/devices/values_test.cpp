// Results of graphs on several devices: checklist items that need values, on virtual accelerators.
#include "tests/frontend/Observe.h"

#include <bit>
#include <cmath>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <limits>
#include <sluice/compile.h>
#include <sluice/sluice.h>

using namespace sluice;
using testing::ElementsAre;

namespace {

std::vector<uint32_t> bitsOf(const std::vector<float> &values) {
  std::vector<uint32_t> bits;
  for (float value : values)
    bits.push_back(std::bit_cast<uint32_t>(value));
  return bits;
}

Graph twoAccelerators(const char *name) {
  Graph g{name};
  g.set_capacity(4);
  g.set_devices("cpu,sim:0,sim:1");
  return g;
}

} // namespace

TEST(checklist_23_copies_between_all_devices, BitsStayTheSame) {
  Graph g = twoAccelerators("copies");
  Tensor x = g.input("x", f32, {Dim{"batch"}, 4});
  Tensor up = x.to(gpu(0)), across = up.to(gpu(1)), back = across.to(gpu(0)), again = back.copy_to(gpu(0)),
         down = again.cpu(), same = down.copy_to(cpu());
  std::pair<const char *, Tensor> outputs[] = {{"up", up},       {"across", across}, {"back", back},
                                               {"again", again}, {"down", down},     {"same", same}};
  for (auto &[name, value] : outputs)
    g.output(name, value);
  Program program = compile(g);

  using Limits = std::numeric_limits<float>;
  std::vector<float> odd{
      0.0F,     -0.0F, Limits::denorm_min(), -Limits::max(), Limits::infinity(), std::bit_cast<float>(0x7fc12345u),
      1.0F / 3, 1e-30F};
  program.set_input("x", odd);
  program.run("predict", 2);
  for (auto &[name, value] : outputs)
    EXPECT_EQ(bitsOf(program.output<float>(name)), bitsOf(odd)) << name;
}

TEST(checklist_27_sum_after_moving, IsComputedOnTheCommonDevice) {
  Graph g = twoAccelerators("sum");
  Tensor x = g.input("x", f32, {Dim{"batch"}, 2});
  Tensor y = x.to(gpu(0)) * 2.0, z = x.to(gpu(1)) + 1.0;
  Tensor sum = y.to(gpu(1)) + z;
  EXPECT_EQ(sum.device(), gpu(1));
  g.output("sum", sum);
  Program program = compile(g);
  program.set_input("x", std::vector<float>{1, 2, 3, 4});
  program.run("predict", 2);
  EXPECT_THAT(program.output<float>("sum"), ElementsAre(4, 7, 10, 13));
}

// A training step on an accelerator uploads its batch, and makes no other copy without requests.
TEST(checklist_28_transfer_counters, ATrainingStepShowsTheBatchUploadAlone) {
  Graph g{"line"};
  g.set_capacity(4);
  g.set_devices("cpu,sim:0");
  Tensor x = g.input("x", f32, {Dim{"batch"}, 3}), target = g.input("target", f32, {Dim{"batch"}, 2});
  nn::Module net{g};
  nn::Linear fc{&net, "fc", 3, 2};
  net.to(gpu(0));
  Tensor error = fc(x.to(gpu(0))) - target.to(gpu(0));
  g.minimize(mean(error * error), optim::SGD{.lr = 0.1, .momentum = 0.9});
  Program program = compile(g);
  program.seed(1);
  program.run("init", 1);
  auto step = [&](std::int64_t rows) {
    program.set_input("x", std::vector<float>(size_t(rows) * 3, 1.0F));
    program.set_input("target", std::vector<float>(size_t(rows) * 2, 2.0F));
    program.run("train_step", rows);
  };
  step(4); // also uploads the learning rate
  for (std::int64_t rows : {4, 4, 3}) {
    std::vector<TransferCount> before = program.transfers();
    step(rows);
    ASSERT_EQ(before.size(), 1u);
    TransferCount expected{"cpu", "acc0", before[0].copies + 2, before[0].bytes + rows * (3 + 2) * 4};
    EXPECT_THAT(program.transfers(), ElementsAre(expected));
  }
  program.output<float>("loss");
  TransferCount asked{"acc0", "cpu", 1, 4};
  EXPECT_THAT(program.transfers(), testing::Contains(asked));
}

TEST(checklist_36_net_computes_where_it_lives, OnEveryDeviceWithTheSameBits) {
  std::vector<float> expected;
  for (const char *where : {"cpu", "gpu:0", "gpu:1"}) {
    Graph g = twoAccelerators("net");
    Tensor x = g.input("x", f32, {Dim{"batch"}, 3});
    nn::Module net{g};
    nn::Linear fc{&net, "fc", 3, 5};
    net.to(where);
    Tensor y = relu(fc(x.to(where)));
    EXPECT_EQ(y.device(), Device(where));
    g.output("y", y);
    Program program = compile(g);
    program.seed(7);
    program.run("init", 1);
    program.set_input("x", std::vector<float>{1, -2, 3, 0.5F, 0.25F, -1});
    program.run("predict", 2);
    if (expected.empty())
      expected = program.output<float>("y");
    EXPECT_EQ(bitsOf(program.output<float>("y")), bitsOf(expected)) << where;
  }
}

/// A layer trained on up to five rows, with its initial values.
static Program trainedLine(const CompileOptions &options) {
  Graph g{"line"};
  g.set_capacity(5);
  Tensor x = g.input("x", f32, {Dim{"batch"}, 3});
  nn::Module net{g};
  nn::Linear fc{&net, "fc", 3, 2};
  Tensor y = fc(x);
  g.output("y", y);
  g.minimize(mean(y * y), optim::SGD{.lr = 0.1});
  Program program = compile(g, options);
  program.seed(1);
  program.run("init", 1);
  return program;
}

static const std::vector<float> kFiveRows = {1, 2, 3, 4, 5, 6, 7, 8, 9, -1, -2, -3, -4, -5, -6};

// Replicas share the rows of a call and act as one program: whole batches in, whole results out.
TEST(checklist_48_replicas, TrainAsOneDevice) {
  auto trained = [](const CompileOptions &options, TransferCount uploads) {
    Program program = trainedLine(options);
    TransferCount before;
    for (const char *entry : {"train_step", "train_step", "predict"}) {
      std::vector<TransferCount> soFar = program.transfers();
      before = soFar.empty() ? TransferCount() : soFar.front();
      program.set_input("x", kFiveRows);
      program.run(entry, 5);
    }
    uploads.copies += before.copies;
    uploads.bytes += before.bytes;
    EXPECT_THAT(program.transfers(), ElementsAre(uploads));
    return program.output<float>("y");
  };
  std::vector<float> expected = trained({.devices = "sim:0"}, {"cpu", "acc0", 1, 5 * 3 * 4});
  ASSERT_EQ(expected.size(), 10u);
  EXPECT_THAT(trained({.devices = "sim:0-1", .replicas = 2}, {"cpu", "acc0", 2, 5 * 3 * 4}),
              testing::Pointwise(testing::FloatNear(1e-5F), expected));
}

TEST(checklist_48_replicas, AreAskedForByASensibleNumber) {
  Graph g{"half"};
  g.output("y", relu(g.input("x", f32, {Dim{"batch"}, 3})));
  auto refusal = [&](const CompileOptions &options) { return sluice::test::messageOf([&] { compile(g, options); }); };
  for (int replicas : {-1, 1025})
    EXPECT_EQ(refusal({.replicas = replicas}),
              "compile: replicas: '" + std::to_string(replicas) + "' is neither a whole number from 1 to 1024 nor env");
  EXPECT_EQ(refusal({.replicas = 0}),
            "compile: replicas: cannot use one replica per launched process in process; set a number");
  EXPECT_THAT(refusal({.devices = "sim:0-2", .replicas = 2}), testing::HasSubstr("replicas"));
  EXPECT_THAT(refusal({.replicas = 2, .batch_norm = "global"}),
              testing::HasSubstr("batch_norm: 'global' is none of local, sync"));
}

/// A call in microbatches has the result of a single call.
TEST(Accumulate, TrainsAsOneCall) {
  auto trained = [](const CompileOptions &options) {
    Program program = trainedLine(options);
    for (const char *entry : {"train_step", "train_step", "predict"}) {
      program.set_input("x", kFiveRows);
      program.run(entry, 5);
    }
    return program.output<float>("y");
  };
  std::vector<float> expected = trained({});
  ASSERT_EQ(expected.size(), 10u);
  constexpr float allowed = 1e-4F; // a few roundings of values up to 200
  for (int microbatches : {2, 3, 5})
    EXPECT_THAT(trained({.accumulate = microbatches}), testing::Pointwise(testing::FloatNear(allowed), expected));
  EXPECT_THAT(trained({.devices = "sim:0-1", .replicas = 2, .accumulate = 2}),
              testing::Pointwise(testing::FloatNear(allowed), expected));
}

TEST(Accumulate, IsAskedForASensibleNumber) {
  Graph g{"half"};
  g.output("y", relu(g.input("x", f32, {Dim{"batch"}, 3})));
  auto refusal = [&](const CompileOptions &options) { return sluice::test::messageOf([&] { compile(g, options); }); };
  for (int microbatches : {0, -1, 1025})
    EXPECT_EQ(refusal({.accumulate = microbatches}),
              "compile: accumulate: '" + std::to_string(microbatches) + "' is not a whole number from 1 to 1024");
}
