#include "TrainingRun.h"

#include "runtime/io/File.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <csignal>
#include <random>
#include <sstream>
#include <thread>

namespace sluice::test {

std::vector<std::string> TrainingRun::arguments(bool resume, const std::vector<std::string> &more) const {
  std::vector<std::string> list = {"train", "--json", "--checkpoint", checkpoints(),        "--log",
                                   log(),   "--save", weights(),      "--checkpoint-every", std::to_string(every_)};
  list.insert(list.end(), flags_.begin(), flags_.end());
  if (resume)
    list.push_back("--resume");
  list.insert(list.end(), more.begin(), more.end());
  return list;
}

ProcessResult TrainingRun::run(bool resume, const std::vector<std::string> &more) const {
  return test::run(program_, arguments(resume, more));
}

std::string TrainingRun::timelessLog() const {
  std::istringstream lines(contentOf(log()));
  std::string text;
  for (std::string line; std::getline(lines, line);) {
    nlohmann::json object = nlohmann::json::parse(line);
    object.erase("images_per_s");
    text += object.dump() + "\n";
  }
  return text;
}

int64_t TrainingRun::epochsLogged() const {
  std::string text = contentOf(log());
  return std::count(text.begin(), text.end(), '\n');
}

std::vector<std::string> TrainingRun::checkpointNames() const {
  std::vector<std::string> names;
  std::error_code error; // an empty list if the folder is missing
  for (const auto &entry : std::filesystem::directory_iterator(checkpoints(), error))
    names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

int64_t TrainingRun::newestCheckpoint() const {
  int64_t newest = 0;
  for (const std::string &name : checkpointNames())
    if (name.ends_with(".safetensors"))
      newest = std::stoll(name.substr(name.find('-') + 1));
  return newest;
}

bool TrainingRun::isHalfWritten() const {
  for (const std::string &name : checkpointNames())
    if (name.find(files::temporaryMark) != std::string::npos)
      return true;
  return false;
}

void expectSameResults(const TrainingRun &run, const TrainingRun &reference) {
  EXPECT_TRUE(contentOf(run.weights()) == contentOf(reference.weights())) << "other weights";
  EXPECT_EQ(run.timelessLog(), reference.timelessLog());
}

/// Stops the process while a checkpoint is partially written and a complete one newer than step `since` exists, so that
/// the run makes progress. Does nothing if the process ends first.
static void stopInCheckpoint(const TrainingRun &run, const Process &process, int64_t since) {
  while (process.isRunning()) {
    if (!run.isHalfWritten() || run.newestCheckpoint() <= since)
      continue;
    if (!process.stop() || run.isHalfWritten())
      return;
    process.signal(SIGCONT); // the checkpoint was completed before the stop
  }
}

/// All checkpoints of interrupted runs must be valid.
static void expectNoDamage(const ProcessResult &resumed) {
  EXPECT_EQ(resumed.err.find("damaged"), std::string::npos) << resumed.err;
}

Hits runWithInterruptions(const TrainingRun &run, const Interruptions &interruptions,
                          const std::function<void()> &afterEach) {
  std::mt19937 random(interruptions.seed);
  Hits hits;
  // Each process trains for a random time whose mean is an equal share of a whole run, apart from repeated work.
  std::chrono::duration<double> share = (interruptions.whole - interruptions.start) / interruptions.most;
  for (int i = 0; i < interruptions.most; ++i) {
    int64_t before = run.newestCheckpoint();
    Process process(run.program(), run.arguments(true));
    // Shorter at first, so that a run faster than the measured one is still interrupted.
    double ramp = 2.0 * (i + 1) / (interruptions.most + 1), fraction = static_cast<double>(random() % 10000) / 5000;
    std::this_thread::sleep_for(interruptions.start + share * ramp * fraction);
    if (interruptions.inCheckpoints && i % 2 == 1)
      stopInCheckpoint(run, process, before);
    process.signal(interruptions.signal);
    ProcessResult result = process.wait();
    expectNoDamage(result);
    if (result.code == 0)
      return hits;
    // Before training starts, a signal still kills the process.
    EXPECT_TRUE(result.code == 1000 + interruptions.signal ||
                (result.code == 128 + interruptions.signal && interruptions.signal != SIGKILL))
        << result.code << result.err;
    ++hits.all;
    hits.inCheckpoints += run.isHalfWritten();
    if (afterEach)
      afterEach();
  }
  ProcessResult last = run.run(true);
  EXPECT_EQ(last.code, 0) << last.err;
  expectNoDamage(last);
  return hits;
}

} // namespace sluice::test
