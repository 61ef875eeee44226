// Compares every op with a row flow on replicas, each with a share of the rows, with the same op on one device with all
// rows.
#include "ir/Module.h"
#include "ir/text/DiagnosticText.h"
#include "ir/text/ParseGuard.h"
#include "passes/Passes.h"
#include "tests/ir/op_instance.h"
#include "llvm/ADT/StringExtras.h"
#include <cmath>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <numeric>

using namespace mlir;
using namespace sluice::ir;

namespace sluice::test {

namespace {

/// The number of rows of each replica, and the position of the first.
struct Shares {
  std::vector<int64_t> rows;
  int64_t firstOf(size_t replica) const {
    return std::accumulate(rows.begin(), rows.begin() + std::ptrdiff_t(replica), int64_t(0));
  }
};

} // namespace

static OwningOpRef<ModuleOp> parse(const std::string &text) {
  llvm::Expected<OwningOpRef<ModuleOp>> module = parseModuleText(text, "test", getContext());
  if (!module)
    ADD_FAILURE() << llvm::toString(module.takeError()) << text;
  return module ? std::move(*module) : OwningOpRef<ModuleOp>();
}

static EntryOp entryOf(ModuleOp module) { return *module.getOps<EntryOp>().begin(); }

static int64_t rowsDimOf(Type type) {
  ArrayRef<int64_t> shape = cast<RankedTensorType>(type).getShape();
  return llvm::find(shape, ShapedType::kDynamic) - shape.begin();
}

static bool hasRows(Type type) { return !cast<RankedTensorType>(type).hasStaticShape(); }

/// The rows of a value that belong to one replica; all of a value without rows.
static HostTensor shareOf(const HostTensor &whole, Type type, int64_t first, int64_t rows) {
  if (!hasRows(type))
    return whole;
  HostTensor share(runtimeShape(type, rows));
  int64_t dim = rowsDimOf(type);
  forEachIndex(share.shape, [&](ArrayRef<int64_t> index) {
    SmallVector<int64_t> from(index);
    from[dim] += first;
    share.at(index) = whole.at(from);
  });
  return share;
}

/// Compares the partitioned entry point of `module` on replicas with the original on one device.
static void expectEqual(const std::string &text, const std::vector<HostTensor> &inputs, const Shares &shares) {
  SCOPED_TRACE(text);
  int64_t rows = shares.firstOf(shares.rows.size());
  OwningOpRef<ModuleOp> plain = parse(text), partitioned = parse(text);
  ASSERT_TRUE(plain && partitioned);
  StateMap states;
  auto whole = interpret(entryOf(*plain), inputs, states, rows);
  ASSERT_TRUE(succeeded(whole));
  getModel(*partitioned).setReplicas(shares.rows.size());
  getModel(*partitioned).setSyncBatchNorm(true);
  passes::expandComposites(*partitioned);
  ASSERT_TRUE(succeeded(passes::partitionRows(*partitioned)));
  EntryOp entry = entryOf(*partitioned);
  std::vector<StateMap> replicaStates(shares.rows.size());
  SmallVector<ReplicaShare> replicas;
  for (size_t i = 0; i < shares.rows.size(); ++i) {
    ReplicaShare replica{{}, replicaStates[i], shares.rows[i]};
    for (auto [input, argument] : llvm::zip_equal(inputs, entry.getInputArguments()))
      replica.inputs.push_back(shareOf(input, argument.getType(), shares.firstOf(i), shares.rows[i]));
    replicas.push_back(std::move(replica));
  }
  auto results = interpretReplicas(entry, replicas);
  ASSERT_TRUE(succeeded(results));
  for (auto [number, expected] : llvm::enumerate(*whole))
    for (size_t i = 0; i < shares.rows.size(); ++i) {
      Type type = entry.getReturn().getValues()[number].getType();
      HostTensor share = shareOf(expected, type, shares.firstOf(i), shares.rows[i]);
      const HostTensor &actual = (*results)[i][number];
      ASSERT_EQ(actual.shape, share.shape);
      for (size_t at = 0; at < share.data.size(); ++at)
        EXPECT_TRUE(std::abs(actual.data[at] - share.data[at]) <= 1e-13 * std::max(1.0, std::abs(share.data[at])))
            << "result " << number << " of replica " << i << ": " << actual.data[at] << " for " << share.data[at];
    }
}

static std::string textOf(OpInstance &instance) {
  std::string text;
  llvm::raw_string_ostream out(text);
  instance.module->getOperation()->print(out, OpPrintingFlags().printGenericOpForm());
  return text;
}

static const Shares kShares[] = {{{3}}, {{2, 1}}, {{1, 1, 1}}, {{2, 1, 0, 0}}, {{0, 3}}};

TEST(PartitionOps, ReplicasGiveWhatOneDeviceGives) {
  size_t tried = 0;
  for (const std::string &name : getOpsWith<RowFlowOp>())
    for (const Sample &sample : getSamples(name)) {
      OpInstance instance(sample.op);
      ASSERT_TRUE(instance.op) << instance.error;
      if (llvm::none_of(instance.op->getOperandTypes(), hasRows))
        continue;
      ++tried;
      if (cast<RowFlowOp>(instance.op).getRowFlow() != RowFlow::Whole)
        for (const Shares &shares : kShares)
          expectEqual(textOf(instance), drawOperands(instance, sample), shares);
    }
  EXPECT_GE(tried, 40u);
}

TEST(PartitionOps, WhatNeedsAllRowsIsRefused) {
  for (const char *op :
       {"\"sluice.softmax\"(%0) {axis = 0 : i64} : (tensor<?x2xf64>) -> tensor<?x2xf64>",
        "\"sluice.log_softmax\"(%0) {axis = 0 : i64} : (tensor<?x2xf64>) -> tensor<?x2xf64>",
        "\"sluice.prod\"(%0) {axes = array<i64: 0>} : (tensor<?x2xf64>) -> tensor<2xf64>",
        "\"sluice.argmax\"(%0) {axis = 0 : i64} : (tensor<?x2xf64>) -> tensor<2xi32>",
        "\"sluice.uniform\"(%0) {stream = 0 : i64, a = 0.0 : f64, b = 1.0 : f64, type = tensor<?x5xf64>} : "
        "(tensor<2xi32>) -> tensor<?x5xf64>"}) {
    OpInstance instance(op);
    ASSERT_TRUE(instance.op) << instance.error;
    getModel(*instance.module).setReplicas(2);
    DiagnosticText diagnostics(&getContext());
    EXPECT_TRUE(failed(passes::partitionRows(*instance.module)));
    EXPECT_THAT(diagnostics.errors(), testing::HasSubstr("needs all rows at once")) << op;
  }
}

/// An entry point that sums some operands of an op over rows before the op reads them.
static std::string behindSums(OpInstance &instance, unsigned sums) {
  std::string arguments, names, body, operands, types;
  for (auto [i, type] : llvm::enumerate(instance.op->getOperandTypes())) {
    auto tensor = cast<RankedTensorType>(type);
    bool isSum = sums >> i & 1;
    std::string inner =
        llvm::join(llvm::map_range(tensor.getShape(), [](int64_t size) { return std::to_string(size) + "x"; }), "");
    std::string element, n = std::to_string(i);
    llvm::raw_string_ostream(element) << tensor.getElementType() << ">";
    std::string given = "tensor<" + std::string(isSum ? "?x" : "") + inner + element,
                plain = "tensor<" + inner + element;
    std::string comma = i ? ", " : "";
    names += comma + "\"i" + n + "\"";
    arguments += comma + "%i" + n + ": " + given;
    operands += comma + (isSum ? "%s" : "%i") + n;
    if (isSum)
      body += "%s" + n + " = \"sluice.sum\"(%i" + n + ") {axes = array<i64: 0>} : (" + given + ") -> " + plain + "\n";
  }
  std::string op, attributes;
  llvm::raw_string_ostream out(attributes);
  instance.op->getAttrDictionary().print(out);
  llvm::raw_string_ostream typeOut(types);
  typeOut << instance.op->getOperandTypes();
  std::string result;
  llvm::raw_string_ostream(result) << instance.op->getResult(0).getType();
  return "sluice.entry @test [" + names + "] -> [\"y\"] (" + arguments + ") {\n" + body + "%y = \"" +
         instance.op->getName().getStringRef().str() + "\"(" + operands + ") " + attributes + " : (" + types + ") -> " +
         result + "\nsluice.return %y : " + result + "\n}";
}

TEST(PartitionOps, SumsGoThroughLinearOps) {
  size_t tried = 0, passed = 0;
  for (const std::string &name : getOpsWith<LinearOp>())
    for (const Sample &sample : getSamples(name)) {
      OpInstance instance(sample.op);
      ASSERT_TRUE(instance.op) << instance.error;
      auto isExchanged = [](Type type) {
        Type element = cast<RankedTensorType>(type).getElementType();
        return !hasRows(type) && !element.isUnsignedInteger() && !element.isInteger(1);
      };
      if (!llvm::all_of(instance.op->getOperandTypes(), isExchanged))
        continue;
      for (unsigned sums = 1; sums < 1u << instance.op->getNumOperands(); ++sums) {
        ++tried;
        std::string text = behindSums(instance, sums);
        OwningOpRef<ModuleOp> module = parse(text);
        ASSERT_TRUE(module);
        std::vector<HostTensor> inputs;
        for (auto [i, argument] : llvm::enumerate(entryOf(*module).getInputArguments())) {
          inputs.emplace_back(runtimeShape(argument.getType(), 3));
          bool isInteger = isa<IntegerType>(cast<RankedTensorType>(argument.getType()).getElementType());
          for (auto [at, element] : llvm::enumerate(inputs.back().data)) {
            element = 0.25 + std::fmod(0.37 * double(at + 1) * double(i + 1), 1.0);
            element = isInteger ? std::floor(5 * element) : element;
          }
        }
        for (const Shares &shares : kShares)
          expectEqual(text, inputs, shares);
        getModel(*module).setReplicas(2);
        ASSERT_TRUE(succeeded(passes::partitionRows(*module)));
        Value returned = entryOf(*module).getReturn().getValues()[0];
        passed += isa<CollectiveOp>(returned.getDefiningOp());
      }
    }
  EXPECT_GE(tried, 20u);
  EXPECT_GE(passed, 12u) << "ops that are done before their sum is reduced";
}

static HostTensor tensorOf(ArrayRef<int64_t> shape, std::vector<double> data) {
  HostTensor tensor(shape);
  tensor.data = std::move(data);
  return tensor;
}

TEST(PartitionOps, WhatIsPaddedIsThereOnce) {
  const char *text = R"(sluice.entry @test ["x"] -> ["y"] (%x: tensor<?x2xf64>) {
    %s = sluice.sum %x {axes = array<i64: 0>} : (tensor<?x2xf64>) -> tensor<2xf64>
    %y = sluice.pad %s {low = array<i64: 1>, high = array<i64: 0>, interior = array<i64: 0>, value = 2.5 : f64} : (tensor<2xf64>) -> tensor<3xf64>
    sluice.return %y : tensor<3xf64>
  })";
  for (const Shares &shares : kShares)
    expectEqual(text, {tensorOf({3, 2}, {1, 2, 3, 4, 5, 6})}, shares);
}

TEST(PartitionOps, TheLeastIntegerIsAMinimum) {
  const char *text = R"(sluice.entry @test ["x"] -> ["y"] (%x: tensor<?x2xi32>) {
    %y = sluice.reduce_min %x {axes = array<i64: 0>} : (tensor<?x2xi32>) -> tensor<2xi32>
    sluice.return %y : tensor<2xi32>
  })";
  for (const Shares &shares : kShares)
    expectEqual(text, {tensorOf({3, 2}, {1, -0x1p31, 3, 4, 0x1p31 - 1, 6})}, shares);
}

} // namespace sluice::test
