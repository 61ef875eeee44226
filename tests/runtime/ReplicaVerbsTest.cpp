// The verbs of an executable with several replicas, on virtual accelerators.
#include "FileContents.h"
#include "Process.h"
#include "TrainingRun.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cstdlib>

using namespace sluice;
using test::ProcessResult;
using test::TemporaryFolder;
using test::TrainingRun;

static ProcessResult averager(int replicas, const std::vector<std::string> &arguments) {
  setenv("AVERAGER_REPLICAS", std::to_string(replicas).c_str(), 1);
  return test::run(AVERAGER, arguments);
}

static nlohmann::json resultOf(const ProcessResult &result, int line = 0) {
  EXPECT_EQ(result.code, 0) << result.err;
  std::istringstream stream(result.out);
  std::string text;
  for (int i = 0; i <= line; ++i)
    std::getline(stream, text);
  return nlohmann::json::parse(text);
}

/// 300 rows of a column x.
static std::string averagerData(const TemporaryFolder &folder) {
  std::string x;
  for (uint32_t i = 0; i < 300; ++i)
    x += test::littleEndian(i * 31 % 100, 4);
  return folder.write("data.npz", test::zip({{"x.npy", test::npyOf("<i4", "(300,)", x)}}));
}

static TrainingRun averagerTraining(const std::string &data) {
  return TrainingRun(AVERAGER, {"--data", data, "--batch", "48", "--seed", "5"}, /*every=*/4);
}

static ProcessResult train(const TrainingRun &run, int replicas, bool resume, const std::string &epochs) {
  setenv("AVERAGER_REPLICAS", std::to_string(replicas).c_str(), 1);
  return run.run(resume, {"--epochs", epochs});
}

TEST(ReplicaTraining, GivesTheSameBitsForEveryNumber) {
  TemporaryFolder folder;
  std::string data = averagerData(folder);
  TrainingRun one = averagerTraining(data);
  ASSERT_EQ(train(one, 1, false, "3").code, 0);
  for (int replicas : {2, 4}) {
    TrainingRun several = averagerTraining(data);
    ProcessResult result = train(several, replicas, false, "3");
    ASSERT_EQ(result.code, 0) << result.err;
    test::expectSameResults(several, one);
  }
}

TEST(ReplicaTraining, IsResumedByAnotherNumber) {
  TemporaryFolder folder;
  std::string data = averagerData(folder);
  TrainingRun one = averagerTraining(data), changing = averagerTraining(data);
  ASSERT_EQ(train(one, 1, false, "3").code, 0);
  ASSERT_EQ(train(changing, 2, false, "1").code, 0);
  ProcessResult resumed = train(changing, 1, true, "2");
  ASSERT_EQ(resumed.code, 0) << resumed.err;
  EXPECT_NE(resumed.err.find("resumed at step 7"), std::string::npos) << resumed.err;
  ASSERT_EQ(train(changing, 3, true, "3").code, 0);
  test::expectSameResults(changing, one);
}

TEST(ReplicaTraining, KeepsNoShares) {
  TemporaryFolder folder;
  TrainingRun run = averagerTraining(averagerData(folder));
  ASSERT_EQ(train(run, 2, false, "1").code, 0);
  std::string name = run.checkpointNames().back();
  std::string checkpoint = test::contentOf(run.checkpoints() + "/" + name), weights = test::contentOf(run.weights());
  EXPECT_NE(checkpoint.find("total"), std::string::npos);
  EXPECT_EQ(checkpoint.find("global_rows"), std::string::npos);
  EXPECT_EQ(weights.find("first_row"), std::string::npos);
}

TEST(ReplicaInfo, TellsOfAllReplicas) {
  nlohmann::json info = resultOf(averager(3, {"info", "--json"}));
  EXPECT_EQ(info["replicas"], 3);
  EXPECT_EQ(info["batch"], 64);
  EXPECT_EQ(info["devices"][1]["ordinals"], (std::vector<int>{0, 1, 2}));
  EXPECT_EQ(info["states"].size(), 2u);
  std::string text = averager(3, {"info", "--devices", "sim:1-3"}).out;
  EXPECT_NE(text.find("replicas 3, up to 64 rows in one call"), std::string::npos) << text;
  EXPECT_NE(text.find("gpu(0) (sim:3) of replica 2"), std::string::npos) << text;
  EXPECT_EQ(text.find("global_rows  i64"), std::string::npos) << text;
}

