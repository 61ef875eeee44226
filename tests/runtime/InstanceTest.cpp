#include "runtime/instance/Instance.h"
#include "LogisticRegression.h"
#include "runtime/base/Status.h"
#include "runtime/instance/BenchState.h"
#include "runtime/io/File.h"
#include "sluice/runtime/api.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <numeric>
#include <optional>

using namespace sluice;
using namespace sluice::runtime;

namespace {

const std::string &plan() {
  static const std::string text = test::logisticRegressionPlan();
  return text;
}

const sluice_artifact &artifact() {
  static const sluice_artifact table = test::logisticRegression(plan());
  return table;
}

template <typename T> std::span<const std::byte> bytes(const std::vector<T> &values) {
  return std::as_bytes(std::span(values));
}

/// Generated images and labels.
struct Batch {
  std::vector<uint8_t> images;
  std::vector<int32_t> labels;

  Batch(int64_t rows, uint32_t seed)
      : images(static_cast<size_t>(rows * test::pixels)), labels(static_cast<size_t>(rows)) {
    for (uint8_t &pixel : images)
      pixel = static_cast<uint8_t>((seed = seed * 1664525 + 1013904223) >> 24);
    for (int32_t &label : labels)
      label = static_cast<int32_t>((seed = seed * 1664525 + 1013904223) >> 24) % test::classes;
  }
};

void initialise(Instance &instance) {
  const Entry &init = instance.entry("init");
  instance.setInput(init.inputs[0], bytes(std::vector<int32_t>{0, 5}), 1);
  instance.run(init, 1);
}

/// Every state after several steps with varying numbers of rows.
std::vector<Bytes> statesAfterTraining(int threads) {
  Instance instance(artifact(), std::make_shared<DevicePool>(), {threads, ""});
  initialise(instance);
  const Entry &step = instance.entry("train_step");
  for (int i = 0; i < 20; ++i) {
    int64_t rows = 1 + i * 7 % test::capacity;
    Batch batch(rows, static_cast<uint32_t>(i));
    instance.setInput(step.inputs[0], bytes(batch.images), rows);
    instance.setInput(step.inputs[1], bytes(batch.labels), rows);
    instance.run(step, rows);
  }
  std::vector<Bytes> states;
  for (const State &state : instance.plan().states)
    instance.getState(state, states.emplace_back(static_cast<size_t>(state.logicalBytes())));
  return states;
}

/// The physical form of a state.
std::vector<float> physicalState(const Instance &instance, const char *name) {
  const State &state = instance.state(name);
  std::vector<float> values(static_cast<size_t>(state.bytes) / sizeof(float));
  instance.getPhysicalState(state, std::as_writable_bytes(std::span(values)));
  return values;
}

ExitCode codeOf(const std::function<void()> &body) { return guarded(body).code; }
std::string messageOf(const std::function<void()> &body) { return guarded(body).message; }

/// Sets the inputs of train_step and runs it.
void train(Instance &instance, const Batch &batch, int64_t rows) {
  const Entry &step = instance.entry("train_step");
  instance.setInput(step.inputs[0], bytes(batch.images), rows);
  instance.setInput(step.inputs[1], bytes(batch.labels), rows);
  instance.run(step, rows);
}

template <typename T> void setState(Instance &instance, const char *name, const std::vector<T> &values) {
  instance.setState(instance.state(name), bytes(values));
}

} // namespace

/// A caller passes row-major elements.
TEST(Instance, RefusesPackedInputs) {
  std::string text = plan();
  std::string rows = "\"rows_dim\": 0";
  size_t at = text.find(rows);
  ASSERT_NE(at, std::string::npos);
  text.insert(at + rows.size(), ", \"layout\": [[1], [0], [2], [3]]");
  sluice_artifact packed = test::logisticRegression(text);
  Status status = guarded([&] { Instance(packed, std::make_shared<DevicePool>(), {}); });
  EXPECT_EQ(status.code, ExitCode::unsupported);
  EXPECT_NE(status.message.find("is not row-major, which only functions of arrays support"), std::string::npos)
      << status.message;
}

TEST(Instance, SameBitsOnAnyNumberOfThreads) {
  std::vector<Bytes> one = statesAfterTraining(1);
  EXPECT_EQ(one, statesAfterTraining(2));
  EXPECT_EQ(one, statesAfterTraining(4));
  EXPECT_EQ(one, statesAfterTraining(1));
}

