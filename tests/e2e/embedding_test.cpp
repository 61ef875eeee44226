// Training of embeddings agrees with the interpreter and has the same bits for any number of threads and all indices.
#include "sluice/sluice.h"
#include "tests/Worse.h"
#include "tests/e2e/Harness.h"
#include "tests/e2e/Portable.h"
#include <cmath>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace sluice::test;

namespace {

constexpr int64_t kRows = 60, kWords = 300, kWidth = 24, kLength = 40, kClasses = 3;

/// A mean over words, summed from two tables; one of them has a padding row.
std::string words(sluice::DType dtype, sluice::DType indices = sluice::i32) {
  using namespace sluice;
  Graph g("words");
  g.set_capacity(kRows);
  g.set_dtype(dtype);
  Tensor ids = g.input("ids", indices, {Dim{"batch"}, kLength}), label = g.input("label", i32, {Dim{"batch"}});
  nn::Module root{g};
  nn::Embedding plain{&root, "plain", kWords, kWidth}, padded{&root, "padded", kWords, kWidth, {.padding_idx = 0}};
  nn::Linear fc{&root, "fc", kWidth, kClasses};
  Tensor logits = fc(tanh(plain(ids) * padded(ids) + plain(ids)).mean(1));
  g.output("logits", logits);
  g.minimize(cross_entropy(logits, label), optim::SGD{.lr = 0.5, .momentum = 0.9});
  return g.str();
}

enum class Ids { Random, Equal, Few };

Values batch(Ids kind, int64_t rows) {
  std::vector<int64_t> ids = portableIntegers("ids", rows * kLength, kind == Ids::Few ? 3 : kWords),
                       label = portableIntegers("labels", rows, kClasses);
  if (kind == Ids::Equal)
    std::fill(ids.begin(), ids.end(), 17);
  return {{"ids", {ids.begin(), ids.end()}}, {"label", {label.begin(), label.end()}}};
}

constexpr Ids kKinds[] = {Ids::Random, Ids::Equal, Ids::Few};

/// All states after a step with each type of indices; the last step is short.
std::vector<std::byte> trained(const std::string &text, const sluice::CompileOptions &options, int threads) {
  Compiled model(text, options, {.threads = threads});
  model.init(7);
  for (Ids kind : kKinds)
    model.run("train_step", batch(kind, kRows), kRows);
  model.run("train_step", batch(Ids::Random, 5), 5);
  return model.stateBytes();
}

} // namespace

TEST(Embedding, TrainsAsTheInterpreter) {
  std::string text = words(sluice::f64, sluice::i64);
  Compiled model(text);
  Interpreted reference(text);
  model.init(3);
  for (auto &[name, value] : reference.states)
    value.data = model.state(name);
  for (auto [kind, rows] : {std::pair(Ids::Random, kRows), {Ids::Equal, kRows}, {Ids::Few, int64_t(7)}}) {
    Values actual = model.run("train_step", batch(kind, rows), rows),
           expected = reference.run("train_step", batch(kind, rows), rows);
    EXPECT_LT(largestDifference(actual.at("loss"), expected.at("loss")), 1e-12);
    for (auto &[name, value] : reference.states)
      EXPECT_LT(largestDifference(model.state(name), value.data), 1e-12) << name;
  }
}

TEST(Embedding, HasTheSameBitsOnAnyNumberOfThreads) {
  for (sluice::DType dtype : {sluice::f32, sluice::f64, sluice::bf16}) {
    std::string text = words(dtype);
    std::vector<std::byte> one = trained(text, {}, 1);
    EXPECT_EQ(one, trained(text, {}, 2));
    EXPECT_EQ(one, trained(text, {}, 4));
    sluice::CompileOptions unfused;
    unfused.fuse = false;
    EXPECT_EQ(one, trained(text, unfused, 2));
  }
}

// The padding row starts with zeros and stays zero even if batches contain its index; the other rows change.
TEST(Embedding, DoesNotTrainThePadding) {
  Compiled model(words(sluice::f32));
  model.init(5);
  std::vector<double> before = model.state("padded.weight");
  model.run("train_step", batch(Ids::Few, kRows), kRows);
  std::vector<double> after = model.state("padded.weight");
  auto row = [](const std::vector<double> &weight, int64_t number) {
    return std::vector<double>(weight.begin() + number * kWidth, weight.begin() + (number + 1) * kWidth);
  };
  EXPECT_EQ(row(before, 0), std::vector<double>(kWidth, 0));
  EXPECT_EQ(row(after, 0), row(before, 0));
  EXPECT_NE(row(after, 1), row(before, 1));
  EXPECT_EQ(row(after, 5), row(before, 5)) << "a row that no index names";
  double squares = 0;
  for (double value : before)
    squares += value * value;
  EXPECT_NEAR(squares / double((kWords - 1) * kWidth), 1, 0.1) << "normal, with deviation 1";
}

TEST(Embedding, RefusesIndicesThatNameNoRow) {
  Compiled model(words(sluice::f32));
  model.init(5);
  Values wrong = batch(Ids::Random, 4);
  wrong["ids"][kLength + 3] = kWords;
  sluice::runtime::Status status = sluice::runtime::guarded([&] { model.run("train_step", wrong, 4); });
  EXPECT_EQ(status.code, sluice::runtime::ExitCode::invalid);
  EXPECT_THAT(status.message, testing::HasSubstr("input 'ids', row 1: 300 is none of the 300"));
}