TEST(ReplicaPredict, SplitsAndGathersRows) {
  TemporaryFolder folder;
  std::string x;
  for (uint32_t i = 0; i < 100; ++i)
    x += test::littleEndian(i, 4);
  std::string input = folder.write("x.npy", test::npyOf("<i4", "(100,)", x));
  std::string weights = folder / "w.safetensors";
  ASSERT_EQ(averager(2, {"train", "--data", averagerData(folder), "--epochs", "1", "--save", weights}).code, 0);
  nlohmann::json result = resultOf(averager(3, {"predict", "--weights", weights, "--json", "--input", "x=@" + input}));
  const nlohmann::json &y = result["outputs"]["y"]["values"];
  ASSERT_EQ(y.size(), 100u);
  for (size_t i = 0; i < y.size(); ++i)
    EXPECT_EQ(y[i], i + i % 64); // 64 rows per call
}

TEST(ReplicaReport, ListsEachReplicaAndWhatTheyExchange) {
  nlohmann::json report =
      resultOf(averager(2, {"bench", "--entry", "train_step", "--seconds", "0", "--json", "--report"}), 1)["report"];
  ASSERT_EQ(report["copies"].size(), 4u);
  for (const nlohmann::json &copy : report["copies"]) {
    EXPECT_EQ(copy["predicted"], copy["executed"]);
    EXPECT_EQ(copy["engine"], copy["executed"]);
  }
  EXPECT_EQ(report["copies"][3]["replica"], 1);
  int64_t calls = report["entries"][1]["calls"];
  EXPECT_EQ(report["entries"][1]["per_call"], nlohmann::json({{"copies", 4}, {"bytes", 2 * (128 + 8)}}));
  ASSERT_EQ(report["collectives"].size(), 1u);
  EXPECT_EQ(report["collectives"][0]["kind"], "all_reduce");
  EXPECT_EQ(report["collectives"][0]["executed"], nlohmann::json({{"exchanges", calls}, {"bytes", 8 * calls}}));
  EXPECT_EQ(report["collectives"][0]["engine"], report["collectives"][0]["executed"]);
  EXPECT_EQ(report["memory"].size(), 4u);
  std::string text = averager(2, {"bench", "--entry", "train_step", "--seconds", "0", "--report"}).out;
  EXPECT_NE(text.find("all_reduce"), std::string::npos) << text;
  EXPECT_EQ(text.find("differs"), std::string::npos) << text;
}

TEST(ReplicaBench, PredictsTheStepByTheVirtualClock) {
  nlohmann::json result = resultOf(
      averager(2, {"bench", "--entry", "train_step", "--seconds", "0", "--json", "--sim", "seed=3,latency=20us"}));
  EXPECT_EQ(result["replicas"], 2);
  double predicted = result["schedule"]["predicted_ms"], measured = result["schedule"]["measured_ms"];
  EXPECT_GT(measured, 0.04); // in a ring of two, an exchange takes two latencies
  EXPECT_NEAR(measured, predicted, 0.02 * predicted);
}

TEST(ReplicaTrace, NamesCollectives) {
  TemporaryFolder folder;
  averager(2, {"bench", "--entry", "train_step", "--seconds", "0", "--trace", folder / "trace.json"});
  std::string trace = test::contentOf(folder / "trace.json");
  EXPECT_NE(trace.find("\"all_reduce sum, model.cpp:2:1, 8 B\",\"cat\":\"collective\""), std::string::npos);
}

TEST(ReplicaUsage, SaysWhatIsWrong) {
  ProcessResult few = averager(2, {"bench", "--devices", "sim:0"});
  EXPECT_EQ(few.code, 2);
  EXPECT_NE(few.err.find("has 1 accelerators, and the model was compiled for 2: 1 in each of 2 replicas"),
            std::string::npos)
      << few.err;
  ProcessResult many = averager(2, {"bench", "--batch", "65"});
  EXPECT_EQ(many.code, 2);
  EXPECT_NE(many.err.find("65 exceeds the model's capacity of 64 rows"), std::string::npos) << many.err;
}
