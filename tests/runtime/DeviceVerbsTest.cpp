// The verbs of an executable for several devices, with virtual accelerators.
#include "Process.h"
#include "tests/TemporaryFolder.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <set>
#include <sstream>

using namespace sluice;
using test::ProcessResult;
using test::TemporaryFolder;
using Json = nlohmann::json;

static ProcessResult scaler(const std::vector<std::string> &arguments) { return test::run(SCALER, arguments); }

static std::vector<Json> linesOf(const ProcessResult &result) {
  EXPECT_EQ(result.code, 0) << result.err;
  std::vector<Json> lines;
  std::istringstream stream(result.out);
  for (std::string line; std::getline(stream, line);)
    lines.push_back(Json::parse(line));
  return lines;
}

/// `bench` of the entry with copies, on a link where copies of 256 bytes take about as long as the kernel.
static std::vector<std::string> bench(const std::vector<std::string> &more) {
  std::vector<std::string> arguments = {"bench", "--entry", "step",  "--seconds",
                                        "0",     "--json",  "--sim", "seed=3,link=40MB/s,latency=1us"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

TEST(DeviceBench, PredictsTheStepByTheVirtualClock) {
  Json schedule = linesOf(scaler(bench({})))[0]["schedule"];
  EXPECT_EQ(schedule["clock"], "devices");
  double predicted = schedule["predicted_ms"], measured = schedule["measured_ms"], serial = schedule["serial_ms"];
  EXPECT_NEAR(measured, predicted, 0.02 * predicted);
  EXPECT_LT(measured, 0.8 * serial);
}

TEST(DeviceBench, TimesDoNotDependOnTheOrderOfTheQueues) {
  Json one = linesOf(scaler({"bench", "--entry", "step", "--seconds", "0", "--json", "--sim", "seed=1"}))[0],
       two = linesOf(scaler({"bench", "--entry", "step", "--seconds", "0", "--json", "--sim", "seed=2"}))[0];
  EXPECT_EQ(one["schedule"], two["schedule"]);
}

/// The kernels of this model form no segments: each waits for a copy, or a copy waits for it.
TEST(DeviceBench, TellsWhatWasReplayed) {
  Json result = linesOf(scaler(bench({"--report"})))[0];
  EXPECT_EQ(result["sequences"], Json({{"kept", 0}, {"replays", 0}}));
  EXPECT_GT(result["untimed_ms"], 0);
}

/// A single call cannot complete before it returns; a call among others takes positive time in every mode.
TEST(DeviceBench, TellsWhatItCostsToLookAtOutputs) {
  Json outputs = linesOf(scaler(bench({"--outputs"})))[0]["outputs"];
  EXPECT_EQ(outputs.size(), 5u);
  for (const char *name : {"returned_ms", "done_ms", "unread_ms", "read_ms", "kept_ms"})
    EXPECT_GT(outputs[name], 0) << name;
  EXPECT_LE(outputs["returned_ms"], outputs["done_ms"]);
  EXPECT_FALSE(linesOf(scaler(bench({})))[0].contains("outputs"));
  std::string text = scaler({"bench", "--entry", "step", "--seconds", "0", "--sim", "seed=1", "--outputs"}).out;
  EXPECT_NE(text.find("a call alone returns in "), std::string::npos) << text;
}

/// Each call copies one output back, and reading it copies another one. As many outputs are kept, each within its
/// device, and copied back together.
TEST(DeviceBench, ReadsEachCallsOutputsOrAllTogether) {
  Json report = linesOf(scaler(bench({"--report", "--outputs"})))[1]["report"];
  auto copies = [&](const char *from, const char *to) {
    for (const Json &pair : report["copies"])
      if (pair["from"] == from && pair["to"] == to)
        return pair["engine"]["copies"].get<int64_t>();
    return int64_t(0);
  };
  int64_t kept = copies("acc0", "acc0");
  EXPECT_GE(kept, 8);
  EXPECT_EQ(copies("acc0", "cpu"), report["entries"][1]["calls"].get<int64_t>() + kept + 1);
}

TEST(DeviceReport, PredictedExecutedAndCountedAgree) {
  std::vector<Json> lines = linesOf(scaler(bench({"--report"})));
  ASSERT_EQ(lines.size(), 2u);
  Json report = lines[1]["report"];
  Json step = report["entries"][1];
  int64_t calls = step["calls"];
  EXPECT_EQ(step["name"], "step");
  EXPECT_EQ(step["per_call"], Json({{"copies", 2}, {"bytes", 512}}));
  EXPECT_EQ(report["mirrors_refreshed"], 1);
  ASSERT_EQ(report["copies"].size(), 2u);
  for (const Json &copy : report["copies"]) {
    EXPECT_EQ(copy["predicted"], copy["executed"]);
    EXPECT_EQ(copy["engine"], copy["executed"]);
  }
  EXPECT_EQ(report["copies"][0]["engine"], Json({{"copies", calls + 1}, {"bytes", 256 * calls + 4}}));
  EXPECT_EQ(report["copies"][1]["engine"], Json({{"copies", calls}, {"bytes", 256 * calls}}));
  EXPECT_EQ(report["memory"][1], Json({{"device", "acc0"},
                                       {"spelling", "sim:0"},
                                       {"name", "virtual accelerator"},
                                       {"predicted_bytes", 16512},
                                       {"allocated_bytes", 16512},
                                       {"taken_bytes", 16512}}));
}

TEST(DeviceReport, IsReadableToo) {
  ProcessResult result = scaler({"bench", "--entry", "step", "--seconds", "0", "--report"});
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_NE(result.out.find("cpu    to gpu(0)"), std::string::npos) << result.out;
  EXPECT_NE(result.out.find("model.cpp:1:1"), std::string::npos) << result.out;
}

TEST(DeviceTrace, HasATrackForEachQueue) {
  TemporaryFolder folder;
  linesOf(scaler(bench({"--trace", folder / "trace.json"})));
  Json trace = Json::parse(test::contentOf(folder / "trace.json"));
  std::set<std::string> tracks, names;
  for (const Json &event : trace["traceEvents"]) {
    if (event["ph"] == "M" && event["name"] == "thread_name")
      tracks.insert(event["args"]["name"].get<std::string>());
    if (event["ph"] == "X")
      names.insert(event["name"].get<std::string>());
  }
  EXPECT_EQ(tracks, (std::set<std::string>{"cpu", "gpu(0)", "gpu(0).in", "gpu(0).out"}));
  EXPECT_EQ(names,
            (std::set<std::string>{"scale", "count", "copy x, model.cpp:1:1, 256 B", "copy y, model.cpp:1:1, 256 B"}));
}

TEST(DeviceInfo, ListsDevicesAndCopies) {
  Json info = linesOf(scaler({"info", "--json"}))[0];
  EXPECT_EQ(info["devices"][1], Json({{"name", "acc0"}, {"backend", "sim"}, {"ordinal", 0}, {"settings", "seed=7"}}));
  EXPECT_EQ(info["entries"][1]["copies"].size(), 4u);
  EXPECT_EQ(info["entries"][1]["copies"][1]["bytes"], 256);
}

TEST(DeviceBinding, IsAskedForOnTheCommandLine) {
  auto bench = [](const std::string &devices) {
    return scaler({"bench", "--entry", "step", "--seconds", "0", "--devices", devices});
  };
  EXPECT_EQ(bench("cpu,sim:3").code, 0);
  EXPECT_EQ(scaler({"bench", "--devices", "sim:3", "--device", "sim:3", "--entry", "step", "--seconds", "0"}).code, 0);
  EXPECT_EQ(scaler({"bench", "--devices", "sim:3", "--device", "sim:0", "--entry", "step", "--seconds", "0"}).code, 4);
  ProcessResult absent = bench("sim:7");
  EXPECT_EQ(absent.code, 4);
  EXPECT_NE(absent.err.find("gpu(0) (sim:7) is not there"), std::string::npos) << absent.err;
  EXPECT_EQ(bench("sim:3,sim:2").code, 2);
  EXPECT_EQ(linesOf(scaler({"info", "--json", "--devices", "sim:3"}))[0]["devices"][1]["ordinal"], 3);
  EXPECT_NE(scaler({"info"}).out.find("gpu(0) (sim:0)"), std::string::npos);
}

TEST(DeviceErrors, NameTheDevice) {
  ProcessResult exhausted = scaler({"bench", "--entry", "step", "--sim", "memory=4KiB"});
  EXPECT_EQ(exhausted.code, 5);
  EXPECT_NE(exhausted.err.find("gpu(0) (sim:0)"), std::string::npos) << exhausted.err;
  EXPECT_EQ(scaler({"bench", "--sim", "sed=7"}).code, 2);
  EXPECT_EQ(scaler({"bench", "--backend", "cuda=x"}).code, 2);
  EXPECT_EQ(scaler({"bench", "--device", "sim:1"}).code, 4);
  EXPECT_EQ(scaler({"bench", "--device", "sim:0", "--entry", "step", "--seconds", "0"}).code, 0);
}
