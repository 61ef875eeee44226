// Cumulative sums, gathering by index, and largest elements: compared with plain loops, finite differences, the
// interpreter, other thread counts, an accelerator and replicas.
#include "sluice/sluice.h"
#include "tests/e2e/Portable.h"
#include "tests/e2e/TrainedAlike.h"

#include <algorithm>
#include <cmath>
#include <gmock/gmock.h>
#include <numeric>

using namespace sluice::test;

namespace {

constexpr int64_t kRows = 6, kSize = 7, kColumns = 3, kTaken = 4;

/// All functions in one network, along the last dimension and an earlier one.
std::string network(sluice::DType dtype, const std::string &devices = "cpu") {
  using namespace sluice;
  Graph g("order");
  g.set_devices(devices);
  g.set_capacity(kRows);
  g.set_dtype(dtype);
  Tensor x = g.input("x", dtype, {Dim{"batch"}, kSize, kColumns}),
         index = g.input("index", i32, {Dim{"batch"}, kTaken, kColumns});
  nn::Module root{g};
  Tensor w = root.parameter("w", {kColumns, 5}, init::uniform(-0.5, 0.5)),
         scale = root.parameter("scale", {kSize, kColumns}, init::uniform(0.5, 1.5)),
         bias = root.parameter("bias", {5}, init::uniform(-0.5, 0.5));
  Tensor y = x * scale, sums = cumsum(y, 1), behind = cumsum(y, 2, {.exclusive = true, .reverse = true});
  Tensor taken = gather(y, 1, index);
  TopK few = topk(tanh(matmul(y, w) + bias), 3), many = topk(y, 6, 1, /*largest=*/false);
  g.output("sums", sums);
  g.output("behind", behind);
  g.output("taken", taken);
  g.output("few", few.values);
  g.output("few_at", few.indices);
  g.output("many", many.values);
  g.output("many_at", many.indices);
  Tensor loss =
      square(sums * behind).mean() * 0.1 + sin(taken).mean() + square(few.values).mean() + square(many.values).mean();
  g.minimize(loss, optim::SGD{.lr = 0.1, .momentum = 0.9});
  return g.str();
}

Values batch() {
  std::vector<float> x = portableUniform("x", size_t(kRows * kSize * kColumns), -1, 1);
  std::vector<int64_t> index = portableIntegers("index", size_t(kRows * kTaken * kColumns), kSize);
  return {{"x", {x.begin(), x.end()}}, {"index", {index.begin(), index.end()}}};
}

const std::vector<std::string> kParameters = {"w", "scale", "bias"};

} // namespace

// Ties keep their order; computed from the model's own numbers.
TEST(Order, IsWhatPlainLoopsSay) {
  Compiled model(network(sluice::f64));
  model.init(3);
  Values inputs = batch(), actual = model.run("predict", inputs, kRows);
  std::vector<double> y = inputs.at("x"), scale = model.state("scale"), sums(y.size()), behind(y.size()), taken, values,
                      indices;
  for (size_t i = 0; i < y.size(); ++i)
    y[i] *= scale[i % scale.size()];
  auto at = [](int64_t row, int64_t place, int64_t column) {
    return size_t((row * kSize + place) * kColumns + column);
  };
  for (int64_t row = 0; row < kRows; ++row)
    for (int64_t column = 0; column < kColumns; ++column) {
      double sum = 0;
      for (int64_t place = 0; place < kSize; ++place)
        sums[at(row, place, column)] = sum += y[at(row, place, column)];
      for (int64_t place = 0; place < kSize; ++place)
        for (int64_t other = column + 1; other < kColumns; ++other)
          behind[at(row, place, column)] += y[at(row, place, other)];
    }
  std::vector<double> index = inputs.at("index");
  for (int64_t i = 0; i < int64_t(index.size()); ++i)
    taken.push_back(y[at(i / (kTaken * kColumns), int64_t(index[size_t(i)]), i % kColumns)]);
  values.resize(size_t(kRows * 6 * kColumns)), indices.resize(values.size());
  for (int64_t row = 0; row < kRows; ++row)
    for (int64_t column = 0; column < kColumns; ++column) {
      std::vector<int64_t> order(kSize);
      std::iota(order.begin(), order.end(), 0);
      std::sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
        return std::pair(y[at(row, a, column)], a) < std::pair(y[at(row, b, column)], b);
      });
      for (int64_t i = 0; i < 6; ++i) {
        size_t to = size_t((row * 6 + i) * kColumns + column);
        values[to] = y[at(row, order[size_t(i)], column)];
        indices[to] = double(order[size_t(i)]);
      }
    }
  EXPECT_LT(largestDifference(actual.at("sums"), sums), 1e-13);
  EXPECT_LT(largestDifference(actual.at("behind"), behind), 1e-13);
  EXPECT_EQ(actual.at("taken"), taken);
  EXPECT_EQ(actual.at("many"), values);
  EXPECT_EQ(actual.at("many_at"), indices);
}

