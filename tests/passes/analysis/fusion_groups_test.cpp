// How large the launches of an entry point may become on the CPU: chains, diamonds and wide ops, of any length. And
// what is the backend's word alone.
#include "backends/cpu/compiler/Plugin.h"
#include "backends/loops/FusionRules.h"
#include "ir/text/ParseGuard.h"
#include "passes/analysis/FusionGroups.h"
#include "passes/backend/Backend.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace sluice::ir;
using namespace sluice::passes;
using sluice::loops::kMaxOpsInKernel;

namespace {

constexpr const char *kRow = "tensor<?x8xf32>";

/// The body of an entry point, written op by op; every op reads the last one unless told otherwise.
class Body {
public:
  void add(const std::string &op, const std::string &attributes, const std::string &operands, const std::string &type) {
    std::string next = "%v" + std::to_string(count++);
    text += next + " = \"sluice." + op + "\"(" + operands + ") " + attributes + " : " + type + "\n";
    last = next;
  }

  std::string text, last = "%x";
  unsigned count = 0;
};

class FusionGroupsTest : public testing::Test {
protected:
  /// The ops of each launch of an entry point from `x` to the body's last value, of type `result`.
  std::vector<size_t> launchSizes(const Body &body, const std::string &result = kRow, bool fuse = true,
                                  const sluice_backend_compile *table = sluice_cpu_backend_compile()) {
    std::string text =
        "module {\n  sluice.model \"m\" format 1 phase \"train\" capacity 4\nsluice.entry @e [\"x\"] -> [\"y\"] (%x: " +
        std::string(kRow) + ") {\n" + body.text + "sluice.return " + body.last + " : " + result + "\n}\n}";
    auto parsed = parseModuleText(text, "model.mlir", context);
    if (!parsed) {
      ADD_FAILURE() << llvm::toString(parsed.takeError());
      return {};
    }
    module = std::move(*parsed);
    sluice_target_options options{sizeof(options), "native", /*capacity=*/4, /*services=*/nullptr, /*settings=*/""};
    std::unique_ptr<Backend> backend = Backend::create(*table, options, module->getLoc());
    FusionRules rules(fuse,
                      [&](ArrayRef<Operation *> ops, ValueRange results) { return backend->canFuse(ops, results); });
    std::vector<size_t> sizes;
    for (const FusionGroup &group : formFusionGroups(module->lookupSymbol<EntryOp>("e"), rules))
      sizes.push_back(contentsOf(group).ops.size());
    return sizes;
  }

