// Models with inputs other than MNIST's, trained on other kinds of files. The losses must match a plain loop over the
// same rows in double precision.
#include "runtime/io/Shuffle.h"
#include "tests/TemporaryFolder.h"
#include "tests/runtime/FileContents.h"
#include "tests/runtime/Process.h"
#include <cmath>
#include <cstring>
#include <filesystem>
#include <functional>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <sstream>

using namespace sluice;
using namespace sluice::test;
using nlohmann::json;

namespace {

constexpr uint64_t kSeed = 5;
constexpr int kEpochs = 3, kBatch = 16;
constexpr double kRate = 0.25; // exact in f32

/// Sums of at most a few hundred f32 terms of similar size, over a dozen steps.
constexpr double kTolerance = 2e-5;

/// A training run: the mean loss of each epoch, and of the test rows after it.
struct Losses {
  std::vector<double> train, test;
};

std::string succeed(const std::string &program, const std::vector<std::string> &arguments) {
  ProcessResult result = run(program, arguments);
  EXPECT_EQ(result.code, 0) << result.err;
  return result.out;
}

std::string compiled(const TemporaryFolder &folder, const std::string &model) {
  succeed(SLUICE_BINARY_DIR "/bin/sluice",
          {"compile", folder.write("model.mlir", model), "-q", "-o", folder / "model"});
  return folder / "model";
}

Losses trained(const std::string &program, std::vector<std::string> flags) {
  std::vector<std::string> arguments{
      "train", "--json", "--seed", std::to_string(kSeed), "--epochs", std::to_string(kEpochs)};
  arguments.insert(arguments.end(), flags.begin(), flags.end());
  std::istringstream lines(succeed(program, arguments));
  Losses losses;
  for (std::string line; std::getline(lines, line);) {
    json epoch = json::parse(line);
    losses.train.push_back(epoch["loss"]);
    if (epoch.contains("test_loss"))
      losses.test.push_back(epoch["test_loss"]);
  }
  return losses;
}

/// A model trained by a plain loop: `loss` of a row, which adds its gradient unless the pointer is null.
struct Plain {
  std::vector<double> weights;
  std::function<double(const std::vector<double> &weights, size_t row, std::vector<double> *gradient)> loss;

  Losses train(int rows, int testRows) {
    Losses losses;
    for (int epoch = 0; epoch < kEpochs; ++epoch) {
      std::vector<uint32_t> order = runtime::shuffledOrder(kSeed, static_cast<uint64_t>(epoch), rows);
      double sum = 0, testSum = 0;
      for (size_t begin = 0; begin < order.size(); begin += kBatch)
        sum += step({order.begin() + int(begin), order.begin() + int(std::min(begin + kBatch, order.size()))});
      for (int row = 0; row < testRows; ++row)
        testSum += loss(weights, size_t(rows + row), nullptr); // test rows come after the training rows
      losses.train.push_back(sum / rows);
      losses.test.push_back(testSum / testRows);
    }
    return losses;
  }

  double step(const std::vector<uint32_t> &batch) {
    std::vector<double> gradient(weights.size());
    double sum = 0;
    for (uint32_t row : batch)
      sum += loss(weights, row, &gradient);
    for (size_t i = 0; i < weights.size(); ++i)
      weights[i] -= kRate * gradient[i] / double(batch.size());
    return sum;
  }
};

void expectNear(const std::vector<double> &have, const std::vector<double> &want) {
  ASSERT_EQ(have.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i)
    EXPECT_TRUE(std::abs(have[i] - want[i]) <= kTolerance * std::abs(want[i])) << have[i] << ", expected " << want[i];
}

constexpr const char *kSgd =
    "#sluice.sgd<momentum = 0.0 : f64, dampening = 0.0 : f64, weight_decay = 0.0 : f64, nesterov = false>";

//===- CIFAR-10 ---------------------------------------------------------------------------------------------------===//

constexpr int kClasses = 10, kPixels = 3072, kFeatures = 48; // means of 8 x 8 pixels of one color

std::string colourModel() {
  return std::string(
             R"(module @colours {
  sluice.model "colours" format 2 phase "model" capacity 16 data "cifar"
  sluice.state parameter @w : tensor<10x48xf32> = <"constant", 0.0 : f64>
  sluice.state hyperparameter @lr : tensor<f32> = <"constant", 0.25 : f64>
  sluice.graph ["image", "label"] (%x: tensor<?x3x32x32xui8>, %label: tensor<?xi32>) {
    %w = sluice.get @w : tensor<10x48xf32>
    %f = sluice.cast %x {to = f32} : (tensor<?x3x32x32xui8>) -> tensor<?x3x32x32xf32>
    %c = sluice.full {type = tensor<?x3x32x32xf32>, value = 2.550000e+02 : f64} : () -> tensor<?x3x32x32xf32>
    %s = sluice.div %f, %c : (tensor<?x3x32x32xf32>, tensor<?x3x32x32xf32>) -> tensor<?x3x32x32xf32>
    %p = sluice.avg_pool2d %s {count_include_pad, kernel = array<i64: 8, 8>, padding = array<i64: 0, 0, 0, 0>, stride = array<i64: 8, 8>} : (tensor<?x3x32x32xf32>) -> tensor<?x3x4x4xf32>
    %r = sluice.reshape %p {shape = array<i64: ?, 48>} : (tensor<?x3x4x4xf32>) -> tensor<?x48xf32>
    %y = sluice.einsum "ab,cb->ac" %r, %w : (tensor<?x48xf32>, tensor<10x48xf32>) -> tensor<?x10xf32>
    sluice.output "y", %y : tensor<?x10xf32>
    %each = sluice.softmax_cross_entropy %y, %label : (tensor<?x10xf32>, tensor<?xi32>) -> tensor<?xf32>
    %loss = sluice.mean %each {axes = array<i64: 0>} : (tensor<?xf32>) -> tensor<f32>
    sluice.minimize %loss, )") +
         kSgd + R"( lr @lr [@w] : tensor<f32>
  }
}
)";
}