/// The images that a benchmark of `predict` sets, and the images before the next step after the kernel has overwritten
/// all of them with 1. `access` is the kernel's access in the plan.
std::pair<Bytes, Bytes> imagesOfBenchmark(const char *access) {
  nlohmann::json edited = nlohmann::json::parse(plan());
  for (nlohmann::json &entry : edited["entries"])
    for (nlohmann::json &action : entry["actions"])
      for (nlohmann::json &buffer : action["launch"]["buffers"])
        if (entry["name"] == "predict" && buffer["arena"] == entry["inputs"][0]["arena"] &&
            buffer["offset"] == entry["inputs"][0]["offset"])
          buffer["access"] = access;
  std::string text = edited.dump();
  sluice_artifact table = test::logisticRegression(text);
  Instance instance(table, std::make_shared<DevicePool>(), {1, ""});
  const Entry &predict = instance.entry("predict");
  BenchState state(instance, predict);
  auto images = [&] {
    const std::byte *data = instance.inputAddress(predict.inputs[0]);
    return Bytes(data, data + predict.inputs[0].bytes);
  };
  state.prepare(0);
  Bytes first = images();
  std::memset(instance.inputAddress(predict.inputs[0]), 1, first.size());
  state.prepare(1);
  return {first, images()};
}

// Tests that a benchmark measures every step on the same inputs, and does not rewrite inputs that steps preserve.
TEST(Instance, BenchmarksSetWhatStepsOverwrite) {
  auto [first, again] = imagesOfBenchmark("rw");
  EXPECT_EQ(first, again);
  auto [set, left] = imagesOfBenchmark("r");
  EXPECT_EQ(set, first);
  EXPECT_EQ(left, Bytes(left.size(), std::byte(1)));
}

/// The bytes that a benchmark of `eval_step` sets as input `number`, if the plan declares it with this type and this
/// number of classes.
Bytes inputOfBenchmark(size_t number, const char *dtype, std::optional<int> below = {}) {
  nlohmann::json edited = nlohmann::json::parse(plan());
  for (nlohmann::json &entry : edited["entries"])
    if (entry["name"] == "eval_step") {
      entry["inputs"][number]["dtype"] = dtype;
      entry["inputs"][number].erase("below");
      if (below)
        entry["inputs"][number]["below"] = *below;
    }
  std::string text = edited.dump();
  sluice_artifact table = test::logisticRegression(text);
  Instance instance(table, std::make_shared<DevicePool>(), {1, ""});
  const Entry &step = instance.entry("eval_step");
  BenchState(instance, step).prepare(0);
  const std::byte *data = instance.inputAddress(step.inputs[number]);
  return Bytes(data, data + step.inputs[number].bytes);
}

template <typename T> std::vector<T> elements(const Bytes &data) {
  std::vector<T> values(data.size() / sizeof(T));
  std::memcpy(values.data(), data.data(), values.size() * sizeof(T));
  return values;
}

// Tests that a benchmark masks no element, because kernels skip masked elements. A boolean, or an integer that is not
// an index, may be a mask.
TEST(Instance, BenchmarksMaskNothing) {
  EXPECT_EQ(elements<int32_t>(inputOfBenchmark(1, "i32")), std::vector<int32_t>(test::capacity, 1));
  std::vector<uint8_t> mask = elements<uint8_t>(inputOfBenchmark(0, "bool"));
  EXPECT_EQ(mask, std::vector<uint8_t>(mask.size(), 1));
}

// Tests that indices are spread over their range, so that a benchmark reads all rows of a table.
TEST(Instance, BenchmarksChooseAmongAllIndices) {
  std::vector<int32_t> labels = elements<int32_t>(inputOfBenchmark(1, "i32", 3));
  for (int32_t label : {0, 1, 2})
    EXPECT_GT(std::count(labels.begin(), labels.end(), label), test::capacity / 6) << label;
  EXPECT_EQ(std::count_if(labels.begin(), labels.end(), [](int32_t label) { return label < 0 || label > 2; }), 0);
}

