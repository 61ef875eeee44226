// Training that is killed, interrupted or finds damaged checkpoints. The resumed run must produce the bits of an
// uninterrupted run.
#include "TrainingRun.h"

#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <thread>

using namespace sluice;
using test::expectSameResults;
using test::Hits;
using test::Process;
using test::ProcessResult;

namespace {

/// Four epochs of 134 steps.
struct Training : test::TrainingRun {
  explicit Training(int every) : TrainingRun(LOGREG, {"--epochs", "4", "--batch", "60", "--seed", "3"}, every) {
    setenv("SLUICE_DATA", SLUICE_MNIST, 1);
  }
};

/// An uninterrupted run, and its duration on this machine.
struct Reference {
  Training run{50};
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

Hits runWithInterruptions(const Training &run, int signal, int most, uint32_t seed, bool inCheckpoints = false) {
  return test::runWithInterruptions(
      run, {.signal = signal, .most = most, .seed = seed, .whole = reference().time, .inCheckpoints = inCheckpoints});
}

} // namespace

TEST(Checkpoint, DoesNotChangeTheResult) {
  Training run(7);
  ASSERT_EQ(run.run(false).code, 0);
  expectSameResults(run, uninterrupted());
}

TEST(Checkpoint, KeepsTheNewestThree) {
  Training run(100);
  ASSERT_EQ(run.run(false).code, 0);
  EXPECT_EQ(run.checkpointNames(),
            (std::vector<std::string>{"step-000000000400.safetensors", "step-000000000500.safetensors",
                                      "step-000000000536.safetensors"}));
}

TEST(Checkpoint, KilledAtRandomMomentsEndsWithTheSameBits) {
  Training run(7);
  EXPECT_GT(runWithInterruptions(run, SIGKILL, 20, 1).all, 5);
  expectSameResults(run, uninterrupted());
}

TEST(Checkpoint, AtMostOneIntervalIsRedone) {
  Training run(7);
  Process process(LOGREG, run.arguments(false));
  while (process.isRunning() && run.epochsLogged() == 0)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  process.signal(SIGKILL); // after the first epoch, so after step 134
  process.wait();
  EXPECT_GE(run.newestCheckpoint(), 133);
}

TEST(Checkpoint, KilledWhileWritingEndsWithTheSameBits) {
  Training run(1);
  EXPECT_GT(runWithInterruptions(run, SIGKILL, 20, 2, /*inCheckpoints=*/true).inCheckpoints, 3);
  expectSameResults(run, uninterrupted());
  for (const std::string &name : run.checkpointNames())
    EXPECT_TRUE(name.ends_with(".safetensors")) << name;
}

TEST(Checkpoint, InterruptedEndsWithTheSameBits) {
  Training run(1000000);
  EXPECT_GT(runWithInterruptions(run, SIGINT, 5, 3).all, 0);
  expectSameResults(run, uninterrupted());
}

TEST(Checkpoint, TerminatedEndsWithTheSameBits) {
  Training run(1000000);
  EXPECT_GT(runWithInterruptions(run, SIGTERM, 5, 4).all, 0);
  expectSameResults(run, uninterrupted());
}

TEST(Checkpoint, ResumeWithoutOneStartsAfresh) {
  Training run(100);
  ASSERT_EQ(run.run(true).code, 0);
  expectSameResults(run, uninterrupted());
}

TEST(Checkpoint, ResumeOfAFinishedRunGoesOnWithMoreEpochs) {
  Training run(100);
  ASSERT_EQ(run.run(false, {"--epochs", "2"}).code, 2); // given twice
  ASSERT_EQ(run.run(false).code, 0);
  std::string weights = test::contentOf(run.weights());
  ProcessResult again = run.run(true);
  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_EQ(again.out, "");
  EXPECT_EQ(test::contentOf(run.weights()), weights);
}

TEST(Checkpoint, ADamagedOneIsSkipped) {
  Training run(100);
  ASSERT_EQ(run.run(false).code, 0);
  for (const char *name : {"step-000000000536.safetensors", "step-000000000500.safetensors"}) {
    std::string path = run.checkpoints() + "/" + name, content = test::contentOf(path);
    content[content.size() - 100] ^= 1; // flips one bit of a tensor
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

/// The checksum covers all contents of a checkpoint, not only its tensors.
TEST(Checkpoint, AnEditedOneIsSkipped) {
  Training run(100);
  ASSERT_EQ(run.run(false).code, 0);
  std::string path = run.checkpoints() + "/step-000000000536.safetensors", whole = test::contentOf(path);
  for (const char *key : {"model", "states", "seed", "batch", "rows", "epoch", "step", "rows_done"}) {
    std::string content = whole, start = std::string("\"sluice.") + key + "\":\"";
    ASSERT_NE(content.find(start), std::string::npos) << key;
    content[content.find(start) + start.size()] ^= 1; // changes a digit or letter
    std::ofstream(path, std::ios::binary) << content;
    ProcessResult result = run.run(true);
    EXPECT_EQ(result.code, 0) << result.err;
    EXPECT_NE(result.err.find("536.safetensors: its checksum does not fit its content"), std::string::npos)
        << result.err;
    EXPECT_NE(result.err.find("resumed at step 500"), std::string::npos) << result.err;
  }
  expectSameResults(run, uninterrupted());
}

TEST(Checkpoint, AFolderHasOneTrainer) {
  Training run(1);
  Process first(LOGREG, run.arguments(false));
  while (first.isRunning() && run.checkpointNames().empty())
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  ASSERT_TRUE(first.stop());
  ProcessResult second = test::run(LOGREG, {"train", "--checkpoint", run.checkpoints(), "--resume", "--batch", "60"});
  first.signal(SIGCONT);
  EXPECT_EQ(first.wait().code, 0);

  EXPECT_EQ(second.code, 3) << second.err;
  EXPECT_NE(second.err.find(run.checkpoints() + ": another process, " + std::to_string(first.id()) + ", trains with"),
            std::string::npos)
      << second.err;
  expectSameResults(run, uninterrupted());
}

TEST(Checkpoint, WeightsBesideResumeAreRefused) {
  Training run(100);
  ProcessResult result = run.run(true, {"--weights", "no/such.safetensors"});
  EXPECT_EQ(result.code, 2);
  EXPECT_NE(result.err.find("cannot combine --weights with --resume"), std::string::npos) << result.err;
}

TEST(Checkpoint, OthersFlagsAreRefused) {
  Training run(100);
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
  Training run(100);
  ASSERT_EQ(run.run(false).code, 0);
  ProcessResult again = run.run(false);
  EXPECT_EQ(again.code, 2);
  EXPECT_NE(again.err.find("add --resume"), std::string::npos) << again.err;
}

TEST(Checkpoint, AnotherModelsIsRefused) {
  Training run(100);
  ASSERT_EQ(run.run(false).code, 0);
  ProcessResult result =
      test::run(OTHER_LOGREG, {"train", "--checkpoint", run.checkpoints(), "--resume", "--batch", "60"});
  EXPECT_EQ(result.code, 3);
  EXPECT_NE(result.err.find("checkpoint of another model"), std::string::npos) << result.err;
}
