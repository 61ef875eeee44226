// The verbs as users run them: a child process, its output and its exit code.
#include "Process.h"
#include "runtime/io/Npy.h"
#include "runtime/io/Safetensors.h"
#include "tests/TemporaryFolder.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <csignal>
#include <cstring>
#include <sstream>
#include <sys/resource.h>

using namespace sluice;
using namespace sluice::runtime;
using test::ProcessResult;
using test::TemporaryFolder;
using Json = nlohmann::json;

static ProcessResult logreg(const std::vector<std::string> &arguments, const std::function<void()> &prepare = {}) {
  setenv("SLUICE_DATA", SLUICE_MNIST, 1);
  return test::run(LOGREG, arguments, prepare);
}

static std::vector<std::string> linesOf(const std::string &text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);)
    lines.push_back(line);
  return lines;
}

/// Weights without any training.
static std::string initialWeights(const TemporaryFolder &folder) {
  EXPECT_EQ(logreg({"train", "--epochs", "0", "--save", folder / "w.safetensors"}).code, 0);
  return folder / "w.safetensors";
}

/// `count` generated images.
static HostTensor images(int64_t count) {
  HostTensor tensor{DType::u8, {count, 1, 28, 28}, Bytes(static_cast<size_t>(count) * 784)};
  for (size_t i = 0; i < tensor.data.size(); ++i)
    tensor.data[i] = static_cast<std::byte>(i * i % 251);
  return tensor;
}

TEST(Train, LearnsTheShippedImages) {
  TemporaryFolder folder;
  ProcessResult result =
      logreg({"train", "--epochs", "2", "--json", "--log", folder / "log.jsonl", "--save", folder / "w.safetensors"});
  ASSERT_EQ(result.code, 0) << result.err;
  std::vector<std::string> lines = linesOf(result.out);
  ASSERT_EQ(lines.size(), 2u);
  Json last = Json::parse(lines[1]);
  EXPECT_EQ(last["epoch"], 2);
  EXPECT_EQ(last["step"], 250);
  EXPECT_LT(last["loss"], 0.6);
  EXPECT_GT(last["accuracy"], 0.85);
  EXPECT_GT(last["images_per_s"], 0);
  EXPECT_EQ(test::contentOf(folder / "log.jsonl"), result.out);
  EXPECT_EQ(result.err, "");

  ProcessResult eval = logreg({"eval", "--json", "--weights", folder / "w.safetensors"});
  ASSERT_EQ(eval.code, 0) << eval.err;
  EXPECT_EQ(Json::parse(eval.out)["accuracy"], last["accuracy"]);
  EXPECT_EQ(Json::parse(eval.out)["loss"], last["test_loss"]);
}

TEST(Train, PlainOutputIsCleanInAPipe) {
  ProcessResult result = logreg({"train", "--epochs", "1"});
  EXPECT_EQ(result.err, "");
  EXPECT_EQ(result.out.find('\033'), std::string::npos);
  EXPECT_EQ(result.out.rfind("epoch 1/1  loss ", 0), 0u) << result.out;
}

TEST(Train, SameBitsOnAnyNumberOfThreads) {
  TemporaryFolder folder;
  auto trained = [&](const char *threads) {
    std::string path = folder / threads;
    EXPECT_EQ(logreg({"train", "--epochs", "1", "--batch", "60", "--threads", threads, "--save", path}).code, 0);
    return test::contentOf(path);
  };
  std::string one = trained("1");
  EXPECT_EQ(one, trained("2"));
  EXPECT_EQ(one, trained("4"));
}