TEST(Instance, StatesComeBackAsTheyWereSet) {
  Instance instance(artifact(), std::make_shared<DevicePool>(), {1, ""});
  const State &weight = instance.state("fc.weight");
  std::vector<float> values(7840), back(7840);
  std::iota(values.begin(), values.end(), 1.0f);
  instance.setState(weight, bytes(values));
  instance.getState(weight, std::as_writable_bytes(std::span(back)));
  EXPECT_EQ(back, values);
  std::vector<float> physical = physicalState(instance, "fc.weight");
  EXPECT_EQ(physical[1], values[784]);    // class 1, pixel 0
  EXPECT_EQ(physical[8], values[1]);      // class 0, pixel 1
  EXPECT_EQ(physical[784 * 8 + 2], 0.0f); // class 10 does not exist
}

TEST(Instance, PaddingStaysZero) {
  Instance instance(artifact(), std::make_shared<DevicePool>(), {2, ""});
  initialise(instance);
  std::vector<float> physical = physicalState(instance, "fc.weight");
  for (int pixel = 0; pixel < test::pixels; ++pixel)
    for (int lane = 2; lane < 8; ++lane)
      EXPECT_EQ(physical[(784 + pixel) * 8 + lane], 0.0f);
}

TEST(Instance, RowsAreIndependentOfTheirNeighbours) {
  Instance instance(artifact(), std::make_shared<DevicePool>(), {2, ""});
  initialise(instance);
  const Entry &predict = instance.entry("predict");
  Batch batch(3, 9);
  std::vector<float> three(30), one(10);
  instance.setInput(predict.inputs[0], bytes(batch.images), 3);
  instance.run(predict, 3);
  instance.getOutput(predict.outputs[0], std::as_writable_bytes(std::span(three)), 3);
  batch.images.erase(batch.images.begin(), batch.images.begin() + 2 * test::pixels);
  instance.setInput(predict.inputs[0], bytes(batch.images), 1);
  instance.run(predict, 1);
  instance.getOutput(predict.outputs[0], std::as_writable_bytes(std::span(one)), 1);
  EXPECT_EQ(std::vector<float>(three.begin() + 20, three.end()), one);
}

TEST(Instance, TimesEachLaunch) {
  Instance instance(artifact(), std::make_shared<DevicePool>(), {2, ""});
  initialise(instance);
  Batch batch(64, 1);
  instance.times().start(/*oneByOne=*/true);
  train(instance, batch, 64);
  std::vector<WorkTime> times = instance.times().take();
  ASSERT_EQ(times.size(), 3u);
  for (size_t i = 0; i < times.size(); ++i) {
    EXPECT_EQ(times[i].work.action, i);
    EXPECT_TRUE(times[i].isHostClock);
    EXPECT_GT(times[i].end, times[i].start);
  }
}

// Tests that code that requires missing extensions is rejected before it runs.
TEST(Instance, RefusesInstructionsThatAreNotThere) {
  auto withNeeds = [](const std::string &needs) {
    std::string text = plan();
    return text.replace(text.find("\"vector_bits\""), 0, "\"needs\": [" + needs + "], ");
  };
  auto statusOf = [](const std::string &text) {
    return guarded([&] { Instance(test::logisticRegression(text), std::make_shared<DevicePool>(), {1, ""}); });
  };
  std::string common = withNeeds("\"popcnt\"");
  EXPECT_TRUE(statusOf(common).ok()) << statusOf(common).message;
  std::string unknown = withNeeds("\"popcnt\", \"avx2048\", \"warp\"");
  EXPECT_EQ(statusOf(unknown).code, ExitCode::unsupported);
  EXPECT_EQ(statusOf(unknown).message,
            "the model was compiled for the CPU 'any', and this machine's is without avx2048, "
            "warp; compile it with --target-cpu for this one");
  EXPECT_EQ(readPlan(test::logisticRegression(unknown)).build.needs,
            (std::vector<std::string>{"popcnt", "avx2048", "warp"}));
}

TEST(Instance, RefusesLabelsThatNameNoClass) {
  Instance instance(artifact(), std::make_shared<DevicePool>(), {1, ""});
  initialise(instance);
  std::vector<float> before = physicalState(instance, "fc.weight");
  for (int32_t wrong : {-1, 10, INT32_MAX, INT32_MIN}) {
    Batch batch(5, 1);
    batch.labels[3] = wrong;
    EXPECT_EQ(messageOf([&] { train(instance, batch, 5); }),
              "input 'label', row 3: " + std::to_string(wrong) + " is none of the 10 classes 0 to 9");
    EXPECT_EQ(codeOf([&] { train(instance, batch, 5); }), ExitCode::invalid);
  }
  EXPECT_EQ(physicalState(instance, "fc.weight"), before);
  EXPECT_EQ(instance.calls(instance.entry("train_step")), 0);

  Batch right(5, 1); // data after the rows of a call is ignored
  right.labels = {0, 9, 3, 2, 1};
  EXPECT_EQ(codeOf([&] { train(instance, right, 5); }), ExitCode::ok);
  EXPECT_NE(physicalState(instance, "fc.weight"), before);
}

