// Checklist items on asynchrony, logging and several devices, and exercises that need accelerators: 30 to 34, 52, 53
// and 55. They run on virtual accelerators and emulated CUDA devices. tools/gpu_check measures the crossover of item
// 50; the conformance suite of every backend covers item 54 (tests/conformance).
#include "tests/cuda_emu/Doubles.h"
#include "tests/e2e/Harness.h"
#include "tests/e2e/Portable.h"
#include "tests/e2e/devices/Placed.h"

#include <barrier>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sluice/sluice.h>
#include <span>
#include <thread>

using namespace sluice;
using namespace sluice::test;
using runtime::DeviceEvent;

namespace {

constexpr int64_t kRows = 2, kColumns = 4;

/// Two devices of one backend.
class Accelerators : public testing::TestWithParam<const char *> {
public:
  Accelerators() { useCudaDoubles(/*devices=*/2); }

  std::string device(int number) const { return GetParam() + (":" + std::to_string(number)); }
  std::string bothDevices() const { return "cpu," + device(0) + "," + device(1); }

  /// An empty graph for the host and both devices.
  Graph graph(const char *name) const { return graphFor(name, bothDevices()); }
  static Graph graphFor(const char *name, const std::string &devices) {
    Graph g{name};
    g.set_capacity(kRows);
    g.set_devices(devices);
    g.set_copies("insert");
    return g;
  }
  static Tensor input(Graph &g, const char *name) { return g.input(name, f32, {Dim{"batch"}, kColumns}); }
};

Values rowsOf(const std::string &name, int call = 0) {
  std::vector<float> values = portableUniform("asynchrony/" + name + std::to_string(call), kRows * kColumns);
  return {{name, {values.begin(), values.end()}}};
}

/// An event after all enqueued work of a queue, in the plan's numbering.
std::unique_ptr<DeviceEvent> recorded(Compiled &model, const std::string &queue) {
  const std::vector<runtime::Queue> &queues = model.plan().queues;
  auto found = std::find_if(queues.begin(), queues.end(), [&](const runtime::Queue &its) { return its.name == queue; });
  runtime::DeviceQueue &behind = model.program().executor().devices().queue(size_t(found - queues.begin()));
  auto event = std::make_unique<DeviceEvent>(behind.context());
  behind.record(*event);
  return event;
}

/// Reads one output of the last call of `predict`.
std::vector<double> read(Compiled &model, const std::string &name) {
  std::vector<float> values(kRows * kColumns);
  const runtime::Value &output = *model.program().entry("predict").findOutput(name);
  model.program().getOutput(output, std::as_writable_bytes(std::span(values)), kRows);
  return {values.begin(), values.end()};
}

std::vector<double> twice(const std::vector<double> &values) {
  std::vector<double> result;
  for (double value : values)
    result.push_back(2 * value);
  return result;
}

/// The engines' count of copies from a device to the host.
int64_t downloads(Compiled &model) {
  int64_t copies = 0;
  for (const auto &[pair, count] : byPair(model.program().executor().engineCopies()))
    copies += pair.second == 0 ? count.copies : 0;
  return copies;
}

int64_t launches(Compiled &model) {
  int64_t count = 0;
  for (const runtime::Action &action : model.plan().findEntry("predict")->actions)
    count += action.launch() != nullptr;
  return count;
}

/// Two products of the same rows: on both devices, or in sequence on the first.
Graph twoProducts(const std::string &devices, bool apart) {
  Graph g = Accelerators::graphFor("products", devices);
  Tensor x = Accelerators::input(g, "x");
  for (int i : {0, 1}) {
    Tensor there = x.to(gpu(apart ? i : 0)) + double(i);
    g.output(i ? "second" : "first", matmul(there.transpose(0, 1), there));
  }
  return g;
}

/// A loss and its training step on the first device.
Graph regression(const std::string &devices) {
  Graph g = Accelerators::graphFor("regression", devices);
  Tensor x = Accelerators::input(g, "x");
  nn::Module root{g};
  Tensor w = root.parameter("w", {kColumns}, init::ones());
  g.minimize(square(x * w).mean(), optim::SGD{.lr = 0.125});
  return g;
}

using checklist_30_enqueue_returns_before_completion = Accelerators;
using checklist_31_no_device_blocks_another = Accelerators;
using checklist_32_log_on_device = Accelerators;
using checklist_33_one_big_operation = Accelerators;
using checklist_34_one_submitted_graph = Accelerators;
using checklist_52_products_and_their_norms = Accelerators;
using checklist_53_two_devices_at_once = Accelerators;
using checklist_55_out_of_memory_is_reported = Accelerators;

} // namespace

