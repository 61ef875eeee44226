// Training that is killed, interrupted or finds damaged checkpoints, and is resumed: the bits of a run that never
// stopped.
#include "Process.h"
#include "TemporaryFolder.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <csignal>
#include <cstdlib>
#include <random>
#include <sstream>
#include <thread>

using namespace sluice;
using test::Process;
using test::ProcessResult;
using test::TemporaryFolder;

namespace {

/// A training run of four epochs in a folder of its own.
class Training {
public:
  explicit Training(const char *every) : every_(every) { setenv("SLUICE_DATA", SLUICE_MNIST, 1); }

  std::vector<std::string> arguments(bool resume, const std::vector<std::string> &more = {}) const {
    std::vector<std::string> list = {"train",   "--epochs", "4",      "--json", "--checkpoint",       checkpoints(),
                                     "--batch", "60",       "--log",  log(),    "--checkpoint-every", every_,
                                     "--save",  weights(),  "--seed", "3"};
    if (resume)
      list.push_back("--resume");
    list.insert(list.end(), more.begin(), more.end());
    return list;
  }
  ProcessResult run(bool resume, const std::vector<std::string> &more = {}) const {
    return test::run(LOGREG, arguments(resume, more));
  }

  std::string checkpoints() const { return folder_ / "checkpoints"; }
  std::string weights() const { return folder_ / "w.safetensors"; }
  std::string log() const { return folder_ / "log.jsonl"; }

  /// The log without what depends on the clock.
  std::string timelessLog() const {
    std::istringstream lines(test::contentOf(log()));
    std::string text;
    for (std::string line; std::getline(lines, line);) {
      nlohmann::json object = nlohmann::json::parse(line);
      object.erase("images_per_s");
      text += object.dump() + "\n";
    }
    return text;
  }

  std::vector<std::string> checkpointNames() const {
    std::vector<std::string> names;
    for (const auto &entry : std::filesystem::directory_iterator(checkpoints()))
      names.push_back(entry.path().filename());
    std::sort(names.begin(), names.end());
    return names;
  }

private:
  TemporaryFolder folder_;
  const char *every_;
};

void expectSameResults(const Training &run, const Training &reference) {
  EXPECT_EQ(test::contentOf(run.weights()), test::contentOf(reference.weights()));
  EXPECT_EQ(run.timelessLog(), reference.timelessLog());
}

/// A run that nothing disturbs, and how long it takes on this machine.
struct Reference {
  Training run{"50"};
  std::chrono::duration<double> time{};

  Reference() {
    auto start = std::chrono::steady_clock::now();
    EXPECT_EQ(run.run(false).code, 0);
    time = std::chrono::steady_clock::now() - start;
  }
};

const Reference &reference() {
  static const Reference made;
  return made;
}

const Training &uninterrupted() { return reference().run; }

/// Starts, sends `signal` after a random while, and resumes, until the run ends by itself. Returns how often it was
/// hit.
int runWithInterruptions(const Training &run, int signal, int most, uint32_t seed) {
  std::mt19937 random(seed);
  int hits = 0;
  for (int i = 0; i < most; ++i) {
    Process process(LOGREG, run.arguments(true));
    // After up to 15 hundredths of what a whole run takes, start-up included; sooner at first, so that a run which is
    // faster than the one measured is still hit.
    double share = static_cast<double>(i + 1) / most;
    std::this_thread::sleep_for(reference().time * share * (0.03 + 0.0001 * static_cast<double>(random() % 1200)));
    process.signal(signal);
    ProcessResult result = process.wait();
    if (result.code == 0)
      return hits;
    // Before training begins a signal still ends the process itself.
    EXPECT_TRUE(result.code == 1000 + signal || (result.code == 128 + signal && signal != SIGKILL))
        << result.code << result.err;
    ++hits;
  }
  ProcessResult last = run.run(true);
  EXPECT_EQ(last.code, 0) << last.err;
  return hits;
}

} // namespace

TEST(Checkpoint, DoesNotChangeTheResult) {
  Training run("7");
  ASSERT_EQ(run.run(false).code, 0);
  expectSameResults(run, uninterrupted());
}

TEST(Checkpoint, KeepsTheNewestThree) {
  Training run("100");
  ASSERT_EQ(run.run(false).code, 0);
  EXPECT_EQ(run.checkpointNames(),
            (std::vector<std::string>{"step-000000000400.safetensors", "step-000000000500.safetensors",
                                      "step-000000000536.safetensors"}));
}

TEST(Checkpoint, KilledAtRandomMomentsEndsWithTheSameBits) {
  Training run("7");
  EXPECT_GT(runWithInterruptions(run, SIGKILL, 20, 1), 5);
  expectSameResults(run, uninterrupted());
}