TEST(Instance, RefusesStatesThatNothingHasSet) {
  Instance instance(artifact(), std::make_shared<DevicePool>(), {1, ""});
  const Entry &predict = instance.entry("predict");
  Batch batch(2, 1);
  EXPECT_EQ(
      messageOf([&] { train(instance, batch, 2); }),
      "'train_step' reads 'fc.weight' and 2 more, which nothing has set: run 'init' first, or set states and load "
      "weights");
  EXPECT_EQ(codeOf([&] { train(instance, batch, 2); }), ExitCode::usage);
  instance.setInput(predict.inputs[0], bytes(batch.images), 2);
  EXPECT_NE(messageOf([&] { instance.run(predict, 2); }).find("which nothing has set"), std::string::npos);

  setState(instance, "fc.weight", std::vector<float>(7840, 0.01F));
  setState(instance, "fc.bias", std::vector<float>(10));
  EXPECT_EQ(codeOf([&] { instance.run(predict, 2); }), ExitCode::ok);
  EXPECT_NE(messageOf([&] { train(instance, batch, 2); }).find("reads 'lr', which"), std::string::npos);
  setState(instance, "lr", std::vector<float>{0.1F});
  EXPECT_EQ(codeOf([&] { train(instance, batch, 2); }), ExitCode::ok);
}

TEST(Instance, RefusesAbsurdCalls) {
  Instance instance(artifact(), std::make_shared<DevicePool>(), {1, ""});
  const Entry &predict = instance.entry("predict");
  EXPECT_EQ(codeOf([&] { instance.run(predict, 0); }), ExitCode::usage);
  EXPECT_EQ(codeOf([&] { instance.run(predict, 65); }), ExitCode::usage);
  EXPECT_EQ(codeOf([&] { instance.entry("fit"); }), ExitCode::usage);
  EXPECT_EQ(codeOf([&] { instance.state("fc.wieght"); }), ExitCode::usage);
  EXPECT_EQ(codeOf([&] { instance.setInput(predict.inputs[0], bytes(std::vector<uint8_t>(5)), 1); }),
            ExitCode::invalid);
  EXPECT_EQ(codeOf([&] { Instance(artifact(), std::make_shared<DevicePool>(), {-1, ""}); }), ExitCode::usage);
  EXPECT_EQ(codeOf([&] { Instance(artifact(), std::make_shared<DevicePool>(), {1, "cuda:0"}); }),
            ExitCode::unsupported);
}

TEST(Api, BindsNoDevicesThatAModelHasNoSlotsFor) {
  sluice_instance *model = nullptr;
  sluice_instance_options options = {sizeof options, 1, nullptr, "cpu,sim:0", nullptr};
  EXPECT_EQ(sluice_instance_create(&artifact(), &options, &model), 2);
  EXPECT_STREQ(sluice_last_error(), "devices: 'cpu,sim:0' has 1 accelerators, and the model was compiled for 0");
  options.struct_size = offsetof(sluice_instance_options, devices); // as in a program compiled before the option
                                                                    // existed
  EXPECT_EQ(sluice_instance_create(&artifact(), &options, &model), 0) << sluice_last_error();
  sluice_instance_destroy(model);
}

TEST(Api, TrainsAndPredicts) {
  sluice_instance *model = nullptr;
  sluice_instance_options options = {sizeof options, 2, nullptr, nullptr, nullptr};
  ASSERT_EQ(sluice_instance_create(&artifact(), &options, &model), 0) << sluice_last_error();
  const int32_t key[2] = {0, 5};
  ASSERT_EQ(sluice_instance_set_input(model, "init", "key", key, sizeof key, 1), 0) << sluice_last_error();
  ASSERT_EQ(sluice_instance_run(model, "init", 1), 0) << sluice_last_error();
  Batch batch(64, 1);
  float first = 0, loss = 0;
  for (int i = 0; i < 10; ++i) {
    ASSERT_EQ(sluice_instance_set_input(model, "train_step", "image", batch.images.data(), 64 * 784, 64), 0);
    ASSERT_EQ(sluice_instance_set_input(model, "train_step", "label", batch.labels.data(), 256, 64), 0);
    ASSERT_EQ(sluice_instance_run(model, "train_step", 64), 0);
    ASSERT_EQ(sluice_instance_get_output(model, "train_step", "loss", &loss, 4, 64), 0);
    first = i == 0 ? loss : first;
  }
  EXPECT_LT(loss, first);
  int64_t steps = 0;
  ASSERT_EQ(sluice_instance_get_state(model, "step", &steps, sizeof steps), 0);
  EXPECT_EQ(steps, 10);
  float rate = 0.25f;
  EXPECT_EQ(sluice_instance_set_state(model, "lr", &rate, sizeof rate), 0);
  sluice_instance_destroy(model);
}