/// Rows in the format of CIFAR-10: a label, and an image that depends on it.
std::vector<std::string> colourRows(int count) {
  std::mt19937 random(1);
  std::vector<std::string> rows;
  for (int row = 0; row < count; ++row) {
    std::string text(1, static_cast<char>(random() % kClasses));
    for (int i = 0; i < kPixels; ++i)
      text += static_cast<char>((random() + unsigned(text[0]) * unsigned(i / 64)) % 256);
    rows.push_back(text);
  }
  return rows;
}

std::vector<double> features(const std::string &row) {
  std::vector<double> sums(kFeatures);
  for (int i = 0; i < kPixels; ++i) {
    int colour = i / 1024, y = i / 32 % 32, x = i % 32;
    sums[size_t(colour * 16 + y / 8 * 4 + x / 8)] += static_cast<unsigned char>(row[size_t(i) + 1]) / 255.0 / 64;
  }
  return sums;
}

/// Softmax regression on the features of rows.
Plain plainColours(const std::vector<std::string> &rows) {
  auto loss = [&rows](const std::vector<double> &weights, size_t row, std::vector<double> *gradient) {
    std::vector<double> x = features(rows[row]), logits(kClasses);
    for (int c = 0; c < kClasses; ++c)
      for (int i = 0; i < kFeatures; ++i)
        logits[size_t(c)] += weights[size_t(c * kFeatures + i)] * x[size_t(i)];
    double sum = 0;
    for (double logit : logits)
      sum += std::exp(logit);
    for (int c = 0; c < kClasses && gradient; ++c)
      for (int i = 0; i < kFeatures; ++i)
        (*gradient)[size_t(c * kFeatures + i)] +=
            (std::exp(logits[size_t(c)]) / sum - (c == rows[row][0])) * x[size_t(i)];
    return std::log(sum) - logits[size_t(rows[row][0])];
  };
  return {std::vector<double>(kClasses * kFeatures), loss};
}

//===- two inputs -------------------------------------------------------------------------------------------------===//

constexpr int kInputs = 6, kTargets = 2; // numbers per row

std::string twoInputModel() {
  return std::string(R"(module @fit {
  sluice.model "fit" format 2 phase "model" capacity 16
  sluice.state parameter @w : tensor<2x6xf32> = <"constant", 0.0 : f64>
  sluice.state hyperparameter @lr : tensor<f32> = <"constant", 0.25 : f64>
  sluice.graph ["position", "force"] (%x: tensor<?x2x3xf32>, %t: tensor<?x2xf32>) {
    %w = sluice.get @w : tensor<2x6xf32>
    %r = sluice.reshape %x {shape = array<i64: ?, 6>} : (tensor<?x2x3xf32>) -> tensor<?x6xf32>
    %y = sluice.einsum "ab,cb->ac" %r, %w : (tensor<?x6xf32>, tensor<2x6xf32>) -> tensor<?x2xf32>
    sluice.output "y", %y : tensor<?x2xf32>
    %d = sluice.sub %y, %t : (tensor<?x2xf32>, tensor<?x2xf32>) -> tensor<?x2xf32>
    %q = sluice.mul %d, %d : (tensor<?x2xf32>, tensor<?x2xf32>) -> tensor<?x2xf32>
    %loss = sluice.mean %q {axes = array<i64: 0, 1>} : (tensor<?x2xf32>) -> tensor<f32>
    sluice.minimize %loss, )") +
         kSgd + R"( lr @lr [@w] : tensor<f32>
  }
}
)";
}

