// Captured and replayed steps have the same bits as steps without replays. The tests vary rows, settings and random
// numbers between replays, and use microbatches and replicas, on virtual accelerators and emulated CUDA devices.
#include "runtime/plugins/BackendLoader.h"
#include "runtime/plugins/BackendTables.h"
#include "tests/cuda_emu/Doubles.h"
#include "tests/e2e/Portable.h"
#include "tests/e2e/devices/SmallResNet.h"
#include "tests/e2e/replicas/Replicated.h"

#include <functional>
#include <gtest/gtest.h>
#include <sluice/sluice.h>

using namespace sluice::test;
using sluice::runtime::ReplayCount;

namespace {

constexpr int64_t kBatch = 4, kShared = 8;
constexpr int kSteps = 21; // enough for both buffer copies to be in two calls with each number of rows

struct Place {
  const char *name, *network, *devices;

  bool isResNet() const { return std::string(network) == "small_resnet"; }
  const char *weight() const { return isResNet() ? "fc.weight" : "fc2.weight"; }
};
constexpr Place kPlaces[] = {
    {"LenetOnSim", "lenet", "sim:0"},
    {"LenetBesideTheHost", "lenet", "cpu,sim:0 --pin conv=gpu:0"},
    {"LenetOnTwo", "lenet", "cpu,sim:0,sim:1 --pin conv=gpu:0 --pin fc=gpu:1"},
    {"MlpOnSim", "mlp", "sim:0"},
    {"LenetOnCuda", "lenet", "cuda:0"},
    {"MlpOnTwoCudas", "mlp", "cuda:0,cuda:1 --pin hidden=gpu:0 --pin fc1=gpu:0 --pin fc2=gpu:1 --pin fc3=gpu:1"},
    {"MlpOnACudaBesideTheHost", "mlp", "cpu,cuda:0 --pin hidden=gpu:0 --pin fc1=gpu:0"},
    {"ResNetOnCuda", "small_resnet", "cuda:0"},
};

std::string textFor(const Place &place, int64_t batch = kBatch) {
  if (place.isResNet())
    return smallResNet(place.devices, batch);
  return modelText(place.network,
                   "--input f32 --copies insert --batch " + std::to_string(batch) + " --devices " + place.devices);
}

/// Reports races on virtual devices.
RunOptions withReplays(bool replays) { return {.threads = 1, .sim = "seed=3,races=report", .replays = replays}; }

/// Over all replicas.
ReplayCount replaysOf(Compiled &model) { return model.program().replayCount(); }

/// Full batches, with a short batch after every fourth; the learning rate changes in train().
int64_t rowsOf(int step) { return step % 5 == 4 ? 3 : kBatch; }

/// Images of the model's input size.
Values batchFor(Compiled &model, int step, int64_t rows) {
  const sluice::runtime::Value &image = *model.program().entry("train_step").findInput("image");
  std::string key = "replays/step" + std::to_string(step);
  std::vector<float> pixels = portableUniform(key, size_t(model.program().bytesFor(image, rows)) / sizeof(float));
  std::vector<int64_t> labels = portableIntegers(key + "/label", size_t(rows), 10);
  return {{"image", {pixels.begin(), pixels.end()}}, {"label", {labels.begin(), labels.end()}}};
}

void train(Compiled &model, int steps, const std::function<int64_t(int)> &rows = rowsOf) {
  model.init(5);
  for (int step = 0; step < steps; ++step) {
    if (step == 7)
      model.setState("lr", {0.25});
    model.submit("train_step", batchFor(model, step, rows(step)), rows(step));
  }
}

class Replays : public testing::TestWithParam<Place> {};

/// Uses random numbers and Adam's corrections, which change in each step.
std::string droppedText() {
  using namespace sluice;
  Graph graph("dropped");
  graph.set_capacity(kShared);
  nn::Module root{graph};
  nn::Linear first{&root, "first", 12, 9}, second{&root, "second", 9, 10};
  nn::Dropout drop{&root, "drop", 0.5};
  Tensor image = graph.input("image", f32, {Dim{"batch"}, 12}), label = graph.input("label", i32, {Dim{"batch"}});
  graph.minimize(cross_entropy(second(drop(relu(first(image)))), label), optim::Adam{.lr = 0.05});
  return graph.str();
}

/// The split of a call's rows.
struct Cut {
  const char *name, *devices;
  int64_t replicas, microbatches;