TEST(Api, RefusesToTrainOnNothing) {
  sluice_instance *model = nullptr;
  ASSERT_EQ(sluice_instance_create(&artifact(), nullptr, &model), 0) << sluice_last_error();
  Batch batch(2, 1);
  batch.labels[1] = 10;
  const int32_t key[2] = {0, 5};
  auto train = [&] {
    EXPECT_EQ(sluice_instance_set_input(model, "train_step", "image", batch.images.data(), 2 * 784, 2), 0);
    EXPECT_EQ(sluice_instance_set_input(model, "train_step", "label", batch.labels.data(), 8, 2), 0);
    return sluice_instance_run(model, "train_step", 2);
  };
  EXPECT_EQ(train(), SLUICE_INVALID);
  EXPECT_NE(std::string(sluice_last_error()).find("row 1: 10 is none of the 10 classes"), std::string::npos);
  batch.labels[1] = 9;
  EXPECT_EQ(train(), SLUICE_USAGE);
  EXPECT_NE(std::string(sluice_last_error()).find("which nothing has set"), std::string::npos);
  ASSERT_EQ(sluice_instance_set_input(model, "init", "key", key, sizeof key, 1), 0) << sluice_last_error();
  ASSERT_EQ(sluice_instance_run(model, "init", 1), 0) << sluice_last_error();
  EXPECT_EQ(train(), SLUICE_OK) << sluice_last_error();
  sluice_instance_destroy(model);
}

namespace {
/// A model with weights, run through the C API, with images for predictions.
struct Predicting {
  sluice_instance *model = nullptr;
  Batch batch{4, 1};
  std::vector<float> logits = std::vector<float>(640);

  Predicting() {
    const int32_t key[2] = {0, 5};
    EXPECT_EQ(sluice_instance_create(&artifact(), nullptr, &model), 0) << sluice_last_error();
    EXPECT_EQ(sluice_instance_set_input(model, "init", "key", key, sizeof key, 1), 0) << sluice_last_error();
    EXPECT_EQ(sluice_instance_run(model, "init", 1), 0) << sluice_last_error();
  }
  ~Predicting() { sluice_instance_destroy(model); }

  int set(int64_t rows) {
    return sluice_instance_set_input(model, "predict", "image", batch.images.data(), static_cast<uint64_t>(rows) * 784,
                                     rows);
  }
  int run(int64_t rows) { return sluice_instance_run(model, "predict", rows); }
  int get(int64_t rows) {
    return sluice_instance_get_output(model, "predict", "logits", logits.data(), static_cast<uint64_t>(rows) * 40,
                                      rows);
  }
};
} // namespace

TEST(Api, RunsOnNoInputsOfAnEarlierRun) {
  Predicting program;
  ASSERT_EQ(program.set(2), 0) << sluice_last_error();
  ASSERT_EQ(program.run(2), 0) << sluice_last_error();
  EXPECT_EQ(program.run(2), SLUICE_USAGE);
  EXPECT_STREQ(sluice_last_error(),
               "'predict' needs the input 'image', which has not been set since the last call: set "
               "it before each call");
  // All entry points share the memory of inputs, so a run of another entry point invalidates them.
  const int32_t key[2] = {0, 5};
  ASSERT_EQ(program.set(2), 0);
  ASSERT_EQ(sluice_instance_set_input(program.model, "init", "key", key, sizeof key, 1), 0);
  EXPECT_EQ(program.run(2), SLUICE_USAGE);
  ASSERT_EQ(sluice_instance_run(program.model, "init", 1), 0) << sluice_last_error();
  EXPECT_EQ(program.run(2), SLUICE_USAGE);
  EXPECT_EQ(program.set(2), 0);
  EXPECT_EQ(program.run(2), 0) << sluice_last_error();
}