TEST_P(checklist_30_enqueue_returns_before_completion, AndReadingWaitsForThatValueOnly) {
  Graph g = graph("two");
  g.output("first", input(g, "a").to(gpu(0)) * 2.0);
  g.output("second", input(g, "b").to(gpu(1)) * 2.0);
  Compiled model(g.str());
  int untouched = 0;
  for (int seed = 0; seed < 8; ++seed) {
    useCudaDoubles(/*devices=*/2, seed);
    model.restart({.threads = 1, .sim = "seed=" + std::to_string(seed)});
    Values a = rowsOf("a"), inputs = a;
    inputs.merge(rowsOf("b"));
    model.submit("predict", inputs, kRows);
    auto first = recorded(model, "acc0"), second = recorded(model, "acc1");
    EXPECT_FALSE(first->isDone());
    EXPECT_FALSE(second->isDone());
    EXPECT_EQ(read(model, "first"), twice(a.at("a")));
    untouched += !second->isDone();
    model.program().synchronize();
    EXPECT_TRUE(second->isDone()) << "synchronize waits for everything";
  }
  EXPECT_GT(untouched, 0) << "reading the one waited for the other, whatever the order of work";
}

// A second host thread starts a call while the first one's call is in progress, and vice versa. The conformance test
// signal.keeps_nobody_else of every backend checks that a waiting queue does not block others.
TEST_P(checklist_31_no_device_blocks_another, TwoHostThreadsEachDriveOne) {
  constexpr int kCalls = 3;
  std::barrier together(2);
  std::vector<double> found[2];
  std::vector<std::jthread> threads;
  for (std::vector<double> &result : found) {
    Graph g = graphFor("one", device(int(&result - found)));
    g.output("y", input(g, "x") * 2.0);
    auto model = std::make_shared<Compiled>(g.str(), CompileOptions(), RunOptions{.threads = 1});
    threads.emplace_back([&result, &together, model] {
      model->program().watch([&](const runtime::Entry &, size_t) { together.arrive_and_wait(); });
      for (int call = 0; call < kCalls; ++call)
        model->submit("predict", rowsOf("x", call), kRows);
      model->program().watch({});
      result = read(*model, "y");
    });
  }
  threads.clear();
  EXPECT_EQ(found[0], twice(rowsOf("x", kCalls - 1).at("x")));
  EXPECT_EQ(found[1], found[0]);
}

TEST_P(checklist_32_log_on_device, CrossesOnceAtTheEnd) {
  constexpr int kSteps = 10;
  Compiled model(regression(device(0)).str());
  auto begin = [&] {
    model.restart({.threads = 1});
    model.init(3);
    return downloads(model);
  };
  std::vector<double> read;
  int64_t before = begin();
  for (int step = 0; step < kSteps; ++step)
    read.push_back(model.run("train_step", rowsOf("x", step), kRows).at("loss")[0]);
  EXPECT_EQ(downloads(model) - before, kSteps);

  before = begin();
  const runtime::Entry &again = model.program().entry("train_step");
  model.program().keepOutputs(again, {again.findOutput("loss")});
  for (int step = 0; step < kSteps; ++step)
    model.submit("train_step", rowsOf("x", step), kRows);
  EXPECT_EQ(model.program().takeOutputs(again), read);
  EXPECT_EQ(downloads(model) - before, 1);
  EXPECT_LT(read.back(), read.front());
}

TEST_P(checklist_33_one_big_operation, IsOneLaunchWhereSmallOnesAreMany) {
  constexpr int kOps = 12;
  Graph g = graphFor("chain", device(0));
  Tensor y = input(g, "x");
  for (int i = 0; i < kOps; ++i)
    y = i % 2 ? y * 0.5 : y + 1.0;
  g.output("y", y);
  sluice::CompileOptions apart;
  apart.fuse = false;
  Compiled one(g.str()), many(g.str(), apart);
  EXPECT_EQ(launches(one), 1);
  EXPECT_EQ(launches(many), kOps);
  EXPECT_EQ(one.run("predict", rowsOf("x"), kRows), many.run("predict", rowsOf("x"), kRows));
}

// Intermediate values are copied to the host only if they are read.
TEST_P(checklist_34_one_submitted_graph, BeatsCallsWithReadsBetween) {
  Graph whole = graphFor("whole", device(0)), half = graphFor("half", device(0));
  whole.output("y", tanh(tanh(input(whole, "x"))));
  half.output("y", tanh(input(half, "x")));
  Compiled once(whole.str()), twice(half.str());
  std::vector<double> submitted = once.run("predict", rowsOf("x"), kRows).at("y");
  std::vector<double> between = twice.run("predict", rowsOf("x"), kRows).at("y");
  EXPECT_EQ(twice.run("predict", {{"x", between}}, kRows).at("y"), submitted);
  EXPECT_EQ(downloads(once), 1);
  EXPECT_EQ(downloads(twice), 2);
}

