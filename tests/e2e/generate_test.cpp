// Generation: a model's own entry points, which cache earlier words, return the results of `predict` for all words at
// once.
#include "tests/e2e/Harness.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <functional>
#include <gtest/gtest.h>
#include <numeric>

using namespace sluice::test;
using sluice::CompileOptions;

namespace {

constexpr int64_t kLength = 100, kWords = 96, kChunk = 64, kTokens = 64;

std::string gpt2(const std::string &more = "", int64_t length = kLength) {
  return modelText("gpt2",
                   fmt::format("--layers 2 --width 128 --length {} --words {} --batch 1 {}", length, kWords, more));
}

/// The same program, with only the entry points of generation.
std::string forGeneration(const std::string &text) {
  return replaced(text, "capacity 1 ", "capacity 1 entries [\"decode\", \"prefill\"] ");
}

CompileOptions inDoubles() {
  CompileOptions options;
  options.dtype = sluice::f64;
  return options;
}

/// Sets weights large enough for every word to influence the next.
void begin(Compiled &model) {
  model.init(3);
  for (const sluice::runtime::State &state : model.plan().states) {
    if (state.kind != sluice::runtime::StateKind::parameter || state.shape.size() < 2)
      continue;
    std::vector<double> values = model.state(state.name);
    for (double &value : values)
      value *= 6;
    model.setState(state.name, values);
  }
}

std::vector<double> words(int64_t count, int64_t below) {
  std::vector<double> words;
  for (int64_t i = 0; i < count; ++i)
    words.push_back(double((i * i * 7 + i * 3 + 5) % below));
  return words;
}

std::vector<double> decode(Compiled &model, double token, int64_t position) {
  return model.run("decode", {{"token", {token}}, {"position", {double(position)}}}, 1).at("logits");
}

/// Scores after the last of the words from `begin` to `end`.
std::vector<double> prefill(Compiled &model, const std::vector<double> &text, int64_t begin, int64_t end) {
  std::vector<double> chunk(text.begin() + begin, text.begin() + end);
  chunk.resize(kChunk, 11);
  return model
      .run("prefill", {{"prompt", chunk}, {"position", {double(begin)}}, {"last", {double(end - begin - 1)}}}, 1)
      .at("logits");
}

/// Scores after a prompt in chunks, none of which exceeds the context.
std::vector<double> read(Compiled &model, const std::vector<double> &text, int64_t prompt) {
  std::vector<double> logits;
  for (int64_t done = 0; done < prompt;) {
    int64_t end = std::min(done + kChunk, prompt);
    logits = prefill(model, text, std::min(done, kLength - kChunk), end);
    done = end;
  }
  return logits;
}

std::vector<double> row(const std::vector<double> &all, int64_t number, int64_t width) {
  return {all.begin() + number * width, all.begin() + (number + 1) * width};
}

/// Relative to the largest score.
double distance(const std::vector<double> &logits, const std::vector<double> &truth) {
  double most = 0, largest = 0;
  for (size_t i = 0; i < truth.size(); ++i) {
    most = std::max(most, std::abs(logits[i] - truth[i]));
    largest = std::max(largest, std::abs(truth[i]));
  }
  return most / largest;
}

void expectAsPredicted(Compiled &model, int64_t prompt, double tolerance) {
  std::vector<double> text = words(kLength, kWords), truth = model.run("predict", {{"tokens", text}}, 1).at("logits");
  EXPECT_LT(distance(read(model, text, prompt), row(truth, prompt - 1, kWords)), tolerance) << prompt;
  for (int64_t position = prompt; position < kLength; ++position)
    EXPECT_LT(distance(decode(model, text[size_t(position)], position), row(truth, position, kWords)), tolerance)
        << prompt << ", " << position;
}

size_t best(const std::vector<double> &logits) {
  return size_t(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

/// The bytes that the entry point's launches write into states, and the bytes that these launches move.
double bytesWrittenInto(const Compiled &model, const std::string &entry, const sluice::runtime::State &state) {
  double bytes = 0;
  for (auto [action, times] : model.plan().findEntry(entry)->allActions())
    if (const sluice::runtime::Launch *launch = action->launch();
        launch && model.plan().writes(*action, state.slot, state.bytes))
      bytes += model.plan().kernels[launch->kernel].cost.bytes;
  return bytes;
}

bool isCache(const sluice::runtime::State &state) { return state.kind == sluice::runtime::StateKind::cache; }

/// Fills the caches with keys and values, and with NaN from position `end` on.
void fillCaches(Compiled &model, int64_t end) {
  for (const sluice::runtime::State &state : model.plan().states) {
    if (!isCache(state))
      continue;
    int64_t length = state.shape[2], depth = state.shape[3];
    std::vector<double> values = model.state(state.name);
    for (size_t i = 0; i < values.size(); ++i)
      values[i] = int64_t(i) / depth % length < end ? std::sin(double(i)) : std::nan("");
    model.setState(state.name, values);
  }
}

/// All output bits for a prompt and several generated words.
std::vector<double> generated(const std::string &text, const RunOptions &run) {
  Compiled model(text, {}, run);
  begin(model);
  std::vector<double> tokens = words(kLength, kWords), all = read(model, tokens, 70);
  for (int64_t position = 70; position < 80; ++position) {
    std::vector<double> logits = decode(model, tokens[size_t(position)], position);
    all.insert(all.end(), logits.begin(), logits.end());
  }
  return all;
}

} // namespace

TEST(Generate, GivesWhatPredictGives) {
  Compiled model(gpt2()), exact(gpt2(), inDoubles());
  begin(model);
  begin(exact);
  for (int64_t prompt : {int64_t(1), int64_t(20), kChunk, int64_t(90)}) {
    expectAsPredicted(model, prompt, 1e-4);
    expectAsPredicted(exact, prompt, 1e-9);
  }
}

TEST(Generate, ChoosesTheWordsThatPredictChooses) {
  Compiled model(gpt2());
  begin(model);
  std::vector<double> text = {5};
  std::vector<std::vector<double>> steps;
  for (int64_t position = 0; position < kTokens; ++position) {
    steps.push_back(decode(model, text.back(), position));
    text.push_back(double(best(steps.back())));
  }
  text.resize(kLength);
  std::vector<double> truth = model.run("predict", {{"tokens", text}}, 1).at("logits");
  for (int64_t position = 0; position < kTokens; ++position) {
    std::vector<double> expected = row(truth, position, kWords);
    double behind = expected[best(expected)] - expected[best(steps[size_t(position)])];
    EXPECT_LT(distance(steps[size_t(position)], expected), 1e-4) << position;
    EXPECT_LT(behind, 1e-4 * std::abs(expected[best(expected)])) << position;
  }
}

TEST(Generate, HasTheSameBitsOnAnyNumberOfThreadsAndOnAnAccelerator) {
  std::vector<double> one = generated(gpt2(), {.threads = 1});
  EXPECT_EQ(one, generated(gpt2(), {.threads = 2}));
  std::string accelerated = gpt2("--devices sim:0");
  EXPECT_EQ(one, generated(accelerated, {.sim = "seed=3"}));
  EXPECT_EQ(one, generated(accelerated, {.sim = "seed=3", .replays = false}));
}

// Tests that attention reads no block of keys after the block with the position, for one word and for a chunk. A NaN in
// a later block would reach the logits.
TEST(Generate, StopsAtThePosition) {
  constexpr int64_t kLong = 200, kBlock = 64;
  std::vector<double> text = words(kLong, kWords);
  for (std::optional<sluice::DType> precision : {std::optional<sluice::DType>(), std::optional(sluice::bf16)}) {
    CompileOptions options;
    options.precision = precision;
    Compiled model(forGeneration(gpt2("", kLong)), options);
    for (int threads : {1, 2}) {
      model.restart({.threads = threads});
      begin(model);
      auto expectStops = [&](int64_t position, const std::function<std::vector<double>()> &run) {
        fillCaches(model, kLong);
        std::vector<double> logits = run();
        fillCaches(model, (position / kBlock + 1) * kBlock);
        EXPECT_EQ(run(), logits) << position;
        EXPECT_TRUE(std::isfinite(logits[0]));
      };
      for (int64_t position : {int64_t(0), int64_t(5), kBlock - 1, kBlock, 2 * kBlock - 1, 2 * kBlock + 9})
        expectStops(position, [&] { return decode(model, text[size_t(position)], position); });
      for (int64_t first : {int64_t(0), int64_t(1), kLong - kChunk})
        expectStops(first + kChunk - 1, [&] { return prefill(model, text, first, first + kChunk); });
    }
  }
}

// A word's keys are 128 elements, read and written, and a chunk's 64 times as many; the cache has 12800.
TEST(Generate, WritesWhatIsNewOfACacheAlone) {
  constexpr double kNew = 5 * 4 * 128;
  Compiled model(gpt2());
  int64_t caches = 0;
  for (const sluice::runtime::State &state : model.plan().states) {
    if (!isCache(state))
      continue;
    ++caches;
    EXPECT_EQ(state.bytes, 4 * 128 * kLength);
    EXPECT_GT(bytesWrittenInto(model, "decode", state), 0) << state.name;
    EXPECT_LE(bytesWrittenInto(model, "decode", state), kNew) << state.name;
    EXPECT_LE(bytesWrittenInto(model, "prefill", state), kNew * kChunk) << state.name;
    for (const char *other : {"predict", "train_step", "eval_step"})
      EXPECT_EQ(bytesWrittenInto(model, other, state), 0) << state.name << " in " << other;
  }
  EXPECT_EQ(caches, 4);
}

// Parameters are not copied either: decode moves as many bytes as it reads.
TEST(Generate, MovesNothingThatNeedNotMove) {
  Compiled model(gpt2());
  double bytes = 0, parameters = 4.0 * double(model.plan().parameterCount()), caches = 0;
  for (const sluice::runtime::State &state : model.plan().states)
    caches += isCache(state) ? double(state.bytes) : 0;
  for (const sluice::runtime::Launch *launch : model.plan().findEntry("decode")->launches())
    bytes += model.plan().kernels[launch->kernel].cost.bytes;
  EXPECT_LT(bytes, 1.1 * (parameters + caches));
}

/// The number of stages of each product of the entry point: 1, unless a stage before the product copies an operand.
std::vector<size_t> stagesOfProducts(const Compiled &model, const std::string &entry) {
  std::vector<size_t> stages;
  for (const sluice::runtime::Launch *launch : model.plan().findEntry(entry)->launches()) {
    const sluice::runtime::Kernel &kernel = model.plan().kernels[launch->kernel];
    EXPECT_EQ(std::count(kernel.ops.begin(), kernel.ops.end(), "sluice.relayout"), 0) << kernel.name;
    if (std::count(kernel.ops.begin(), kernel.ops.end(), "sluice.einsum"))
      stages.push_back(kernel.stages.size());
  }
  return stages;
}

// Tests that products read the weights in their stored layout, although the gradients of training read them transposed.
TEST(Generate, RepacksNoWeights) {
  Compiled model(gpt2());
  for (const char *entry : {"decode", "prefill", "predict"})
    EXPECT_EQ(stagesOfProducts(model, entry), std::vector<size_t>(4 * 2 + 1, 1)) << entry;
}

// Tests that 16-bit weights give the bits of the same weights in f32, and that products read them in their stored type.
TEST(Generate, ReadsWeightsOfHalves) {
  std::string text = forGeneration(gpt2());
  std::vector<double> tokens = words(kLength, kWords);
  Compiled exact(text);
  for (const char *type : {"f16", "bf16"}) {
    CompileOptions options;
    options.weights_type = type;
    Compiled narrow(text, options);
    begin(narrow);
    exact.init(3);
    int64_t elements = 0;
    for (const sluice::runtime::State &state : narrow.plan().states)
      if (state.kind == sluice::runtime::StateKind::parameter) {
        exact.setState(state.name, narrow.state(state.name));
        elements += state.dtype == sluice::runtime::DType::f32 ? 0 : state.elements();
      }
    EXPECT_EQ(elements, 2 * 12 * 128 * 128 + kWords * 128); // all matrices except the table of positions
    EXPECT_EQ(prefill(narrow, tokens, 0, kChunk), prefill(exact, tokens, 0, kChunk));
    EXPECT_EQ(decode(narrow, tokens[kChunk], kChunk), decode(exact, tokens[kChunk], kChunk));
    for (const char *entry : {"decode", "prefill"}) // no launch widens a weight
      EXPECT_EQ(narrow.plan().findEntry(entry)->launches().size(), exact.plan().findEntry(entry)->launches().size());
    EXPECT_EQ(stagesOfProducts(narrow, "decode"), std::vector<size_t>(4 * 2 + 1, 1));
    EXPECT_EQ(stagesOfProducts(narrow, "prefill"), std::vector<size_t>(4 * 2 + 1, 1));
  }
}

TEST(Generate, KeepsTheStateOfAnLstm) {
  constexpr int64_t kSteps = 32, kVocabulary = 10000;
  Compiled model(modelText("lstm", "--batch 1"));
  begin(model);
  std::vector<double> text = words(kSteps, kVocabulary),
                      truth = model.run("predict", {{"tokens", text}}, 1).at("logits");
  for (int64_t step = 0; step < kSteps; ++step) {
    std::vector<double> logits = model.run("decode", {{"token", {text[size_t(step)]}}}, 1).at("logits");
    EXPECT_LT(distance(logits, row(truth, step, kVocabulary)), 1e-4) << step;
  }
}