TEST(Api, SaysHowToSetTheSeed) {
  sluice_instance *model = nullptr;
  ASSERT_EQ(sluice_instance_create(&artifact(), nullptr, &model), SLUICE_OK);
  EXPECT_EQ(sluice_instance_run(model, "init", 1), SLUICE_USAGE);
  EXPECT_STREQ(sluice_last_error(), "'init' draws random numbers and has no seed: set its input 'key', of type i32[2], "
                                    "to the high and the low 32 bits of a seed before each call");
  sluice_instance_destroy(model);
}

TEST(Api, RunsOnInputsThatWereSetForAsManyRows) {
  Predicting program;
  ASSERT_EQ(program.set(1), 0) << sluice_last_error();
  EXPECT_EQ(program.run(4), SLUICE_USAGE);
  EXPECT_STREQ(sluice_last_error(), "input 'image' was set with 1 rows, and the call has 4");
  EXPECT_EQ(program.run(1), 0) << sluice_last_error(); // a rejected call consumes no inputs
  ASSERT_EQ(program.set(4), 0);
  EXPECT_EQ(program.run(1), SLUICE_USAGE);
}

TEST(Api, GivesOutputsOfTheLastRunAlone) {
  Predicting program;
  EXPECT_EQ(program.get(1), SLUICE_USAGE);
  EXPECT_STREQ(sluice_last_error(), "there is no output 'logits' of 'predict': the last call was one of 'init'");
  ASSERT_EQ(program.set(4), 0);
  ASSERT_EQ(program.run(4), 0) << sluice_last_error();
  EXPECT_EQ(program.get(64), SLUICE_USAGE);
  EXPECT_STREQ(sluice_last_error(), "output 'logits' has the 4 rows of the last call, and 64 were asked for");
  EXPECT_EQ(program.get(4), 0) << sluice_last_error();
  EXPECT_EQ(program.get(2), 0) << sluice_last_error();
  float loss = 0;
  EXPECT_EQ(sluice_instance_get_output(program.model, "eval_step", "loss", &loss, sizeof loss, 4), SLUICE_USAGE);
  EXPECT_STREQ(sluice_last_error(), "there is no output 'loss' of 'eval_step': the last call was one of 'predict'");
}

TEST(Api, AnswersMisuseWithACode) {
  sluice_instance *model = nullptr;
  float value = 0;
  EXPECT_EQ(sluice_instance_create(nullptr, nullptr, &model), SLUICE_USAGE);
  EXPECT_EQ(sluice_instance_create(&artifact(), nullptr, nullptr), SLUICE_USAGE);
  EXPECT_EQ(sluice_instance_run(nullptr, "init", 1), SLUICE_USAGE);
  ASSERT_EQ(sluice_instance_create(&artifact(), nullptr, &model), SLUICE_OK);
  EXPECT_EQ(sluice_instance_run(model, "fit", 1), SLUICE_USAGE);
  EXPECT_NE(std::string(sluice_last_error()).find("train_step"), std::string::npos) << sluice_last_error();
  EXPECT_EQ(sluice_instance_run(model, nullptr, 1), SLUICE_USAGE);
  EXPECT_EQ(sluice_instance_set_state(model, "lr", nullptr, 4), SLUICE_USAGE);
  EXPECT_EQ(sluice_instance_set_state(model, "lr", &value, 5), SLUICE_INVALID);
  EXPECT_EQ(sluice_instance_get_state(model, "mass", &value, 4), SLUICE_USAGE);
  EXPECT_EQ(sluice_instance_set_input(model, "predict", "image", &value, 4, -1), SLUICE_USAGE);
  EXPECT_EQ(sluice_instance_set_input(model, "predict", "image", &value, 4, INT64_MAX), SLUICE_USAGE);
  EXPECT_EQ(sluice_instance_get_output(model, "predict", "probabilities", &value, 4, 1), SLUICE_USAGE);
  sluice_instance_destroy(model);
  sluice_instance_destroy(nullptr);
  const sluice_artifact *loaded = nullptr;
  EXPECT_EQ(sluice_artifact_load("/no/such/file.so", &loaded), SLUICE_INVALID);
  EXPECT_EQ(sluice_artifact_load("libz.so.1", &loaded), SLUICE_INVALID);
  EXPECT_EQ(loaded, nullptr);
}