TEST(Train, SettingsAndSeedsMatter) {
  TemporaryFolder folder;
  auto trained = [&](const std::vector<std::string> &more) {
    std::vector<std::string> arguments = {"train", "--epochs", "1", "--save", folder / "w"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    EXPECT_EQ(logreg(arguments).code, 0);
    return test::contentOf(folder / "w");
  };
  std::string plain = trained({});
  EXPECT_EQ(plain, trained({"--seed", "0", "--set", "lr=0.05"}));
  EXPECT_NE(plain, trained({"--set", "lr=0.1"}));
  EXPECT_NE(plain, trained({"--seed", "1"}));
}

// The short last batch is weighted by its rows: with a learning rate of zero, the epoch's loss is that of the whole
// set.
TEST(Train, TheShortLastBatchIsWeightedByItsRows) {
  auto loss = [&](const char *batch) {
    ProcessResult result = logreg({"train", "--epochs", "1", "--json", "--set", "lr=0", "--batch", batch});
    EXPECT_EQ(result.code, 0) << result.err;
    return Json::parse(result.out)["loss"].get<double>();
  };
  EXPECT_NEAR(loss("64"), loss("47"), 1e-6);
}

TEST(Train, LeavesOutAShortLastBatchIfAsked) {
  ProcessResult result = logreg({"train", "--epochs", "2", "--json", "--batch", "47", "--drop-last"});
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(Json::parse(linesOf(result.out)[1])["step"], 2 * (8000 / 47));
  EXPECT_EQ(result.err, "each epoch leaves out 10 of 8000 training rows: every batch has 47\n");
}

TEST(Train, StartsFromWeights) {
  TemporaryFolder folder;
  std::string weights = initialWeights(folder);
  EXPECT_EQ(logreg({"train", "--epochs", "0", "--seed", "9", "--weights", weights, "--save", folder / "again"}).code,
            0);
  EXPECT_EQ(test::contentOf(folder / "again"), test::contentOf(weights));
}

TEST(Train, SavesWhatPyTorchCallsAStateDict) {
  TemporaryFolder folder;
  Safetensors file = readSafetensors(initialWeights(folder));
  ASSERT_EQ(file.tensors().size(), 2u);
  EXPECT_EQ(file.metadata().at("format"), "pt");
  EXPECT_EQ(file.find("fc.weight")->shape, (Shape{10, 784}));
  EXPECT_EQ(file.find("fc.bias")->shape, Shape{10});
}

TEST(Predict, AnyNumberOfRows) {
  TemporaryFolder folder;
  std::string weights = initialWeights(folder);
  auto predicted = [&](int64_t rows) {
    writeNpy(folder / "x.npy", images(rows));
    ProcessResult result = logreg({"predict", "--weights", weights, "--input", "image=@" + folder / "x.npy", "--output",
                                   "logits=@" + folder / "y.npy"});
    EXPECT_EQ(result.code, 0) << result.err;
    return readNpy(folder / "y.npy");
  };
  HostTensor many = predicted(150), few = predicted(65);
  EXPECT_EQ(many.shape, (Shape{150, 10}));
  EXPECT_EQ(few.shape, (Shape{65, 10}));
  EXPECT_EQ(std::memcmp(many.data.data(), few.data.data(), few.data.size()), 0);
  EXPECT_EQ(predicted(0).shape, (Shape{0, 10}));
}

TEST(Predict, PrintsWithoutAnOutputFile) {
  TemporaryFolder folder;
  std::string weights = initialWeights(folder);
  writeNpy(folder / "x.npy", images(2));
  ProcessResult text = logreg({"predict", "--weights", weights, "--input", "image=@" + folder / "x.npy"});
  EXPECT_EQ(linesOf(text.out).size(), 3u) << text.out;
  ProcessResult json = logreg({"predict", "--json", "--weights", weights, "--input", "image=@" + folder / "x.npy"});
  EXPECT_EQ(Json::parse(json.out)["outputs"]["logits"]["values"].size(), 20u);
}

TEST(Bench, GivesItsStableKeys) {
  ProcessResult result = logreg({"bench", "--json", "--kernels", "--seconds", "0.01", "--threads", "2"});
  ASSERT_EQ(result.code, 0) << result.err;
  Json bench = Json::parse(result.out);
  EXPECT_GE(bench["steps"], 20);
  EXPECT_LE(bench["median_ms"], bench["p90_ms"]);
  EXPECT_GT(bench["gflops"], 0);
  EXPECT_EQ(bench["peak_bytes"], 156800);
  EXPECT_GT(bench["rss_bytes"], 100'000);
  EXPECT_EQ(bench["machine"]["vector"], "SSE"); // of the plan's 128 bits, on every machine
  Json bandwidth = bench["machine"]["bandwidth"];
  ASSERT_GE(bandwidth.size(), 2u);
  for (size_t i = 1; i < bandwidth.size(); ++i) {
    EXPECT_GT(bandwidth[i]["bytes"], bandwidth[i - 1]["bytes"]);
    EXPECT_LE(bandwidth[i]["gbps"], bandwidth[i - 1]["gbps"]);
  }
  ASSERT_EQ(bench["kernels"].size(), 3u);
  Json kernel = bench["kernels"][0];
  EXPECT_EQ(kernel["name"], "linear");
  EXPECT_GT(kernel["ms"], 0);
  EXPECT_GT(kernel["gflops"], 0);
  EXPECT_GT(kernel["gbps"], 0);
  EXPECT_GT(kernel["bound"], 0);
  EXPECT_NEAR(kernel["share"].get<double>(), kernel["bound"].get<double>() / kernel["ms"].get<double>(), 1e-9);
}

TEST(Bench, MeasuresAnotherEntry) {
  ProcessResult result = logreg({"bench", "--entry", "predict", "--seconds", "0.01", "--batch", "3"});
  EXPECT_EQ(result.out.rfind("predict, 3 rows, ", 0), 0u) << result.out;
}

TEST(Info, GivesItsStableKeys) {
  Json info = Json::parse(logreg({"info", "--json"}).out);
  EXPECT_EQ(info["parameters"], 7850);
  EXPECT_EQ(info["entries"].size(), 4u);
  EXPECT_EQ(info["entries"][1]["inputs"][0]["shape"], Json({64, 1, 28, 28}));
  EXPECT_EQ(info["devices"][0]["name"], "cpu");
  EXPECT_EQ(info["peak_bytes"], 156800);
  EXPECT_NE(logreg({"info"}).out.find("parameters 7850"), std::string::npos);
}

TEST(Help, GoesToStandardOutput) {
  for (const char *verb : {"train", "eval", "predict", "generate", "bench", "info"}) {
    ProcessResult result = logreg({verb, "--help"});
    EXPECT_EQ(result.code, 0);
    EXPECT_NE(result.out.find("--json"), std::string::npos);
    EXPECT_LE(linesOf(result.out).size(), 85u);
    EXPECT_EQ(result.err, "");
  }
}

TEST(Errors, AreJsonToo) {
  auto expectError = [](const std::vector<std::string> &arguments, int code, const char *message) {
    ProcessResult result = logreg(arguments);
    EXPECT_EQ(result.code, code);
    ASSERT_EQ(linesOf(result.out).size(), 1u) << result.out;
    Json error = Json::parse(result.out);
    EXPECT_EQ(error["code"], code);
    EXPECT_EQ(result.err, "logreg: error: " + error["error"].get<std::string>() + "\n");
    EXPECT_NE(result.err.find(message), std::string::npos) << result.err;
  };
  expectError({"eval", "--json", "--weights", "none.safetensors"}, 3, "none.safetensors: cannot open");
  expectError({"train", "--epoch", "3", "--json"}, 2, "did you mean '--epochs'?");
}

// A file name that is not valid UTF-8 must still produce a JSON error.
TEST(Errors, OfNamesThatAreNotText) {
  ProcessResult result = logreg({"eval", "--json", "--weights",
                                 "no\xff"
                                 "ne"});
  EXPECT_EQ(result.code, 3);
  EXPECT_NE(Json::parse(result.out)["error"].get<std::string>().find("cannot open"), std::string::npos);
}

// Usage errors and invalid files: a message with the cause, and the exit code of its kind.

namespace {
struct BadCall {
  const char *name;
  int code;
  std::vector<std::string> arguments; ///< @ is replaced by the test's folder
  const char *message;
};

class BadCallTest : public testing::TestWithParam<BadCall> {};
} // namespace

/// The files of the calls below: valid and invalid weights and data.
static void prepareFiles(const TemporaryFolder &folder) {
  initialWeights(folder);
  writeNpy(folder / "x.npy", images(3));
  writeNpy(folder / "floats.npy", {DType::f32, {3, 1, 28, 28}, Bytes(3 * 784 * 4)});
  writeNpy(folder / "small.npy", {DType::u8, {3, 1, 27, 28}, Bytes(3 * 27 * 28)});
  folder.write("damaged.npy", test::contentOf(folder / "x.npy").substr(0, 500));
  folder.write("damaged.safetensors", test::contentOf(folder / "w.safetensors").substr(0, 500));
  std::vector<float> values(7840);
  auto data = std::as_bytes(std::span(values));
  writeSafetensors(folder / "partial.safetensors", {{"fc.bias", DType::f32, {10}, data.first(40)}}, {});
  writeSafetensors(folder / "turned.safetensors",
                   {{"fc.bias", DType::f32, {10}, data.first(40)}, {"fc.weight", DType::f32, {784, 10}, data}}, {});
  writeSafetensors(folder / "more.safetensors", {{"fc.bais", DType::f32, {10}, data.first(40)}}, {});
  std::filesystem::create_directory(folder / "empty");
}

TEST_P(BadCallTest, SaysWhatIsWrong) {
  TemporaryFolder folder;
  prepareFiles(folder);
  std::vector<std::string> before = folder.names(), arguments = GetParam().arguments;
  for (std::string &argument : arguments)
    if (size_t at = argument.find('%'); at != std::string::npos)
      argument.replace(at, 1, folder.path() + "/");
  ProcessResult result = logreg(arguments);
  EXPECT_EQ(result.code, GetParam().code) << result.err;
  EXPECT_NE(result.err.find(GetParam().message), std::string::npos) << result.err;
  EXPECT_EQ(linesOf(result.err).size(), 1u) << result.err;
  EXPECT_EQ(folder.names(), before);
}

static const BadCall badCalls[] = {
    {"NoVerb", 2, {}, "logreg: error: a command is required: train, eval, predict, generate, bench, info"},
    {"UnknownVerb", 2, {"trian"}, "logreg: error: unknown command 'trian'; did you mean 'train'?"},
    {"StrangeVerb", 2, {"frobnicate"}, "unknown command 'frobnicate'; the commands are train, eval"},
    {"StrangeFlag", 2, {"train", "--frobnicate"}, "unknown option '--frobnicate'; see `"},
    {"ExtraArgument", 2, {"train", "data.npz"}, "unexpected argument 'data.npz'; see `"},
    {"FlagTwice", 2, {"train", "--epochs", "1", "--epochs", "2"}, "--epochs is given 2 times; give it once; see `"},
    {"UnknownFlag", 2, {"train", "--epoch", "3"}, "unknown option '--epoch'; did you mean '--epochs'?"},
    {"MissingValue", 2, {"train", "--epochs"}, "--epochs requires a value: N; see `"},
    {"ZeroThreads", 2, {"train", "--threads", "0"}, "--threads: 0 is outside [1, 1024]"},
    {"ManyThreads", 2, {"bench", "--threads", "1000000000000"}, "--threads: 1000000000000 is outside"},
    {"NegativeEpochs", 2, {"train", "--epochs", "-1"}, "--epochs: -1 is outside"},
    {"FractionalEpochs", 2, {"train", "--epochs", "1.5"}, "'1.5' is not a whole number"},
    {"OverflowingEpochs", 2, {"train", "--epochs", "99999999999999999999"}, "outside"},
    {"ZeroBatch", 2, {"train", "--batch", "0"}, "--batch: 0 is outside"},
    {"BatchBeyondTheCapacity", 2, {"train", "--batch", "65"}, "exceeds the model's capacity of 64"},
    {"NegativeSeed", 2, {"train", "--seed", "-3"}, "--seed: '-3'"},
    {"CheckpointEveryZero", 2, {"train", "--checkpoint-every", "0"}, "--checkpoint-every: 0 is outside"},
    {"UnknownSetting", 2, {"train", "--set", "rate=1"}, "no setting 'rate' (settings: lr)"},
    {"SettingOfAParameter", 2, {"train", "--set", "fc.bias=1"}, "no setting 'fc.bias'"},
    {"NanSetting", 2, {"train", "--set", "lr=nan"}, "'nan' is not a value for 'lr'"},
    {"HugeSetting", 2, {"train", "--set", "lr=1e39"}, "'1e39' is not a value for 'lr' of type f32"},
    {"TextSetting", 2, {"train", "--set", "lr=fast"}, "'fast' is not a value"},
    {"SettingWithoutValue", 2, {"train", "--set", "lr"}, "expected name=value"},
    {"ResumeWithoutFolder", 2, {"train", "--resume"}, "--resume needs --checkpoint"},
    {"NoWeights", 2, {"eval"}, "eval needs --weights"},
    {"UnknownEntry", 2, {"bench", "--entry", "fit"}, "it has: init, train_step, eval_step, predict"},
    {"NegativeSeconds", 2, {"bench", "--seconds", "-1"}, "--seconds: '-1'"},
    {"NanSeconds", 2, {"bench", "--seconds", "nan"}, "--seconds: 'nan'"},
    {"UnknownInput",
     2,
     {"predict", "--weights", "%w.safetensors", "--input", "imgae=@%x.npy"},
     "did you mean 'image'?"},
    {"InputWithoutAt",
     2,
     {"predict", "--weights", "%w.safetensors", "--input", "image=%x.npy"},
     "expected image=@file.npy"},
    {"MissingInput", 2, {"predict", "--weights", "%w.safetensors"}, "'image' is missing"},
    {"InputTwice",
     2,
     {"predict", "--weights", "%w.safetensors", "--input", "image=@%x.npy", "--input", "image=@%x.npy"},
     "given twice"},
    {"UnknownOutput",
     2,
     {"predict", "--weights", "%w.safetensors", "--input", "image=@%x.npy", "--output", "y=@%y.npy"},
     "has no 'y'"},
    {"AbsentDevice", 4, {"train", "--device", "cuda:0"}, "cannot use device 'cuda:0': the model was compiled for cpu"},
    {"NoDataFolder", 3, {"train", "--data", "%none"}, "none: cannot open: No such file"},
    {"NoDataSet",
     3,
     {"train", "--data", "mnist"},
     "no data 'mnist': it is neither a file or folder here nor a data set in "},
    {"EmptyDataFolder", 3, {"train", "--data", "%empty"}, "has no data; supported: IDX files, as MNIST's"},
    {"DataWithoutTheColumn", 3, {"train", "--data", "%x.npy"}, "x.npy: has no column 'image' (columns: 'x')"},
    {"DataOfAnotherType",
     3,
     {"train", "--data", "%floats.npy", "--column", "image=floats", "--column", "label=floats"},
     "floats.npy: column 'floats' has rows of f32[1, 28, 28], but input 'image' takes u8[1, 28, 28]"},
    {"ColumnOfNoInput", 2, {"train", "--column", "imgae=x"}, "no input 'imgae'; did you mean 'image'?"},
    {"ColumnTwice", 2, {"train", "--column", "image=x", "--column", "image=y"}, "'image' is given twice"},
    {"ColumnWithoutName", 2, {"train", "--column", "image"}, "expected input=column"},
    {"TestDataThatIsNotThere", 3, {"train", "--test-data", "%none"}, "none: cannot open: No such file"},
    {"NoWeightsFile", 3, {"eval", "--weights", "%none.safetensors"}, "none.safetensors: cannot open"},
    {"DamagedWeights", 3, {"eval", "--weights", "%damaged.safetensors"}, "damaged.safetensors: tensor"},
    {"PartialWeights", 3, {"eval", "--weights", "%partial.safetensors"}, "has no 'fc.weight'"},
    {"TransposedWeights",
     3,
     {"eval", "--weights", "%turned.safetensors"},
     "f32[784, 10], but the model has f32[10, 784]"},
    {"MisspeltWeights", 3, {"eval", "--weights", "%more.safetensors"}, "did you mean 'fc.bias'?"},
    {"NoInputFile",
     3,
     {"predict", "--weights", "%w.safetensors", "--input", "image=@%none.npy"},
     "none.npy: cannot open"},
    {"DamagedInput",
     3,
     {"predict", "--weights", "%w.safetensors", "--input", "image=@%damaged.npy"},
     "needs 2352 bytes"},
    {"InputType",
     3,
     {"predict", "--weights", "%w.safetensors", "--input", "image=@%floats.npy"},
     "is f32[3, 1, 28, 28], but input 'image' is u8"},
    {"InputShape",
     3,
     {"predict", "--weights", "%w.safetensors", "--input", "image=@%small.npy"},
     "is u8[3, 1, 27, 28]"},
    {"SaveIntoNoFolder",
     3,
     {"train", "--epochs", "0", "--save", "%none/w.safetensors"},
     "none/w.safetensors: cannot create"},
    {"SaveIntoAFolder", 3, {"train", "--epochs", "0", "--save", "%empty"}, "cannot write: Is a directory"},
    {"SaveToAFullDisk", 3, {"train", "--epochs", "0", "--save", "/dev/full"}, "/dev/full: cannot write: No space left"},
    {"LogToAFullDisk", 3, {"train", "--epochs", "1", "--log", "/dev/full"}, "/dev/full: cannot write: No space left"},
    {"CheckpointIntoAFile", 3, {"train", "--checkpoint", "%x.npy"}, "x.npy: cannot create the checkpoint folder"},
};

INSTANTIATE_TEST_SUITE_P(Cases, BadCallTest, testing::ValuesIn(badCalls),
                         [](const auto &info) { return std::string(info.param.name); });

/// Limits files to 20 kB, to simulate a full disk during a write.
static void limitFiles() {
  struct rlimit limit = {20'000, 20'000};
  setrlimit(RLIMIT_FSIZE, &limit);
}

TEST(FullDisk, LeavesNothingHalfWritten) {
  TemporaryFolder folder;
  ProcessResult result = logreg({"train", "--epochs", "0", "--save", folder / "w.safetensors"}, limitFiles);
  EXPECT_EQ(result.code, 3);
  EXPECT_NE(result.err.find("w.safetensors: cannot write: "), std::string::npos) << result.err;
  EXPECT_EQ(folder.names(), std::vector<std::string>{});
}

TEST(FullDisk, KeepsTheOldFile) {
  TemporaryFolder folder;
  folder.write("w.safetensors", "old");
  EXPECT_EQ(logreg({"train", "--epochs", "0", "--save", folder / "w.safetensors"}, limitFiles).code, 3);
  EXPECT_EQ(test::contentOf(folder / "w.safetensors"), "old");
}

TEST(FullDisk, EndsACheckpointedRun) {
  TemporaryFolder folder;
  ProcessResult result = logreg({"train", "--epochs", "1", "--checkpoint", folder / "c"}, limitFiles);
  EXPECT_EQ(result.code, 3);
  EXPECT_EQ(std::filesystem::is_empty(folder / "c"), true);
}

TEST(LittleMemory, IsExitCodeFive) {
#if defined(SLUICE_SANITIZED)
  GTEST_SKIP() << "a sanitizer's shadow memory exceeds any such limit";
#endif
  auto limit = [] {
    struct rlimit bytes = {200 << 20, 200 << 20};
    setrlimit(RLIMIT_AS, &bytes);
  };
  TemporaryFolder folder;
  std::string weights = initialWeights(folder);
  writeNpy(folder / "x.npy", images(200'000));
  ProcessResult result =
      logreg({"predict", "--threads", "1", "--weights", weights, "--input", "image=@" + folder / "x.npy"}, limit);
  EXPECT_EQ(result.code, 5) << result.err;
  EXPECT_NE(result.err.find("out of memory"), std::string::npos);
}