std::vector<float> randomFloats(int count, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<float> values;
  for (int i = 0; i < count; ++i)
    values.push_back(static_cast<float>(random() % 2001) / 1000 - 1);
  return values;
}

/// The mean squared error of a linear map from positions to forces.
Plain plainFit(const std::vector<float> &positions, const std::vector<float> &forces) {
  auto loss = [&](const std::vector<double> &weights, size_t row, std::vector<double> *gradient) {
    double sum = 0;
    for (size_t t = 0; t < kTargets; ++t) {
      double lack = -double(forces[row * kTargets + t]);
      for (size_t i = 0; i < kInputs; ++i)
        lack += weights[t * kInputs + i] * double(positions[row * kInputs + i]);
      sum += lack * lack / kTargets;
      for (size_t i = 0; i < kInputs && gradient; ++i)
        (*gradient)[t * kInputs + i] += 2 * lack / kTargets * double(positions[row * kInputs + i]);
    }
    return sum;
  };
  return {std::vector<double>(kInputs * kTargets), loss};
}

/// Rows [begin, end) of both columns, one of them deflated.
std::string fitArchive(const std::vector<float> &positions, const std::vector<float> &forces, size_t begin,
                       size_t end) {
  auto rows = [&](const std::vector<float> &values, size_t width) {
    return std::string(reinterpret_cast<const char *>(values.data() + begin * width),
                       (end - begin) * width * sizeof(float));
  };
  std::string count = std::to_string(end - begin);
  return zip({{.name = "force.npy", .content = npyOf("<f4", "(" + count + ", 2)", rows(forces, kTargets))},
              {.name = "position.npy",
               .content = npyOf("<f4", "(" + count + ", 2, 3)", rows(positions, kInputs)),
               .isDeflated = true}});
}

} // namespace

TEST(DataFiles, CifarTrainsAsAPlainLoopDoes) {
  constexpr int rows = 5 * 11, testRows = 20; // the last batch is short
  TemporaryFolder folder;
  std::vector<std::string> all = colourRows(rows + testRows);
  std::filesystem::create_directory(folder / "cifar");
  std::vector<std::string> files(6);
  for (size_t row = 0; row < all.size(); ++row)
    files[std::min<size_t>(row / 11, 5)] += all[row];
  for (int batch = 0; batch < 5; ++batch)
    folder.write(std::string("cifar/data_batch_").append(std::to_string(batch + 1)).append(".bin"),
                 files[size_t(batch)]);
  folder.write("cifar/test_batch.bin", files[5]);

  Losses have = trained(compiled(folder, colourModel()), {}); // the model names its data
  Losses want = plainColours(all).train(rows, testRows);

  expectNear(have.train, want.train);
  expectNear(have.test, want.test);
  EXPECT_LT(have.train.back(), have.train.front());
}

TEST(DataFiles, TwoColumnsOfAnArchiveTrainAsAPlainLoopDoes) {
  constexpr int rows = 100, testRows = 30;
  TemporaryFolder folder;
  std::vector<float> positions = randomFloats((rows + testRows) * kInputs, 1),
                     forces = randomFloats((rows + testRows) * kTargets, 2);
  std::string train = folder.write("train.npz", fitArchive(positions, forces, 0, rows)),
              test = folder.write("other.npz", fitArchive(positions, forces, rows, rows + testRows)),
              program = compiled(folder, twoInputModel());
  Losses want = plainFit(positions, forces).train(rows, testRows);

  Losses have = trained(program, {"--data", train, "--test-data", test, "--save", folder / "w.safetensors"});
  Losses alone = trained(program, {"--data", train});

  expectNear(have.train, want.train);
  expectNear(have.test, want.test);
  EXPECT_EQ(alone.train, have.train);
  EXPECT_TRUE(alone.test.empty());
  json evaluated =
      json::parse(succeed(program, {"eval", "--json", "--data", test, "--weights", folder / "w.safetensors"}));
  EXPECT_EQ(evaluated["loss"], have.test.back());
}

//===- batch norm -------------------------------------------------------------------------------------------------===//