TEST(Order, HasTheGradientsOfDifferences) {
  expectGradientsOfDifferences(network(sluice::f64), batch(), kRows, kParameters);
}

TEST(Order, TrainsAsTheInterpreter) { expectTrainsAsTheInterpreter(network(sluice::f64), batch(), kRows); }

TEST(Order, HasTheSameBitsOnAnyNumberOfThreadsAndOnAnAccelerator) {
  expectSameBits(network(sluice::f32), network(sluice::f32, "sim:0"), batch(), kRows);
}

TEST(Order, IsEqualOnReplicasAndInMicrobatches) {
  expectSameOnReplicas(network(sluice::f64), batch(), {{4, 2}, {1, 0, 5}});
  expectSameOnReplicas(network(sluice::f64), batch(), {{6}, {4, 2}}, /*microbatches=*/2);
}

namespace {

/// The full order of one line, for each element type.
struct Line {
  std::vector<double> values, indices;
};

Line sorted(sluice::DType dtype, const std::vector<double> &line, bool descending) {
  using namespace sluice;
  Graph g("sorted");
  g.set_capacity(1);
  Tensor x = g.input("x", dtype, {Dim{"batch"}, int64_t(line.size())});
  TopK all = sort(x, 1, descending);
  g.output("values", all.values);
  g.output("indices", all.indices);
  Compiled model(g.str());
  model.init(1);
  Values outputs = model.run("predict", {{"x", line}}, 1);
  return {outputs.at("values"), outputs.at("indices")};
}

} // namespace

TEST(Sort, KeepsEqualElementsInTheirOrderEitherWay) {
  const std::vector<double> line{3, 1, 2, 1, 3, 1, 0, 3, 2};
  for (sluice::DType dtype : {sluice::f32, sluice::f64, sluice::i32, sluice::i64, sluice::u8, sluice::bf16}) {
    Line up = sorted(dtype, line, false), down = sorted(dtype, line, true);
    EXPECT_EQ(up.values, (std::vector<double>{0, 1, 1, 1, 2, 2, 3, 3, 3})) << int(dtype);
    EXPECT_EQ(up.indices, (std::vector<double>{6, 1, 3, 5, 2, 8, 0, 4, 7})) << int(dtype);
    EXPECT_EQ(down.values, (std::vector<double>{3, 3, 3, 2, 2, 1, 1, 1, 0})) << int(dtype);
    EXPECT_EQ(down.indices, (std::vector<double>{0, 4, 7, 2, 8, 1, 3, 5, 6})) << int(dtype);
  }
}

// Infinities sort like other numbers; the result contains each element exactly once.
TEST(Sort, HasWhatIsNoNumberLast) {
  const double infinity = std::numeric_limits<double>::infinity(), none = std::nan("");
  const std::vector<double> line{none, 1, -infinity, none, infinity, -infinity, infinity, 0};
  EXPECT_EQ(sorted(sluice::f32, line, false).indices, (std::vector<double>{2, 5, 7, 1, 4, 6, 0, 3}));
  EXPECT_EQ(sorted(sluice::f32, line, true).indices, (std::vector<double>{4, 6, 1, 7, 2, 5, 0, 3}));
}

