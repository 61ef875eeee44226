// The table of options: texts are read and written alike, and the rows name phases and bounds that exist.
#include "ir/Module.h"
#include "passes/driver/OptionTable.h"
#include "passes/driver/OptionValues.h"
#include "passes/driver/PassTable.h"
#include "llvm/ADT/StringExtras.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <set>

using namespace sluice;
using namespace sluice::passes;
using testing::HasSubstr;

static const Option &option(const char *name) { return *findOption(name); }

/// The text of an option after it was set from `text`.
static std::string readAndWritten(const char *name, llvm::StringRef text) {
  CompileOptions options;
  EXPECT_EQ(setOption(options, option(name), text), "") << name;
  return textOf(options, option(name));
}

static std::string refusal(const char *name, llvm::StringRef text) {
  CompileOptions options;
  std::string reason = setOption(options, option(name), text);
  EXPECT_TRUE(changedOptions(options, {Kept::Model, Kept::Plan, Kept::Run}).empty()) << name << " was set";
  return reason;
}

TEST(OptionTable, RoundTripsText) {
  for (auto [name, text] : {std::pair("dtype", "f64"),
                            {"precision", "bf16"},
                            {"math", "tf32-convolutions"},
                            {"capacity", "64"},
                            {"entries", "predict"},
                            {"devices", "cpu,sim:0=16GB"},
                            {"replicas", "4"},
                            {"replicas", "env"},
                            {"accumulate", "2"},
                            {"deterministic", "8"},
                            {"zero", "1"},
                            {"batch_norm", "sync"},
                            {"wire", "bf16"},
                            {"buckets", "each"},
                            {"copies", "insert"},
                            {"target_cpu", "haswell:l1=32K"},
                            {"backends", "cuda=arch=sm_90,library=all"},
                            {"placement", "auto"},
                            {"links", "sim:0=12GB/s,5us"},
                            {"place_entry", "predict"},
                            {"dump_ir", "folder"}})
    EXPECT_EQ(readAndWritten(name, text), text) << name;
}

TEST(OptionTable, RejectsInvalidValuesAndKeepsTheOld) {
  EXPECT_EQ(refusal("precision", "fp16"), "'fp16' is none of f32, bf16, f16; did you mean 'f16'?");
  EXPECT_EQ(refusal("math", "fastest"),
            "'fastest' is none of strict, tf32-convolutions, tf32, fast; did you mean 'fast'?");
  EXPECT_EQ(refusal("math", ""), "expected strict|tf32-convolutions|tf32|fast");
  EXPECT_EQ(refusal("placement", ""), "expected auto|FILE");
  EXPECT_EQ(refusal("capacity", "0"), "'0' is not a whole number from 1 to 2147483647");
  EXPECT_EQ(refusal("capacity", "env"), "'env' is not a whole number from 1 to 2147483647");
  EXPECT_EQ(refusal("capacity", "1.5"), "'1.5' is not a whole number from 1 to 2147483647");
  EXPECT_EQ(refusal("replicas", "1025"), "'1025' is neither a whole number from 1 to 1024 nor env");
  EXPECT_EQ(refusal("backends", "=x"), "'=x' is not NAME=SETTINGS");
  CompileOptions options;
  EXPECT_EQ(setOption(options, option("backends"), "cuda=arch=sm_90"), "");
  EXPECT_EQ(setOption(options, option("backends"), "cuda=arch=sm_80"), "the settings of cuda are given twice");
  EXPECT_EQ(options.backends, (BackendSettings{{"cuda", "arch=sm_90"}}));
}

TEST(OptionTable, ChecksValuesThatWereNotSetFromText) {
  for (const Option &row : allOptions())
    EXPECT_EQ(invalidValue(CompileOptions(), row), "") << row.name.str();
  CompileOptions options;
  options.dtype = i32;
  options.copies = "never";
  options.accumulate = 1025;
  EXPECT_THAT(invalidValue(options, option("dtype")), HasSubstr("'i32' is none of f32, f64"));
  EXPECT_THAT(invalidValue(options, option("copies")), HasSubstr("'never' is none of explicit, warn, insert"));
  EXPECT_THAT(invalidValue(options, option("accumulate")), HasSubstr("'1025' is not a whole number from 1 to 1024"));
}

TEST(OptionTable, ListsChangedOptionsByWhereTheyAreKept) {
  CompileOptions options;
  EXPECT_TRUE(changedOptions(options, {Kept::Model, Kept::Plan, Kept::Run}).empty());
  options.fuse = false;
  options.capacity = 8;
  options.dump_ir = "folder";
  using List = std::vector<std::pair<std::string, std::string>>;
  EXPECT_EQ(changedOptions(options, {Kept::Plan}), (List{{"fuse", "off"}}));
  EXPECT_EQ(changedOptions(options, {Kept::Model}), (List{{"capacity", "8"}}));
  EXPECT_EQ(changedOptions(options, {Kept::Run}), (List{{"dump_ir", "folder"}}));
  options.placement = "private/placed\xff.json";
  EXPECT_EQ(changedOptions(options, {Kept::Plan}), (List{{"fuse", "off"}, {"placement", "placed\xEF\xBF\xBD.json"}}))
      << "without its folder, and as UTF-8";
}

TEST(OptionTable, NamesPhasesAndHasFlagsOnce) {
  std::set<std::string> flags;
  for (const Option &row : allOptions()) {
    llvm::SmallVector<llvm::StringRef> phases;
    row.phases.split(phases, ',', -1, /*KeepEmpty=*/false);
    for (llvm::StringRef phase : phases)
      EXPECT_TRUE(findPhase(phase)) << row.name.str() << ": " << phase.str();
    EXPECT_EQ(phases.empty(), row.kept == Kept::Run) << row.name.str();
    if (!row.flag.empty()) {
      EXPECT_TRUE(flags.insert(row.flag.str()).second) << row.flag.str();
      EXPECT_FALSE(row.group.empty()) << row.flag.str();
    }
  }
}

TEST(OptionTable, HasTheLimitsOfTheIr) {
  EXPECT_EQ(option("replicas").bounds()->second, ir::kMostReplicas);
  EXPECT_EQ(option("accumulate").bounds()->second, ir::kMostMicrobatches);
  EXPECT_EQ(option("deterministic").bounds()->second, ir::kMostMicrobatches);
}

TEST(OptionValues, FollowTheWordsOfTheTable) {
  CompileOptions options;
  EXPECT_EQ(mathOf(options), SLUICE_MATH_STRICT);
  EXPECT_EQ(bucketPolicyOf(options), BucketPolicy::Auto);
  EXPECT_FALSE(precisionOf(std::nullopt));
  EXPECT_FALSE(promotesToF64(options));
  for (auto [text, math] : {std::pair("tf32-convolutions", SLUICE_MATH_TF32_CONVOLUTIONS),
                            {"tf32", SLUICE_MATH_TF32},
                            {"fast", SLUICE_MATH_FAST}}) {
    options.math = text;
    EXPECT_EQ(mathOf(options), math);
  }
  options.buckets = "fewest";
  EXPECT_EQ(bucketPolicyOf(options), BucketPolicy::Fewest);
  options.buckets = "each";
  EXPECT_EQ(bucketPolicyOf(options), BucketPolicy::Each);
  EXPECT_EQ(precisionOf(bf16), ir::Precision::BF16);
  EXPECT_EQ(precisionOf(f16), ir::Precision::F16);
  options.dtype = f64;
  EXPECT_TRUE(promotesToF64(options));
}