  std::string text() const {
    return onReplicas(droppedText(), replicas, devices, /*syncBatchNorm=*/false, microbatches);
  }
};
constexpr Cut kCuts[] = {{"SimWhole", "sim:0", 1, 1},     {"SimInMicrobatches", "sim:0", 1, 4},
                         {"SimOnTwo", "sim:0-1", 2, 1},   {"SimOnTwoInMicrobatches", "sim:0-1", 2, 2},
                         {"CudaWhole", "cuda:0", 1, 1},   {"CudaInMicrobatches", "cuda:0", 1, 4},
                         {"CudaOnTwo", "cuda:0-1", 2, 1}, {"CudaOnTwoInMicrobatches", "cuda:0-1", 2, 2}};

class ReplaysOfCuts : public testing::TestWithParam<Cut> {};

RunOptions ofCuts(bool replays) {
  RunOptions options = withReplays(replays);
  options.sim += ",devices=2";
  return options;
}

} // namespace

TEST_P(Replays, ChangeNoBit) {
  useCudaDoubles(/*devices=*/4, /*seed=*/7);
  Compiled model(textFor(GetParam()), {}, withReplays(false));
  train(model, kSteps);
  std::vector<std::byte> expected = model.stateBytes();
  EXPECT_EQ(replaysOf(model).replays, 0);
  model.restart(withReplays(true));
  train(model, kSteps);
  EXPECT_TRUE(model.stateBytes() == expected);
  ReplayCount count = replaysOf(model);
  size_t segments = model.program().executor().segments(model.program().entry("train_step")).size();
  EXPECT_GT(segments, 0u);
  EXPECT_EQ(count.kept, 4 * segments) << "both numbers of rows, with each of two calls in flight";
  EXPECT_EQ(count.replays, int64_t((kSteps - 4) * segments)) << "all but the first call of each";
}

/// A learning rate captured in a sequence would be out of date in replays.
TEST_P(Replays, SeeSettingsThatChange) {
  useCudaDoubles(/*devices=*/4, /*seed=*/7);
  Compiled model(textFor(GetParam()), {}, withReplays(true));
  model.init(5);
  auto fullBatch = [](int) { return kBatch; };
  train(model, 7, fullBatch);
  int64_t before = replaysOf(model).replays;
  EXPECT_GT(before, 0);
  model.setState("lr", {0});
  std::vector<double> weights = model.state(GetParam().weight());
  model.submit("train_step", batchFor(model, 7, kBatch), kBatch);
  model.submit("train_step", batchFor(model, 8, kBatch), kBatch);
  EXPECT_TRUE(model.state(GetParam().weight()) == weights) << "without a learning rate nothing changes";
  model.setState("lr", {0.1});
  model.submit("train_step", batchFor(model, 9, kBatch), kBatch);
  EXPECT_FALSE(model.state(GetParam().weight()) == weights);
  EXPECT_GT(replaysOf(model).replays, before + 2) << "all three were replayed";
}

INSTANTIATE_TEST_SUITE_P(Places, Replays, testing::ValuesIn(kPlaces), [](const auto &info) { return info.param.name; });

/// Row offsets of microbatches and replicas, and random keys, are in memory. A sequence can therefore be reused for
/// another step, offset or total number of rows.
TEST_P(ReplaysOfCuts, DrawTheNumbersOfTheirStepAndRows) {
  useCudaDoubles(/*devices=*/2, /*seed=*/7);
  auto rows = [](int step) { return step % 5 == 4 ? kShared - 3 : kShared; };
  Compiled model(GetParam().text(), {}, ofCuts(false));
  train(model, 16, rows);
  std::vector<std::byte> expected = model.stateBytes();
  EXPECT_EQ(replaysOf(model).replays, 0);
  model.restart(ofCuts(true));
  train(model, 16, rows);
  EXPECT_TRUE(model.stateBytes() == expected);
  EXPECT_GT(replaysOf(model).replays, 0);
}

INSTANTIATE_TEST_SUITE_P(Cuts, ReplaysOfCuts, testing::ValuesIn(kCuts),
                         [](const auto &info) { return info.param.name; });

/// Full batches only: all microbatches have the same number of rows, whatever the total.
TEST(ReplaysOfMicrobatches, AreAsManyForAnyNumberOfThem) {
  useCudaDoubles(/*devices=*/2, /*seed=*/7);
  for (const char *device : {"sim:0", "cuda:0"}) {
    std::vector<size_t> kept;
    for (int64_t microbatches : {2, 8}) {
      Compiled model(Cut{"", device, 1, microbatches}.text(), {}, ofCuts(true));
      train(model, 8, [](int) { return kShared; });
      kept.push_back(replaysOf(model).kept);
    }
    EXPECT_GT(kept[0], 0u) << device;
    EXPECT_EQ(kept[1], kept[0]) << device;
  }
}