/// A model whose batch norm has one value per channel in each row.
static std::string normModel() {
  return std::string(R"(module @norm {
  sluice.model "norm" format 2 phase "model" capacity 16
  sluice.state parameter @w : tensor<3xf32> = <"constant", 1.0 : f64>
  sluice.state statistic @mean : tensor<3xf32> = <"constant", 0.0 : f64>
  sluice.state statistic @var : tensor<3xf32> = <"constant", 1.0 : f64>
  sluice.state hyperparameter @lr : tensor<f32> = <"constant", 0.0 : f64>
  sluice.graph ["x"] (%x: tensor<?x3xf32>) {
    %w = sluice.get @w : tensor<3xf32>
    %mean = sluice.get @mean : tensor<3xf32>
    %var = sluice.get @var : tensor<3xf32>
    %zero = sluice.full {type = tensor<3xf32>, value = 0.0 : f64} : () -> tensor<3xf32>
    %y:3 = sluice.batch_norm %x, %w, %zero, %mean, %var : (tensor<?x3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> (tensor<?x3xf32>, tensor<3xf32>, tensor<3xf32>)
    sluice.set @mean, %y#1 : tensor<3xf32>
    sluice.set @var, %y#2 : tensor<3xf32>
    %loss = sluice.mean %y#0 {axes = array<i64: 0, 1>} : (tensor<?x3xf32>) -> tensor<f32>
    sluice.minimize %loss, )") +
         kSgd + R"( lr @lr [@w] : tensor<f32>
  }
}
)";
}

TEST(Data, ALastBatchOfOneValuePerChannelIsTold) {
  TemporaryFolder folder;
  std::string program = compiled(folder, normModel()), numbers;
  for (int i = 0; i < 33 * 3; ++i) {
    float number = float(i % 7);
    numbers.append(reinterpret_cast<const char *>(&number), sizeof number);
  }
  std::string data = folder.write("x.npz", zip({{.name = "x.npy", .content = npyOf("<f4", "(33, 3)", numbers)}}));
  std::vector<std::string> arguments{"train", "--data", data, "--epochs", "2"};
  auto trained = [&](std::vector<std::string> flags) {
    flags.insert(flags.begin(), arguments.begin(), arguments.end());
    return run(program, flags);
  };
  const std::string warning = "warning: the last batch of an epoch has 1 row, so one value per channel for batch "
                              "normalization, whose running variance it leaves as it is; --drop-last leaves out such a "
                              "batch\n";
  EXPECT_EQ(trained({}).err, warning);
  EXPECT_EQ(trained({"--batch", "11"}).err, "");
  EXPECT_EQ(trained({"--drop-last"}).err, "each epoch leaves out 1 of 33 training rows: every batch has 16\n");
  ProcessResult single = trained({"--batch", "1"});
  EXPECT_EQ(single.code, 3);
  EXPECT_NE(single.err.find("cannot train on batches of 1 row: batch normalization needs more than one value per "
                            "channel, so at least 2 rows"),
            std::string::npos)
      << single.err;
}

/// A model whose loss is the mean of the rows, which have one number each.
static std::string meanModel() {
  return std::string(R"(module @mean {
  sluice.model "mean" format 2 phase "model" capacity 16
  sluice.state parameter @w : tensor<1xf32> = <"constant", 1.0 : f64>
  sluice.state hyperparameter @lr : tensor<f32> = <"constant", 0.0 : f64>
  sluice.graph ["x"] (%x: tensor<?x1xf32>) {
    %w = sluice.get @w : tensor<1xf32>
    %each = sluice.expand %w {dims = array<i64: 1>, shape = array<i64: ?, 1>} : (tensor<1xf32>) -> tensor<?x1xf32>
    %y = sluice.mul %x, %each : (tensor<?x1xf32>, tensor<?x1xf32>) -> tensor<?x1xf32>
    %loss = sluice.mean %y {axes = array<i64: 0, 1>} : (tensor<?x1xf32>) -> tensor<f32>
    sluice.minimize %loss, )") +
         kSgd + R"( lr @lr [@w] : tensor<f32>
  }
}
)";
}

// Row i is 2^i, so that the loss of an epoch, an exact mean, tells which of the 17 rows is left out.
TEST(Data, EachEpochLeavesOutTheLastRowOfItsOrder) {
  constexpr int rows = kBatch + 1;
  TemporaryFolder folder;
  std::string numbers;
  for (int row = 0; row < rows; ++row) {
    auto number = float(1 << row);
    numbers.append(reinterpret_cast<const char *>(&number), sizeof number);
  }
  std::string data = folder.write("x.npz", zip({{.name = "x.npy", .content = npyOf("<f4", "(17, 1)", numbers)}}));
  Losses losses = trained(compiled(folder, meanModel()), {"--data", data, "--drop-last"});

  std::vector<double> expected;
  std::set<uint32_t> leftOut;
  for (int epoch = 0; epoch < kEpochs; ++epoch) {
    uint32_t last = runtime::shuffledOrder(kSeed, uint64_t(epoch), rows).back();
    leftOut.insert(last);
    expected.push_back(double((1 << rows) - 1 - (1 << last)) / kBatch);
  }
  EXPECT_EQ(losses.train, expected);
  EXPECT_GT(leftOut.size(), 1u);
}