TEST(Sort, OrdersTheLeastAndTheGreatestIntegers) {
  const std::vector<double> line{-0x1p31, 0, 0x1p31 - 1, -0x1p31, 0x1p31 - 1};
  EXPECT_EQ(sorted(sluice::i32, line, false).indices, (std::vector<double>{0, 3, 1, 2, 4}));
  EXPECT_EQ(sorted(sluice::i32, line, true).indices, (std::vector<double>{2, 4, 1, 0, 3}));
}

namespace {

/// The indices of a stable sort that puts NaN last.
std::vector<double> stableOrder(const std::vector<double> &line, bool descending) {
  std::vector<double> order(line.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](double a, double b) {
    double x = line[size_t(a)], y = line[size_t(b)];
    if (std::isnan(x) != std::isnan(y))
      return std::isnan(y);
    if (x == y || std::isnan(x))
      return a < b;
    return descending ? x > y : x < y;
  });
  return order;
}

/// Numbers with many duplicates, some infinities and some NaNs.
std::vector<double> line(sluice::DType dtype, int64_t size, uint64_t salt) {
  std::vector<int64_t> drawn = portableIntegers("line" + std::to_string(salt), size_t(size), 200);
  std::vector<double> values;
  for (int64_t number : drawn) {
    double value = dtype == sluice::u8 ? double(number) : double(number - 100) / (is_float(dtype) ? 4 : 1);
    if (is_float(dtype) && number < 8)
      value = number < 3   ? std::nan("")
              : number < 5 ? std::numeric_limits<double>::infinity()
                           : -std::numeric_limits<double>::infinity();
    values.push_back(value);
  }
  return values;
}

/// A network whose loss weighs each position of a sort along an inner dimension. The sort has more elements than are
/// selected one by one.
std::string sortingNetwork(sluice::DType dtype, const std::string &devices = "cpu") {
  using namespace sluice;
  Graph g("sorting");
  g.set_devices(devices);
  g.set_capacity(kRows);
  g.set_dtype(dtype);
  Tensor x = g.input("x", dtype, {Dim{"batch"}, kSize, kColumns});
  nn::Module root{g};
  Tensor w = root.parameter("w", {9, 1, 1}, init::uniform(0.5, 1.5));
  std::vector<Tensor> copies;
  for (int64_t i = 0; i < 9; ++i)
    copies.push_back(x * w.select(0, i) + 0.01 * double(i));
  Tensor y = cat(copies, 1);
  auto places = [&](int64_t count) { return g.arange(1, double(1 + count), 1, dtype).view({count, 1}) / 50; };
  TopK up = sort(y, 1), most = topk(y, 60, 1);
  g.output("at", most.indices);
  g.minimize((up.values.sin() * places(9 * kSize)).mean() + (most.values.square() * places(60)).mean(),
             optim::SGD{.lr = 0.1, .momentum = 0.9});
  return g.str();
}

Values sortingBatch() { return {{"x", batch().at("x")}}; }

} // namespace

TEST(Sort, OfManyIsStableForEveryKindOfNumber) {
  for (sluice::DType dtype : {sluice::f32, sluice::f64, sluice::i32, sluice::i64, sluice::u8, sluice::bf16})
    for (bool descending : {false, true}) {
      std::vector<double> values = line(dtype, 77, 1);
      Line all = sorted(dtype, values, descending);
      EXPECT_EQ(all.indices, stableOrder(values, descending)) << int(dtype) << " " << descending;
    }
}

// Sizes around powers of two: the last block of a sorting network may be incomplete.
TEST(Sort, OfAnyNumberOfElements) {
  for (int64_t size : {1, 2, 31, 32, 33, 64, 65, 255, 1025}) {
    std::vector<double> values = line(sluice::f32, size, uint64_t(size));
    EXPECT_EQ(sorted(sluice::f32, values, false).indices, stableOrder(values, false)) << size;
  }
}

