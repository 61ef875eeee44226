// A compiled LeNet that is killed at any time of its training and resumed must end with the bits of an uninterrupted
// run.
#include "runtime/data/OpenData.h"
#include "tests/runtime/FileContents.h"
#include "tests/runtime/TrainingRun.h"
#include <csignal>
#include <gtest/gtest.h>

using namespace sluice;
using namespace sluice::test;

namespace {

// Few images, so that twenty processes take seconds; the last batch of an epoch has 22 rows.
constexpr int64_t kImages = 150, kTestImages = 30, kStepsPerEpoch = 5;

void expectSuccess(const ProcessResult &result) { ASSERT_EQ(result.code, 0) << result.err; }

/// The first rows of a column.
std::string firstRows(runtime::Column &column, int64_t count) {
  column.load();
  runtime::Bytes row(static_cast<size_t>(column.header().rowBytes()));
  std::string rows;
  for (int64_t i = 0; i < count; ++i) {
    column.read(i, row);
    rows.append(reinterpret_cast<const char *>(row.data()), row.size());
  }
  return rows;
}

/// Writes the first images of a part of the bundled data.
void writeImages(const TemporaryFolder &folder, runtime::DataPart part, const std::string &prefix, int64_t count) {
  runtime::Table table = *runtime::DataPath(SLUICE_MNIST).part(part);
  auto rows = static_cast<uint32_t>(count);
  folder.write(prefix + "-images-idx3-ubyte", idx({rows, 28, 28}, firstRows(*table.open("image"), count)));
  folder.write(prefix + "-labels-idx1-ubyte", idx({rows}, firstRows(*table.open("label"), count)));
}

class Resume : public testing::Test {
protected:
  static void SetUpTestSuite() {
    folder = new TemporaryFolder;
    writeImages(*folder, runtime::DataPart::train, "train", kImages);
    writeImages(*folder, runtime::DataPart::test, "t10k", kTestImages);
    std::string bin = SLUICE_BINARY_DIR "/bin/", model = *folder / "lenet.mlir";
    expectSuccess(run(bin + "models/lenet", {"--batch", "32", "-o", model}));
    expectSuccess(run(bin + "sluice", {"compile", model, "-q", "-o", *folder / "lenet"}));
  }
  static void TearDownTestSuite() { delete folder; }

  static TrainingRun training(int epochs, int every) {
    return {*folder / "lenet", {"--data", folder->path(), "--seed", "5", "--epochs", std::to_string(epochs)}, every};
  }

  static std::chrono::duration<double> timeOf(const TrainingRun &training) {
    auto start = std::chrono::steady_clock::now();
    expectSuccess(training.run(false));
    return std::chrono::steady_clock::now() - start;
  }

  static inline TemporaryFolder *folder = nullptr;
};

} // namespace

TEST_F(Resume, KilledTwentyTimesEndsWithTheSameBits) {
  constexpr int epochs = 24, every = 3;
  TrainingRun start = training(0, every), reference = training(epochs, every), killed = training(epochs, every);
  Interruptions kills{.signal = SIGKILL, .most = 20, .seed = 1, .inCheckpoints = true};
  kills.start = timeOf(start);
  kills.whole = timeOf(reference);

  int64_t last = 0;
  Hits hits = runWithInterruptions(killed, kills, [&] {
    // The checkpoints cover the logged epochs, except for less than one checkpoint interval.
    int64_t done = killed.epochsLogged() * kStepsPerEpoch, saved = killed.newestCheckpoint();
    EXPECT_GE(saved, done / every * every);
    EXPECT_GE(saved, last);
    last = saved;
  });

  std::printf("%d kills, %d of them in a checkpoint, up to step %d of %d\n", hits.all, hits.inCheckpoints, int(last),
              int(epochs * kStepsPerEpoch));
  EXPECT_GT(hits.all, 5);
  EXPECT_GT(hits.inCheckpoints, 2);
  EXPECT_GT(last, 0);
  expectSameResults(killed, reference);
  EXPECT_FALSE(killed.isHalfWritten());
}