  static size_t largest(const std::vector<size_t> &sizes) {
    return sizes.empty() ? SIZE_MAX : *std::max_element(sizes.begin(), sizes.end());
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
};

Body chain(unsigned length) {
  Body body;
  for (unsigned i = 0; i < length; ++i)
    body.add("add", "", body.last + ", %x", "(tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>");
  return body;
}

} // namespace

TEST_F(FusionGroupsTest, AChainIsCutIntoLaunchesOfTheLargestSize) {
  EXPECT_EQ(launchSizes(chain(kMaxOpsInKernel)), std::vector<size_t>{kMaxOpsInKernel});
  std::vector<size_t> sizes = launchSizes(chain(10 * kMaxOpsInKernel));
  EXPECT_EQ(sizes, std::vector<size_t>(10, kMaxOpsInKernel));
}

// Each op reads the one before twice: as many paths as two to the power of the length.
TEST_F(FusionGroupsTest, DiamondsAreWalkedOnce) {
  Body elements;
  for (unsigned i = 0; i < 100; ++i)
    elements.add("mul", "", elements.last + ", " + elements.last,
                 "(tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>");
  EXPECT_EQ(launchSizes(elements), std::vector<size_t>{100});

  Body numbers; // rematerialised wherever they are used
  numbers.add("rows", "{to = f32}", "", "() -> tensor<f32>");
  for (unsigned i = 0; i < 200; ++i)
    numbers.add("mul", "", numbers.last + ", " + numbers.last, "(tensor<f32>, tensor<f32>) -> tensor<f32>");
  EXPECT_LE(largest(launchSizes(numbers, "tensor<f32>")), kMaxOpsInKernel);
}

TEST_F(FusionGroupsTest, WhatIsFoundAgainIsCountedWhereItIsUsed) {
  Body movements;
  for (unsigned i = 0; i < 4 * kMaxOpsInKernel; ++i)
    movements.add("slice",
                  "{start = array<i64: 0, 0>, end = array<i64: -9223372036854775808, 8>, "
                  "step = array<i64: 1, 1>}",
                  movements.last, "(tensor<?x8xf32>) -> tensor<?x8xf32>");
  movements.add("relu", "", movements.last, "(tensor<?x8xf32>) -> tensor<?x8xf32>");
  EXPECT_LE(largest(launchSizes(movements)), kMaxOpsInKernel);
}

// The pieces of a wide concatenation are made before it.
TEST_F(FusionGroupsTest, PiecesOfWideOpsAreLaunchesOfTheirOwn) {
  constexpr unsigned kPieces = 2 * kMaxOpsInKernel;
  Body body;
  std::string operands, types;
  for (unsigned i = 0; i < kPieces; ++i) {
    body.add("slice",
             "{start = array<i64: 0, 3>, end = array<i64: -9223372036854775808, 4>, "
             "step = array<i64: 1, 1>}",
             "%x", "(tensor<?x8xf32>) -> tensor<?x1xf32>");
    operands += (i ? ", " : "") + body.last;
    types += std::string(i ? ", " : "") + "tensor<?x1xf32>";
  }
  std::string wide = "tensor<?x" + std::to_string(kPieces) + "xf32>";
  body.add("concat", "{axis = 1 : i64}", operands, "(" + types + ") -> " + wide);
  std::vector<size_t> sizes = launchSizes(body, wide);
  EXPECT_EQ(sizes, std::vector<size_t>(kPieces + 1, 1));
}

TEST_F(FusionGroupsTest, WithoutFusionEachOpIsALaunch) {
  EXPECT_EQ(launchSizes(chain(1000), kRow, /*fuse=*/false), std::vector<size_t>(1000, 1));
}

TEST_F(FusionGroupsTest, ABackendThatSaysNothingHasALaunchForEachOp) {
  sluice_backend_compile silent = *sluice_cpu_backend_compile();
  silent.can_fuse = nullptr;
  Body body = chain(3);
  body.add("full", "{value = 1.0 : f64, type = tensor<?x8xf32>}", "", "() -> tensor<?x8xf32>");
  body.add("add", "", body.last + ", %v2", "(tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>");
  EXPECT_EQ(launchSizes(body, kRow, /*fuse=*/true, &silent), std::vector<size_t>(5, 1));
}

// Whatever a backend takes becomes one launch, as long as no path leaves it and comes back: products, too, and any
// number of ops.
TEST_F(FusionGroupsTest, ABackendThatTakesAllHasOneLaunch) {
  sluice_backend_compile greedy = *sluice_cpu_backend_compile();
  greedy.can_fuse = [](sluice_session *, const sluice_kernel_view *, int *fuses) {
    *fuses = 1;
    return SLUICE_OK;
  };
  Body body = chain(2 * kMaxOpsInKernel);
  body.add("full", "{value = 0.5 : f64, type = tensor<8x8xf32>}", "", "() -> tensor<8x8xf32>");
  body.add("einsum", "{equation = \"ab,bc->ac\"}", "%v" + std::to_string(2 * kMaxOpsInKernel - 1) + ", " + body.last,
           "(tensor<?x8xf32>, tensor<8x8xf32>) -> tensor<?x8xf32>");
  body.add("einsum", "{equation = \"ab,bc->ac\"}", body.last + ", %v" + std::to_string(2 * kMaxOpsInKernel),
           "(tensor<?x8xf32>, tensor<8x8xf32>) -> tensor<?x8xf32>");
  EXPECT_EQ(launchSizes(body, kRow, /*fuse=*/true, &greedy), std::vector<size_t>{2 * kMaxOpsInKernel + 3});
}

TEST_F(FusionGroupsTest, WhatALoopReadsIsHeldForIt) {
  Body body;
  body.text = R"(
    %t = sluice.transpose %x {permutation = array<i64: 1, 0>} : (tensor<?x8xf32>) -> tensor<8x?xf32>
    %r = sluice.loop "l" 2 times (%a = %x : tensor<?x8xf32>) {
      %u = sluice.transpose %t {permutation = array<i64: 1, 0>} : (tensor<8x?xf32>) -> tensor<?x8xf32>
      %v = sluice.add %a, %u : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
      sluice.next %v : tensor<?x8xf32>
    }
)";
  body.last = "%r";
  EXPECT_EQ(launchSizes(body), (std::vector<size_t>{1, 1})) << "the transpose, and the loop";
}
