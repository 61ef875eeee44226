// Columns as model inputs: which columns match, where their elements go, and that reading ahead has no effect on
// results.
#include "FileContents.h"
#include "runtime/data/OpenData.h"
#include "runtime/data/ReadAhead.h"
#include "runtime/io/Shuffle.h"
#include "tests/TemporaryFolder.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <thread>

using namespace sluice;
using namespace sluice::runtime;
using namespace sluice::test;

namespace {

constexpr int64_t capacity = 8;

/// A plan of one entry point with these inputs.
struct Model {
  Plan plan;

  explicit Model(std::vector<Value> inputs) {
    plan.capacity = capacity;
    plan.entries.emplace_back().name = "train_step";
    plan.entries.front().inputs = std::move(inputs);
  }
  const Entry &entry() const { return plan.entries.front(); }
};

Value input(const std::string &name, DType dtype, const Shape &shape, int rowsDim = 0, int64_t below = 0) {
  Value value;
  value.name = name;
  value.dtype = dtype;
  value.shape = shape;
  value.rowsDim = rowsDim;
  value.below = below;
  return value;
}

template <typename T> std::string bytesOfAll(const std::vector<T> &values) {
  return {reinterpret_cast<const char *>(values.data()), values.size() * sizeof(T)};
}

template <typename T> std::vector<T> valuesOf(const Bytes &bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

/// A folder of .npy files.
struct Data {
  TemporaryFolder folder;

  Data &add(const std::string &name, const std::string &descr, const std::string &shape, const std::string &data) {
    folder.write(name + ".npy", npyOf(descr, shape, data));
    return *this;
  }
  Table table() const { return DataPath(folder.path()).whole(); }
};

Feed feedOf(const Model &model, const Data &data, const std::vector<std::string> &columns = {}) {
  return Feed(model.plan, model.entry(), data.table(), columns);
}

void expectRefused(const Model &model, const Data &data, const std::string &message) {
  expectInvalid(guarded([&] { feedOf(model, data).load(); }), message);
}

Batch read(const Feed &feed, const std::vector<uint32_t> &rows) {
  Batch batch;
  feed.read(rows, batch);
  return batch;
}

} // namespace

TEST(Feed, BindsColumnsByName) {
  Data data;
  data.add("b", "<f4", "(3, 2)", bytesOfAll<float>({1, 2, 3, 4, 5, 6}))
      .add("a", "<i8", "(3,)", bytesOfAll<int64_t>({7, 8, 9}));
  Model model({input("a", DType::i64, {capacity}), input("b", DType::f32, {capacity, 2})});
  Feed feed = feedOf(model, data);
  feed.load();
  EXPECT_EQ(feed.rows(), 3);
  Batch batch = read(feed, {2, 0});
  EXPECT_EQ(valuesOf<int64_t>(batch[0]), (std::vector<int64_t>{9, 7}));
  EXPECT_EQ(valuesOf<float>(batch[1]), (std::vector<float>{5, 6, 1, 2}));
}

TEST(Feed, TakesColumnsOfOtherNames) {
  Data data;
  data.add("x_train", "<f4", "(1,)", bytesOfAll<float>({4}));
  Model model({input("a", DType::f32, {capacity}), input("b", DType::f32, {capacity})});
  Feed feed = feedOf(model, data, {"a=x_train", "b=x_train"});
  EXPECT_EQ(valuesOf<float>(read(feed, {0})[1]), std::vector<float>{4});
  Status status = guarded([&] { feedOf(model, data, {"A=x_train"}); });
  EXPECT_EQ(status.code, ExitCode::usage);
  EXPECT_NE(status.message.find("--column: entry point 'train_step' has no input 'A'"), std::string::npos)
      << status.message;
}

TEST(Feed, WidensWithinAKind) {
  Data data;
  data.add("label", "|u1", "(2,)", bytesOfAll<uint8_t>({3, 200}))
      .add("x", "<f4", "(2,)", bytesOfAll<float>({0.1f, -2}));
  Model model({input("label", DType::i32, {capacity}), input("x", DType::f64, {capacity})});
  Feed feed = feedOf(model, data);
  Batch batch = read(feed, {0, 1});
  EXPECT_EQ(valuesOf<int32_t>(batch[0]), (std::vector<int32_t>{3, 200}));
  EXPECT_EQ(valuesOf<double>(batch[1]), (std::vector<double>{double(0.1f), -2}));
}

TEST(Feed, RefusesOtherTypes) {
  Data bytes, wide, flags;
  bytes.add("x", "|u1", "(2,)", "ab");
  wide.add("x", "<i8", "(2,)", std::string(16, '\0'));
  flags.add("x", "|b1", "(2,)", std::string(2, '\1'));
  Model real({input("x", DType::f32, {capacity})}), whole({input("x", DType::i32, {capacity})});
  expectRefused(real, bytes,
                "x.npy: column 'x' has rows of u8[], but input 'x' takes f32[]; a column fills its own type");
  expectRefused(whole, wide, "column 'x' has rows of i64[], but input 'x' takes i32[]");
  expectRefused(whole, flags, "column 'x' has rows of bool[], but input 'x' takes i32[]");
}

TEST(Feed, ShapesAgreeButForOnesAndFlatRows) {
  Data data;
  data.add("x", "|u1", "(1, 2, 3)", "abcdef");
  for (const Shape &shape : {Shape{capacity, 2, 3}, Shape{capacity, 1, 2, 1, 3}, Shape{capacity, 6}})
    EXPECT_EQ(feedOf(Model({input("x", DType::u8, shape)}), data).rows(), 1);
  for (const Shape &shape : {Shape{capacity, 3, 2}, Shape{capacity, 5}, Shape{capacity, 2, 3, 2}})
    expectRefused(Model({input("x", DType::u8, shape)}), data,
                  "column 'x' has rows of u8[2, 3], but input 'x' takes u8[");
}

/// Rows in a dimension other than the first, with several elements per row.
TEST(Feed, RowsMayBeAnyDimension) {
  Data data;
  data.add("x", "<i4", "(2, 3)", bytesOfAll<int32_t>({1, 2, 3, 4, 5, 6}))
      .add("y", "<i4", "(2, 2)", bytesOfAll<int32_t>({1, 2, 3, 4}));
  Model model({input("x", DType::i32, {3, capacity}, 1), input("y", DType::i32, {2 * capacity})});
  Batch batch = read(feedOf(model, data), {0, 1});
  EXPECT_EQ(valuesOf<int32_t>(batch[0]), (std::vector<int32_t>{1, 4, 2, 5, 3, 6}));
  EXPECT_EQ(valuesOf<int32_t>(batch[1]), (std::vector<int32_t>{1, 2, 3, 4}));
}

TEST(Feed, AnInputWithoutRowsIsRefused) {
  Data data;
  data.add("x", "<f4", "(2,)", std::string(8, '\0')).add("y", "<f4", "(2,)", std::string(8, '\0'));
  Model model({input("x", DType::f32, {3}, -1), input("y", DType::f32, {capacity})});
  Status status = guarded([&] { feedOf(model, data); });
  EXPECT_EQ(status.code, ExitCode::unsupported);
  EXPECT_NE(status.message.find("input 'x' of type f32[3] has no batch dimension"), std::string::npos)
      << status.message;
}

/// Without a batch dimension, the inputs' first dimension is the number of rows of each call.
TEST(Feed, CallsMayHaveAFixedNumberOfRows) {
  Data data;
  data.add("x", "<i4", "(5, 2)", bytesOfAll<int32_t>({1, 2, 3, 4, 5, 6, 7, 8, 9, 10}))
      .add("y", "<i4", "(5,)", bytesOfAll<int32_t>({1, 2, 3, 4, 5}));
  Model model({input("x", DType::i32, {2, 2}, -1), input("y", DType::i32, {2}, -1)});
  Feed feed = feedOf(model, data);
  EXPECT_EQ(feed.fixedRows(), 2);
  EXPECT_EQ(feed.rows(), 4);
  EXPECT_EQ(feed.rowsLeftOut(), 1);
  Batch batch = read(feed, {3, 0});
  EXPECT_EQ(valuesOf<int32_t>(batch[0]), (std::vector<int32_t>{7, 8, 1, 2}));
  EXPECT_EQ(valuesOf<int32_t>(batch[1]), (std::vector<int32_t>{4, 1}));
  expectRefused(Model({input("x", DType::i32, {6, 2}, -1)}), data, "has 5 rows, and every call has 6");
  Model uneven({input("x", DType::i32, {2, 2}, -1), input("y", DType::i32, {3}, -1)});
  EXPECT_EQ(guarded([&] { feedOf(uneven, data); }).code, ExitCode::unsupported);
}

TEST(Feed, RowsBehindTheLastWholeCallAreLeftOut) {
  Data data;
  data.add("x", "<i4", "(5,)", bytesOfAll<int32_t>({1, 2, 3, 4, 5}));
  Feed feed = feedOf(Model({input("x", DType::i32, {capacity})}), data);
  EXPECT_EQ(feed.rows(), 5);
  feed.takeWholeCalls(2);
  EXPECT_EQ(feed.rows(), 4);
  EXPECT_EQ(feed.rowsLeftOut(), 1);
  feed.takeWholeCalls(6);
  EXPECT_EQ(feed.fixedRows(), 5);
  EXPECT_EQ(feed.rows(), 5);
}

TEST(Feed, AMissingColumnIsNamed) {
  Data data;
  data.add("x", "<f4", "(2,)", std::string(8, '\0'));
  expectRefused(Model({input("image", DType::f32, {capacity})}), data, ": has no column 'image' (columns: 'x')");
}

TEST(Feed, IndicesNameClasses) {
  Data data;
  std::vector<uint8_t> labels(20, 9);
  labels[17] = 10;
  data.add("label", "|u1", "(20,)", bytesOfAll(labels));
  expectRefused(Model({input("label", DType::i32, {capacity}, 0, 10)}), data,
                "label.npy: column 'label', row 17: 10 is none of the 10 classes 0 to 9 of input 'label'");
  feedOf(Model({input("label", DType::i32, {capacity}, 0, 11)}), data).load();
}

TEST(Feed, IgnoredIndicesNameNone) {
  Data data;
  std::vector<uint8_t> labels(20, 9);
  labels[17] = 255;
  data.add("label", "|u1", "(20,)", bytesOfAll(labels));
  Value label = input("label", DType::i32, {capacity}, 0, 10);
  label.ignored = -100;
  expectRefused(Model({label}), data,
                "row 17: 255 is none of the 10 classes 0 to 9 and the ignored -100 of input 'label'");
  label.ignored = 255;
  feedOf(Model({label}), data).load();
}

// Reading ahead

namespace {
/// A hundred rows of five numbers, each equal to its row number.
struct Hundred {
  Data data;
  Model model{{input("x", DType::i32, {capacity, 5})}};