TEST(Checkpoint, AtMostOneIntervalIsRedone) {
  Training run("7");
  Process process(LOGREG, run.arguments(false));
  while (!std::filesystem::exists(run.log()) || test::contentOf(run.log()).empty())
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  process.signal(SIGKILL); // after the first epoch, so after step 134
  process.wait();
  EXPECT_GE(run.checkpointNames().back(), "step-000000000127.safetensors");
}

// A checkpoint after every step: most kills hit while one is being written.
TEST(Checkpoint, KilledWhileWritingEndsWithTheSameBits) {
  Training run("1");
  EXPECT_GT(runWithInterruptions(run, SIGKILL, 20, 2), 5);
  expectSameResults(run, uninterrupted());
  for (const std::string &name : run.checkpointNames())
    EXPECT_TRUE(name.ends_with(".safetensors")) << name;
}

TEST(Checkpoint, InterruptedEndsWithTheSameBits) {
  Training run("1000000");
  EXPECT_GT(runWithInterruptions(run, SIGINT, 5, 3), 0);
  expectSameResults(run, uninterrupted());
}

TEST(Checkpoint, TerminatedEndsWithTheSameBits) {
  Training run("1000000");
  EXPECT_GT(runWithInterruptions(run, SIGTERM, 5, 4), 0);
  expectSameResults(run, uninterrupted());
}

TEST(Checkpoint, ResumeWithoutOneStartsAfresh) {
  Training run("100");
  ASSERT_EQ(run.run(true).code, 0);
  expectSameResults(run, uninterrupted());
}

TEST(Checkpoint, ResumeOfAFinishedRunGoesOnWithMoreEpochs) {
  Training run("100");
  ASSERT_EQ(run.run(false, {"--epochs", "2"}).code, 2); // given twice
  ASSERT_EQ(run.run(false).code, 0);
  std::string weights = test::contentOf(run.weights());
  ProcessResult again = run.run(true);
  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_EQ(again.out, "");
  EXPECT_EQ(test::contentOf(run.weights()), weights);
}

TEST(Checkpoint, ADamagedOneIsSkipped) {
  Training run("100");
  ASSERT_EQ(run.run(false).code, 0);
  for (const char *name : {"step-000000000536.safetensors", "step-000000000500.safetensors"}) {
    std::string path = run.checkpoints() + "/" + name, content = test::contentOf(path);
    content[content.size() - 100] ^= 1; // one bit of a tensor
    if (std::string(name).find("536") != std::string::npos)
      content.resize(content.size() / 2);
    std::ofstream(path, std::ios::binary) << content;
  }
  ProcessResult result = run.run(true);
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_NE(result.err.find("step-000000000536.safetensors"), std::string::npos) << result.err;
  EXPECT_NE(result.err.find("step-000000000500.safetensors: its checksum"), std::string::npos) << result.err;
  EXPECT_NE(result.err.find("resumed at step 400"), std::string::npos) << result.err;
  expectSameResults(run, uninterrupted());
}

TEST(Checkpoint, OthersFlagsAreRefused) {
  Training run("100");
  ASSERT_EQ(run.run(false).code, 0);
  std::vector<std::string> base = {"train", "--checkpoint", run.checkpoints(), "--resume"};
  auto resumed = [&](const std::vector<std::string> &more) {
    std::vector<std::string> list = base;
    list.insert(list.end(), more.begin(), more.end());
    return test::run(LOGREG, list);
  };
  ProcessResult batch = resumed({"--batch", "64"}), seed = resumed({"--batch", "60", "--seed", "4"});
  EXPECT_EQ(batch.code, 2);
  EXPECT_NE(batch.err.find("--batch is 64, but the checkpoint in"), std::string::npos) << batch.err;
  EXPECT_EQ(seed.code, 2);
  EXPECT_NE(seed.err.find("--seed is 4"), std::string::npos) << seed.err;
}

TEST(Checkpoint, AFreshRunDoesNotMixWithAnOldOne) {
  Training run("100");
  ASSERT_EQ(run.run(false).code, 0);
  ProcessResult again = run.run(false);
  EXPECT_EQ(again.code, 2);
  EXPECT_NE(again.err.find("add --resume"), std::string::npos) << again.err;
}

TEST(Checkpoint, AnotherModelsIsRefused) {
  Training run("100");
  ASSERT_EQ(run.run(false).code, 0);
  for (const std::string &name : run.checkpointNames()) {
    std::string path = run.checkpoints() + "/" + name, content = test::contentOf(path);
    size_t at = content.find("\"sluice.states\":\"") + 17;
    at = content.find('"', at) - 1; // the last digit
    content[at] = content[at] == '1' ? '2' : '1';
    std::ofstream(path, std::ios::binary) << content;
  }
  ProcessResult result = run.run(true);
  EXPECT_EQ(result.code, 3);
  EXPECT_NE(result.err.find("checkpoint of another model"), std::string::npos) << result.err;
}