// The trace of M Mt is the sum of squares of M.
TEST_P(checklist_52_products_and_their_norms, AreLoggedWithOneTransfer) {
  constexpr int64_t kSize = 10, kProducts = 20;
  Graph g{"products"};
  g.set_capacity(kSize);
  g.set_devices(device(0));
  Tensor x = g.input("x", f32, {kSize, kSize}), eye = g.input("eye", f32, {kSize, kSize});
  Tensor m = matmul(x, x);
  g.output("trace", (matmul(m, m.transpose(0, 1)) * eye).sum());
  g.output("frobenius", sqrt(square(m).sum()));
  Compiled model(g.str());
  const runtime::Entry &entry = model.program().entry("predict");
  model.program().keepOutputs(entry, {entry.findOutput("trace"), entry.findOutput("frobenius")});
  std::vector<double> unit(kSize * kSize);
  for (int64_t i = 0; i < kSize; ++i)
    unit[size_t(i * (kSize + 1))] = 1;
  for (int call = 0; call < kProducts; ++call) {
    std::vector<float> values = portableUniform("products" + std::to_string(call), kSize * kSize);
    model.submit("predict", {{"x", {values.begin(), values.end()}}, {"eye", unit}}, kSize);
  }
  std::vector<double> logged = model.program().takeOutputs(entry);
  ASSERT_EQ(logged.size(), size_t(2 * kProducts));
  for (size_t i = 0; i < logged.size(); i += 2)
    EXPECT_NEAR(logged[i + 1] * logged[i + 1], logged[i], 1e-5 * logged[i]);
  EXPECT_EQ(downloads(model), 1);
}

INSTANTIATE_TEST_SUITE_P(, checklist_30_enqueue_returns_before_completion, testing::Values("sim", "cuda"));
INSTANTIATE_TEST_SUITE_P(, checklist_31_no_device_blocks_another, testing::Values("sim", "cuda"));
INSTANTIATE_TEST_SUITE_P(, checklist_32_log_on_device, testing::Values("sim", "cuda"));
INSTANTIATE_TEST_SUITE_P(, checklist_33_one_big_operation, testing::Values("sim", "cuda"));
INSTANTIATE_TEST_SUITE_P(, checklist_34_one_submitted_graph, testing::Values("sim", "cuda"));
INSTANTIATE_TEST_SUITE_P(, checklist_52_products_and_their_norms, testing::Values("sim", "cuda"));

TEST_P(checklist_53_two_devices_at_once, AreBothBusyAndGiveWhatOneGives) {
  Compiled one(twoProducts(bothDevices(), /*apart=*/false).str()),
      two(twoProducts(bothDevices(), /*apart=*/true).str());
  two.submit("predict", rowsOf("x"), kRows);
  auto first = recorded(two, "acc0"), second = recorded(two, "acc1");
  EXPECT_FALSE(first->isDone());
  EXPECT_FALSE(second->isDone());
  EXPECT_EQ(two.outputs("predict", kRows), one.run("predict", rowsOf("x"), kRows));
}

INSTANTIATE_TEST_SUITE_P(, checklist_53_two_devices_at_once, testing::Values("sim", "cuda"));

// "Almost linear": a training step of two products, each on a separate device, by the virtual devices' clock.
TEST(checklist_53_two_virtual_devices_at_once, TakeLittleMoreThanHalfTheTime) {
  constexpr int64_t kSize = 256;
  auto seconds = [&](int second) {
    Graph g{"two"};
    g.set_capacity(kSize);
    g.set_devices("cpu,sim:0,sim:1");
    g.set_copies("insert");
    Tensor x = g.input("x", f32, {Dim{"batch"}, 4});
    Tensor losses[2];
    nn::Module root{g}, parts[] = {{&root, "first"}, {&root, "second"}};
    for (int i : {0, 1}) {
      Device device = gpu(i * second);
      Tensor a = parts[i].parameter("a", {kSize, kSize}, init::uniform(-1, 1)),
             b = parts[i].parameter("b", {kSize, kSize}, init::uniform(-1, 1));
      parts[i].to(device);
      losses[i] = square(matmul(a, b)).mean().cpu();
    }
    g.minimize(losses[0] + losses[1] + x.mean() * 0.0, optim::SGD{.lr = 0.1});
    Compiled model(g.str());
    model.init(1);
    return clockSeconds(model, {{"x", std::vector<double>(kSize * 4)}}, kSize);
  };
  EXPECT_GE(seconds(0) / seconds(1), 1.8);
}

// Three vectors of 8 GB exceed 16 GB.
TEST_P(checklist_55_out_of_memory_is_reported, AndTheProcessGoesOn) {
  Graph g = graphFor("large", device(0)), small = graphFor("small", device(0));
  nn::Module root{g};
  Tensor y = input(g, "x");
  for (const char *name : {"first", "second", "third"})
    y = y + root.buffer(name, {2'000'000'000}, init::zeros()).sum();
  g.output("y", y);
  small.output("y", input(small, "x") * 2.0);
  try {
    Compiled model(g.str());
    FAIL() << "it fits";
  } catch (const std::exception &error) {
    EXPECT_THAT(error.what(), testing::AllOf(testing::HasSubstr("gpu(0)"), testing::HasSubstr(device(0)),
                                             testing::HasSubstr("the plan (24000000"), testing::HasSubstr("free")));
  }
  EXPECT_EQ(Compiled(small.str()).run("predict", rowsOf("x"), kRows).at("y"), twice(rowsOf("x").at("x")));
}

INSTANTIATE_TEST_SUITE_P(, checklist_55_out_of_memory_is_reported, testing::Values("sim", "cuda"));
