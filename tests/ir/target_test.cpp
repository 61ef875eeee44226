// Targets: the syntax of `--devices`, and the module's table.
#include "ir/Target.h"

#include "ir/Dialect.h"
#include "ir/text/DiagnosticText.h"
#include "mlir/Parser/Parser.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace sluice::ir;
using testing::HasSubstr;

static std::string parsed(llvm::StringRef list) {
  llvm::Expected<Target> target = Target::parse(list);
  if (!target)
    return llvm::toString(target.takeError());
  return target->str() + " first " + target->first().name;
}

/// The target of a module with these devices, or the error.
static std::string tableOf(const std::string &devices) {
  mlir::MLIRContext context;
  context.loadDialect<SluiceDialect>();
  DiagnosticText diagnostics(&context);
  auto module = mlir::parseSourceString<mlir::ModuleOp>("module {\n" + devices + "}", &context);
  mlir::FailureOr<Target> target = Target::of(*module);
  return mlir::failed(target) ? diagnostics.errors() : target->str() + " first " + target->first().name;
}

static std::string row(const std::string &name, const std::string &backend, const std::string &rest) {
  return "sluice.device \"" + name + "\" = \"" + backend + "\" " + rest + "\n";
}

TEST(Target, NumbersAcceleratorsInTheOrderOfTheList) {
  llvm::Expected<Target> target = Target::parse("sim:3,cpu,cuda");
  ASSERT_TRUE(bool(target));
  EXPECT_EQ(target->accelerators(), 2);
  EXPECT_EQ(target->find("acc0")->spelling(), "sim:3");
  EXPECT_EQ(target->find("acc1")->spelling(), "cuda:0");
  EXPECT_EQ(target->find("acc2"), nullptr);
}

TEST(Target, HasTheHostFirst) {
  EXPECT_EQ(parsed("cpu"), "cpu first cpu");
  EXPECT_EQ(parsed("cpu:0,sim:1"), "cpu,sim:1 first cpu");
  EXPECT_EQ(parsed("sim:0"), "cpu,sim:0 first acc0");
  EXPECT_EQ(parsed("sim:0,cpu,sim:1"), "cpu,sim:0,sim:1 first acc0");
}

TEST(Target, RefusesWhatIsNoDevice) {
  for (const char *wrong : {"", ",", "cpu,", "sim:", "sim:x", "sim:-1", "sim:0:1", "1sim", "si m", "sim:0x1"})
    EXPECT_THAT(parsed(wrong), HasSubstr("names no device")) << wrong;
  EXPECT_THAT(parsed("gpu:0"), HasSubstr("names no backend"));
}

TEST(Target, RefusesOrdinalsPastTheLast) {
  EXPECT_EQ(parsed("sim:65535"), "cpu,sim:65535 first acc0");
  EXPECT_THAT(parsed("sim:65536"), HasSubstr("numbered from 0 to 65535"));
  EXPECT_THAT(parsed("sim:99999999999999999999"), HasSubstr("numbered from 0 to 65535"));
}

TEST(Target, RefusesADeviceTwice) {
  EXPECT_EQ(parsed("sim,sim:0"), "'sim:0' is listed twice in 'sim,sim:0'");
  EXPECT_EQ(parsed("cpu,cpu:1"), "'cpu:1' is listed twice in 'cpu,cpu:1'");
}

TEST(Target, IsTheHostAloneWithoutATable) { EXPECT_EQ(tableOf(""), "cpu first cpu"); }

TEST(Target, ReadsWhatItRecords) {
  mlir::MLIRContext context;
  context.loadDialect<SluiceDialect>();
  mlir::OwningOpRef<mlir::ModuleOp> module = mlir::ModuleOp::create(mlir::UnknownLoc::get(&context));
  llvm::cantFail(Target::parse("sim:0,cpu,sim:7")).record(*module);
  mlir::FailureOr<Target> target = Target::of(*module);
  ASSERT_TRUE(mlir::succeeded(target));
  EXPECT_EQ(target->str(), "cpu,sim:0,sim:7");
  EXPECT_EQ(target->first().name, "acc0");
}

TEST(Target, RefusesTablesOfAnotherForm) {
  std::string host = row("cpu", "cpu", "0");
  EXPECT_EQ(tableOf(host + row("acc0", "sim", "1 first")), "cpu,sim:1 first acc0");
  EXPECT_THAT(tableOf(row("acc0", "sim", "0")), HasSubstr("is called 'acc0'; the host is 'cpu'"));
  EXPECT_THAT(tableOf(host + row("acc1", "sim", "0")), HasSubstr("is called 'acc1'; the next is 'acc0'"));
  EXPECT_THAT(tableOf(host + row("acc0", "cpu", "0")), HasSubstr("cannot be of the backend 'cpu'"));
  EXPECT_THAT(tableOf(row("cpu", "sim", "0")), HasSubstr("cannot be of the backend 'sim'"));
  EXPECT_THAT(tableOf(host + row("acc0", "s m", "0")), HasSubstr("cannot be of the backend 's m'"));
  EXPECT_THAT(tableOf(host + row("acc0", "sim", "-1")), HasSubstr("numbered from 0 to 65535"));
  EXPECT_THAT(tableOf(host + row("acc0", "sim", "65536")), HasSubstr("numbered from 0 to 65535"));
  EXPECT_THAT(tableOf(host + row("acc0", "sim", "0 first") + row("acc1", "sim", "1 first")),
              HasSubstr("the second device that comes first"));
}