/// Alternating row counts evict each other's sequences while calls with them are in flight.
TEST(ReplaysOfManyRows, AreBounded) {
  constexpr int kCalls = 70;
  auto rows = [](int step) { return 1 + int64_t(step / 4 * 3 % 8); }; // twice with each of two copies
  for (const char *devices : {"sim:0", "cuda:0"}) {
    useCudaDoubles(/*devices=*/2, /*seed=*/7);
    Compiled model(textFor({"", "mlp", devices}, /*batch=*/8), {}, withReplays(false));
    train(model, kCalls, rows);
    std::vector<std::byte> expected = model.stateBytes();
    model.restart(withReplays(true));
    train(model, kCalls, rows);
    EXPECT_TRUE(model.stateBytes() == expected) << devices;
    size_t segments = model.program().executor().segments(model.program().entry("train_step")).size();
    EXPECT_GT(segments, 0u);
    EXPECT_EQ(replaysOf(model).kept, 8 * segments) << devices << ": as many as a segment keeps, of sixteen";
  }
}

/// Logs copy a step's outputs after the step; segments end there.
TEST(ReplaysOfLoggedCalls, KeepTheirOutputs) {
  std::vector<double> kept[2];
  sluice::runtime::CopyCounts copies[2];
  for (bool replays : {false, true}) {
    Compiled model(textFor({"", "lenet", "sim:0"}), {}, withReplays(replays));
    const sluice::runtime::Entry &entry = model.program().entry("train_step");
    model.program().keepOutputs(entry, {entry.findOutput("loss")});
    train(model, kSteps);
    kept[replays] = model.program().takeOutputs(entry);
    EXPECT_EQ(replaysOf(model).replays > 0, replays);
    copies[replays] = model.program().executor().executedCopies();
  }
  EXPECT_EQ(kept[0].size(), size_t(kSteps));
  EXPECT_EQ(kept[0], kept[1]);
  EXPECT_EQ(copies[0], copies[1]);
}

// Copies of memory that the driver did not allocate would block the host.
TEST(StepsOnCuda, CopyNoPageableMemory) {
  useCudaDoubles(/*devices=*/2, /*seed=*/7);
  for (const char *devices : {"cuda:0", "cpu,cuda:0 --pin fc1=gpu:0"}) {
    Compiled model(textFor({"", "mlp", devices}), {}, withReplays(true));
    const sluice::runtime::Entry &entry = model.program().entry("train_step");
    model.program().keepOutputs(entry, {entry.findOutput("loss")});
    train(model, 8);
    int64_t pageable = cudaCopies("pageable"), pinned = cudaCopies("pinned");
    for (int step = 0; step < 8; ++step)
      model.submit("train_step", batchFor(model, step, kBatch), kBatch);
    EXPECT_EQ(model.program().takeOutputs(entry).size(), 16u);
    EXPECT_EQ(cudaCopies("pageable"), pageable) << devices;
    EXPECT_GE(cudaCopies("pinned"), pinned + 8) << devices;
  }
}

TEST(ReplaysOfWatchedCalls, AreNone) {
  Compiled model(textFor({"", "mlp", "sim:0"}), {}, withReplays(true));
  size_t seen = 0;
  model.program().watch([&](const sluice::runtime::Entry &, size_t) { ++seen; });
  train(model, 8);
  EXPECT_GT(seen, 8u);
  EXPECT_EQ(replaysOf(model).replays, 0);
}

TEST(ReplaysOfTimedCalls, AreNone) {
  for (const char *devices : {"sim:0", "cuda:0"}) {
    useCudaDoubles(/*devices=*/2, /*seed=*/7);
    Compiled model(textFor({"", "mlp", devices}), {}, withReplays(true));
    model.program().times().start(/*oneByOne=*/false, /*most=*/6);
    train(model, 6);
    EXPECT_EQ(replaysOf(model).replays, 0) << devices;
    train(model, 12);
    EXPECT_GT(replaysOf(model).replays, 0) << devices << ": later calls are not timed";
    EXPECT_GT(model.program().times().take().size(), 6u) << devices;
  }
}

/// A backend of version 2.0 has no sequences: all work runs without replays.
TEST(ReplaysOfOlderBackends, AreNone) {
  using namespace sluice::runtime;
  sluice_backend_run older = findRunHalf("sim", {SLUICE_BINARY_DIR "/lib/sluice/backends"});
  older.struct_size = offsetof(sluice_backend_run, capture_begin);
  older.minor_version = 0;
  Compiled model(textFor({"", "mlp", "sim:0"}), {}, withReplays(true));
  train(model, 12);
  std::vector<std::byte> expected = model.stateBytes();
  RunOptions options = withReplays(true);
  options.simulator = &older;
  model.restart(options);
  train(model, 12);
  EXPECT_TRUE(model.stateBytes() == expected);
  EXPECT_EQ(replaysOf(model).replays, 0);
}

TEST(ReplaysOfTheHost, AreNone) {
  Compiled model(textFor({"", "mlp", "cpu"}), {}, withReplays(true));
  train(model, 8);
  EXPECT_EQ(replaysOf(model).kept, 0u);
}
