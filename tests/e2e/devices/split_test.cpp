// LeNet with its convolutions on an accelerator and its dense layers on the host must have the same bits and no
// unnecessary copies.
#include "tests/e2e/Harness.h"
#include "tests/e2e/Portable.h"
#include "tests/e2e/devices/LeNetBatches.h"
#include <gtest/gtest.h>

using namespace sluice::test;
using namespace sluice::runtime;

namespace {

constexpr int64_t kBatch = 256;

std::string splitLeNet() {
  return modelText("lenet", "--input f32 --batch 256 --devices cpu,sim:0 --pin conv=gpu:0 --copies insert");
}

/// Copies between two devices of the plan for all reasons.
CopyCount between(const CopyCounts &counts, size_t from, size_t to) { return byPair(counts)[{from, to}]; }

} // namespace

TEST(Split, TrainsToTheSameBitsAsOnTheHost) {
  Compiled host(modelText("lenet", "--input f32 --batch 256")), split(splitLeNet());
  for (Compiled *model : {&host, &split})
    model->init(3);
  for (int step = 0; step < 4; ++step) {
    int64_t rows = step == 2 ? 37 : kBatch;
    Values batch = lenetBatch(step, rows);
    EXPECT_EQ(host.run("train_step", batch, rows), split.run("train_step", batch, rows)) << "step " << step;
  }
  EXPECT_EQ(host.stateBytes(), split.stateBytes());
}

// To the accelerator: images and the gradient of the activations. From it: the activations after the last pool. The
// learning rate is copied once.
TEST(Split, CopiesWhatMustCrossAndNothingElse) {
  Compiled model(splitLeNet());
  model.init(3);
  model.run("train_step", lenetBatch(0, kBatch), kBatch);
  Executor &executor = model.program().executor();
  for (int64_t rows : {kBatch, int64_t(37)}) {
    CopyCounts before = executor.executedCopies();
    model.run("train_step", lenetBatch(1, rows), rows);
    CopyCounts after = executor.executedCopies();
    CopyCount in = between(after, 0, 1), out = between(after, 1, 0), inBefore = between(before, 0, 1),
              outBefore = between(before, 1, 0);
    int64_t image = 28 * 28 * 4, activation = 50 * 4 * 4 * 4;
    EXPECT_EQ(in.copies - inBefore.copies, 2);
    EXPECT_EQ(in.bytes - inBefore.bytes, rows * (image + activation));
    EXPECT_EQ(out.copies - outBefore.copies, 1);
    EXPECT_EQ(out.bytes - outBefore.bytes, rows * activation);
  }
  EXPECT_EQ(executor.executedCopies(), executor.forecast().counts());
  EXPECT_EQ(byPair(executor.engineCopies()), byPair(executor.executedCopies()));
}

TEST(Split, TheLearningRateCrossesWhenItIsSet) {
  Compiled model(splitLeNet());
  model.init(3);
  auto copies = [&] {
    CopyCounts before = model.program().executor().executedCopies();
    model.run("train_step", lenetBatch(0, kBatch), kBatch);
    return between(model.program().executor().executedCopies(), 0, 1).copies - between(before, 0, 1).copies;
  };
  EXPECT_EQ(copies(), 3);
  EXPECT_EQ(copies(), 2);
  model.setState("lr", {0.01});
  EXPECT_EQ(copies(), 3);
  EXPECT_EQ(copies(), 2);
}

TEST(Split, AnUnwrittenCopyIsAnErrorUnlessAskedFor) {
  std::string text =
      modelText("lenet", "--input f32 --batch 256 --devices cpu,sim:0 --pin conv=gpu:0 --copies explicit");
  std::string message = compileError(text);
  for (const char *part : {"gpu(0)", "cpu", "reshape", "819200 bytes (3200 a row)", "lenet.cpp:"})
    EXPECT_NE(message.find(part), std::string::npos) << part << " is not in: " << message;
}