// The number of steps is that of a sorting network. One step for each element would be 100,000 steps.
TEST(Sort, OfManyTakesFewSteps) {
  using namespace sluice;
  constexpr int64_t size = 100'000;
  Graph g("many");
  Tensor x = g.input("x", f32, {size});
  TopK all = sort(x, 0, /*descending=*/false, i64);
  g.output("values", all.values);
  g.output("indices", all.indices);
  Compiled model(g.str());
  const runtime::Entry &predict = model.program().entry("predict");
  int64_t steps = 0;
  for (const runtime::ListedAction &listed : runtime::listActions(predict.actions))
    if (const runtime::Loop *loop = std::get_if<runtime::Loop>(&listed.action->work))
      steps += loop->count;
  EXPECT_EQ(steps, 17 * 18 / 2);
  model.init(1);
  std::vector<float> drawn = portableUniform("many", size, -1, 1);
  std::vector<double> values(drawn.begin(), drawn.end());
  Values outputs = model.run("predict", {{"x", values}}, 1);
  EXPECT_EQ(outputs.at("indices"), stableOrder(values, false));
  std::ranges::sort(values);
  EXPECT_EQ(outputs.at("values"), values);
}

TEST(Sort, OfManyHasTheGradientsOfDifferences) {
  expectGradientsOfDifferences(sortingNetwork(sluice::f64), sortingBatch(), kRows, {"w"});
}

TEST(Sort, OfManyHasTheSameBitsOnAnyNumberOfThreadsAndOnAnAccelerator) {
  expectSameBits(sortingNetwork(sluice::f32), sortingNetwork(sluice::f32, "sim:0"), sortingBatch(), kRows);
}

TEST(Sort, OfManyIsEqualOnReplicasAndInMicrobatches) {
  expectSameOnReplicas(sortingNetwork(sluice::f64), sortingBatch(), {{4, 2}});
  expectSameOnReplicas(sortingNetwork(sluice::f64), sortingBatch(), {{6}}, /*microbatches=*/2);
}

// Sequential additions: other orders have other sums.
TEST(Cumsum, AddsInTheOrderOfTheDimension) {
  using namespace sluice;
  constexpr int64_t size = 300;
  Graph g("sums");
  g.set_capacity(5);
  Tensor x = g.input("x", f32, {Dim{"batch"}, size}), wide = g.input("wide", f32, {Dim{"batch"}, size, 20});
  g.output("sums", cumsum(x, 1));
  g.output("wide_sums", cumsum(wide, 1, {.reverse = true}));
  Compiled model(g.str());
  model.init(1);
  std::vector<float> line = portableUniform("line", 5 * size, -1, 1),
                     block = portableUniform("block", 5 * size * 20, -1, 1);
  Values actual = model.run("predict", {{"x", {line.begin(), line.end()}}, {"wide", {block.begin(), block.end()}}}, 5);
  for (int64_t row = 0; row < 5; ++row) {
    float sum = 0;
    for (int64_t i = 0; i < size; ++i) {
      sum += line[size_t(row * size + i)];
      ASSERT_EQ(actual.at("sums")[size_t(row * size + i)], double(sum)) << row << " " << i;
    }
    for (int64_t column = 0; column < 20; ++column) {
      sum = 0;
      for (int64_t i = size; i-- > 0;) {
        size_t at = size_t((row * size + i) * 20 + column);
        sum += block[at];
        ASSERT_EQ(actual.at("wide_sums")[at], double(sum)) << row << " " << i << " " << column;
      }
    }
  }
}

TEST(Gather, RefusesIndicesThatAreOutOfRange) {
  Compiled model(network(sluice::f32));
  model.init(5);
  Values wrong = batch();
  wrong["index"][kTaken * kColumns + 1] = kSize;
  sluice::runtime::Status status = sluice::runtime::guarded([&] { model.run("predict", wrong, kRows); });
  EXPECT_EQ(status.code, sluice::runtime::ExitCode::invalid);
  EXPECT_THAT(status.message, testing::HasSubstr("input 'index', row 1: 7 is none of the 7"));
}