  Hundred() {
    std::vector<int32_t> values;
    for (int row = 0; row < 100; ++row)
      values.insert(values.end(), 5, row);
    data.add("x", "<i4", "(100, 5)", bytesOfAll(values));
  }
};
} // namespace

TEST(ReadAhead, GivesTheBatchesThatReadingInLineGives) {
  Hundred hundred;
  Feed feed = feedOf(hundred.model, hundred.data);
  std::vector<uint32_t> order = shuffledOrder(7, 3, 100);
  for (size_t batch : {1u, 7u, 50u, 100u, 1000u})
    for (size_t first : {0u, 1u, 93u}) {
      std::span<const uint32_t> rows = std::span(order).subspan(first);
      ReadAhead batches(feed, rows, static_cast<int64_t>(batch));
      for (size_t begin = 0; begin < rows.size(); begin += batch) {
        Batch inLine;
        feed.read(rows.subspan(begin, std::min(batch, rows.size() - begin)), inLine);
        ASSERT_EQ(batches.next(), inLine) << batch << " from " << first + begin;
        if (begin % 3 == 0)
          std::this_thread::sleep_for(std::chrono::microseconds(200)); // lets the reader run ahead
      }
    }
}

TEST(ReadAhead, AnErrorComesWithItsBatch) {
  Data data;
  std::vector<uint8_t> flags(100, 1);
  flags[60] = 7;
  data.add("x", "|b1", "(100,)", bytesOfAll(flags));
  Model model({input("x", DType::boolean, {capacity})});
  Feed feed = feedOf(model, data);
  std::vector<uint32_t> order(100);
  for (uint32_t i = 0; i < 100; ++i)
    order[i] = i;
  ReadAhead batches(feed, order, 25);
  EXPECT_EQ(batches.next().front().size(), 25u);
  EXPECT_EQ(batches.next().front().size(), 25u);
  expectInvalid(guarded([&] { batches.next(); }), "x.npy: column 'x', row 60: a boolean is neither 0 nor 1");
  expectInvalid(guarded([&] { batches.next(); }), "row 60");
}

TEST(ReadAhead, EndsBeforeItsEnd) {
  Hundred hundred;
  Feed feed = feedOf(hundred.model, hundred.data);
  std::vector<uint32_t> order = shuffledOrder(1, 1, 100);
  for (int taken : {0, 1, 3}) {
    ReadAhead batches(feed, order, 10);
    for (int i = 0; i < taken; ++i)
      batches.next();
  }
}
