#include "runtime/plan/Plan.h"
#include "FileContents.h"
#include "LogisticRegression.h"
#include "runtime/base/Status.h"
#include "runtime/plan/WritePlan.h"

#include <algorithm>
#include <gtest/gtest.h>

using namespace sluice;
using namespace sluice::runtime;

namespace {

struct BadPlan {
  const char *name, *from, *to, *message;
};

class BadPlanTest : public testing::TestWithParam<BadPlan> {};

std::string replaced(std::string text, const std::string &from, const std::string &to) {
  size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

} // namespace

TEST(Plan, ReadsEveryField) {
  std::string text = test::logisticRegressionPlan();
  Plan plan = readPlan(test::logisticRegression(text));
  EXPECT_EQ(plan.model, "logreg");
  EXPECT_EQ(plan.capacity, 64);
  EXPECT_EQ(plan.parameterCount(), 7850);
  EXPECT_EQ(plan.peakBytes(0), 156800);
  EXPECT_EQ(plan.findState("fc.weight")->layout.size(), 3u);
  EXPECT_EQ(plan.findState("fc.weight.momentum")->of, "fc.weight");
  EXPECT_EQ(plan.findEntry("predict")->outputs[0].shapeFor(5, 64), (Shape{5, 10}));
  EXPECT_EQ(plan.kernels[1].stages[0].tasksFor(9), 3);
  EXPECT_EQ(plan.kernels[3].stages[0].tasksFor(9), 49);
  EXPECT_EQ(plan.kernels[1].cost.flopsFor(2), 31360);
}

TEST(Plan, WhatIsWrittenIsReadBack) {
  std::string text = test::logisticRegressionPlan();
  Plan plan = readPlan(test::logisticRegression(text));
  std::string written = writePlan(plan);
  EXPECT_EQ(readPlan(test::logisticRegression(written)), plan);
}

TEST(Plan, MaySayWhetherRowsAreShuffled) {
  std::string text = test::logisticRegressionPlan();
  EXPECT_EQ(readPlan(test::logisticRegression(text)).shuffle, std::nullopt);
  for (bool shuffles : {false, true}) {
    std::string edited =
        replaced(text, "\"in_flight\"", std::string("\"shuffle\": ") + (shuffles ? "1" : "0") + ", \"in_flight\"");
    Plan plan = readPlan(test::logisticRegression(edited));
    EXPECT_EQ(plan.shuffle, shuffles);
    std::string written = writePlan(plan);
    EXPECT_EQ(readPlan(test::logisticRegression(written)), plan);
  }
  std::string wrong = replaced(text, "\"in_flight\"", "\"shuffle\": 2, \"in_flight\"");
  std::string message = guarded([&] { readPlan(test::logisticRegression(wrong)); }).message;
  EXPECT_NE(message.find("shuffle: is 2, outside [0, 1]"), std::string::npos) << message;
}

TEST(Plan, AnotherAbiIsRefused) {
  std::string text = test::logisticRegressionPlan();
  sluice_artifact artifact = test::logisticRegression(text);
  artifact.abi_version = 99;
  EXPECT_EQ(guarded([&] { readPlan(artifact); }).code, ExitCode::invalid);
}

/// The checksum binds plan and code: a valid plan is rejected if it is not the artifact's own.
TEST(Plan, AnEditedOneIsRefused) {
  std::string text = test::logisticRegressionPlan();
  sluice_artifact artifact = test::logisticRegression(text);
  ASSERT_TRUE(guarded([&] { readPlan(artifact); }).ok());
  for (size_t at : {text.find("\"capacity\": 64"), text.find("logreg"), text.find("\"fn\": 1"), text.size() - 1}) {
    ASSERT_LT(at, text.size());
    std::string whole = text;
    text[at] = text[at] == ' ' ? '\t' : ' '; // the artifact's pointer refers to this text
    Status status = guarded([&] { readPlan(artifact); });
    EXPECT_EQ(status.code, ExitCode::invalid);
    EXPECT_EQ(status.message, "the artifact's checksum does not fit its plan: the file is damaged, or was edited");
    std::copy(whole.begin(), whole.end(), text.begin());
  }
}

TEST(Plan, MoreOrFewerStagesThanItWasMadeForAreRefused) {
  std::string text = test::logisticRegressionPlan();
  sluice_artifact artifact = test::logisticRegression(text);
  ++artifact.num_stages;
  EXPECT_EQ(guarded([&] { readPlan(artifact); }).code, ExitCode::invalid);
}

TEST_P(BadPlanTest, IsRefusedWithItsPlace) {
  std::string text = replaced(test::logisticRegressionPlan(), GetParam().from, GetParam().to);
  test::expectInvalid(guarded([&] { readPlan(test::logisticRegression(text)); }), GetParam().message);
}

static const BadPlan badPlans[] = {
    {"ScalesOfFloats", "\"kind\": \"slot\"", "\"kind\": \"scales\"",
     "plan.states[3]: has scales, f32[10, 784], that fit no parameter of bytes 'fc.weight'"},
    {"Format", "\"format\": 11", "\"format\": 1", "plan.format: is 1"},
    {"Truncated", "\"peak_bytes\": [156800]}]}", "\"peak_bytes\": [15", "not valid JSON"},
    {"MissingModel", "\"model\": \"logreg\",", "", "has no 'model'"},
    {"TwiceTheKey", "\"model\": \"logreg\",", "\"model\": \"a\", \"model\": \"b\",", "appears twice"},
    {"ShapeIsText", "\"shape\": [10, 784]", "\"shape\": \"x\"", "expected a list, found string"},
    {"NegativeSize", "\"shape\": [10, 784]", "\"shape\": [-10, 784]", "outside"},
    {"HugeShape", "\"shape\": [10, 784]", "\"shape\": [1000000000000, 100000000000]", "too large"},
    {"UnknownType", "\"dtype\": \"f32\"", "\"dtype\": \"f8\"", "unknown element type 'f8'"},
    {"FewBytes", "\"bytes\": 50176}", "\"bytes\": 50112}", "needs 50176"},
    {"BeyondTheArena", "\"offset\": 50304", "\"offset\": 64000", "exceed the arena's 100544"},
    {"Unaligned", "\"offset\": 50304", "\"offset\": 50308", "not a multiple of 64"},
    {"NegativeOffset", "\"offset\": 50304", "\"offset\": -64", "is -64"},
    {"HugeOffset", "\"offset\": 50304", "\"offset\": 99999999999999999999", "expected an integer"},
    {"UnknownArena", "\"arena\": 0, \"offset\": 50304", "\"arena\": 3, \"offset\": 50304", "outside [0, 2]"},
    {"HalfLayout", "[[0, \"div\", 8], [1], [0, \"mod\", 8]]", "[[0, \"div\", 8], [1]]", "dimension 0"},
    {"LayoutPart", "[0, \"div\", 8]", "[0, \"rem\", 8]", "not 'div' or 'mod'"},
    {"ZeroTile", "[0, \"div\", 8]", "[0, \"div\", 0]", "outside [1"},
    {"UnknownFunction", "\"fn\": 5", "\"fn\": 6", "outside [0, 5]"},
    {"UnknownKernel", "{\"kernel\": 3", "{\"kernel\": 4", "outside [0, 3]"},
    {"ManyTasks", "\"tasks\": 49", "\"tasks\": 99999999999", "outside"},
    {"WideIgnored", "\"below\": 10", "\"below\": 10, \"ignored\": 5000000000", "outside [-2147483648, 2147483647]"},
    {"IgnoredOfNone", "\"below\": 10", "\"ignored\": -100", "is given without 'below'"},
    {"LayoutOfAnInput", "\"rows_dim\": 0", "\"rows_dim\": 0, \"layout\": [[0]]", "dimension 1"},
    {"RowsDim", "\"rows_dim\": 0", "\"rows_dim\": 4", "outside [-1, 3]"},
    {"RowsNotOfTheCapacity", "\"capacity\": 64", "\"capacity\": 48", "not a multiple of the capacity 48"},
    {"SameState", "\"fc.bias\"", "\"fc.weight\"", "'fc.weight' appears twice"},
    {"Constants", "\"constants\", \"device\": 0, \"bytes\": 0", "\"constants\", \"device\": 0, \"bytes\": 8",
     "brings 0"},
    {"UnknownDevice", "\"constants\", \"device\": 0", "\"constants\", \"device\": 1", "outside [0, 0]"},
};

INSTANTIATE_TEST_SUITE_P(Cases, BadPlanTest, testing::ValuesIn(badPlans),
                         [](const auto &info) { return std::string(info.param.name); });
