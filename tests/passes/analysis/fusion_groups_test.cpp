// Tests the sizes of an entry point's launches on the CPU: chains, diamonds and wide ops of any length. Also tests the
// rules that belong to the backend alone.
#include "backends/cpu/compiler/Plugin.h"
#include "backends/loops/FusionRules.h"
#include "ir/text/ParseGuard.h"
#include "passes/analysis/FusionGroups.h"
#include "passes/backend/Backend.h"
#include "passes/backend/KernelView.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace sluice::ir;
using namespace sluice::passes;
using sluice::loops::kMaxOpsInKernel;

namespace {

constexpr const char *kRow = "tensor<?x8xf32>";
constexpr const char *kBinary = "(tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>";

/// The body of an entry point, written op by op; by default every op reads the previous one.
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
                                  const sluice_backend_compile *table = sluice_cpu_backend_compile(),
                                  bool ofLoop = false) {
    std::string text =
        "module {\n  sluice.model \"m\" format 2 phase \"train\" capacity 4\nsluice.entry @e [\"x\"] -> [\"y\"] (%x: " +
        std::string(kRow) + ") {\n" + body.text + "sluice.return " + body.last + " : " + result + "\n}\n}";
    auto parsed = parseModuleText(text, "model.mlir", context);
    if (!parsed) {
      ADD_FAILURE() << llvm::toString(parsed.takeError());
      return {};
    }
    module = std::move(*parsed);
    sluice_target_options options{sizeof(options),      "native",        /*capacity=*/4,
                                  /*services=*/nullptr, /*settings=*/"", /*temporaries=*/nullptr, SLUICE_MATH_STRICT};
    std::unique_ptr<Backend> backend = Backend::create(*table, options, module->getLoc());
    OpViews views;
    FusionRules rules(fuse, [&](ArrayRef<Operation *> ops, ValueRange results) {
      ++queries;
      return backend->canFuse(KernelView(ops, results, views));
    });
    ActionListOp list = module->lookupSymbol<EntryOp>("e");
    if (ofLoop)
      list = *list.getActions().getOps<LoopOp>().begin();
    std::vector<size_t> sizes;
    for (const FusionGroup &group : formFusionGroups(list, rules))
      sizes.push_back(contentsOf(group).ops.size());
    return sizes;
  }

  std::vector<size_t> sizesInLoop(const Body &body) {
    return launchSizes(body, kRow, /*fuse=*/true, sluice_cpu_backend_compile(), /*ofLoop=*/true);
  }

  static size_t largest(const std::vector<size_t> &sizes) {
    return sizes.empty() ? SIZE_MAX : *std::max_element(sizes.begin(), sizes.end());
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
  size_t queries = 0; // of the backend
};

Body chain(unsigned length) {
  Body body;
  for (unsigned i = 0; i < length; ++i)
    body.add("add", "", body.last + ", %x", kBinary);
  return body;
}

/// The product of a value with weights, which a separate launch computes.
void addProduct(Body &body, std::string of) {
  body.add("full", "{value = 0.5 : f64, type = tensor<8x8xf32>}", "", "() -> tensor<8x8xf32>");
  body.add("einsum", "{equation = \"ab,bc->ac\"}", of + ", " + body.last,
           "(tensor<?x8xf32>, tensor<8x8xf32>) -> tensor<?x8xf32>");
}

} // namespace

TEST_F(FusionGroupsTest, AChainIsCutIntoLaunchesOfTheLargestSize) {
  EXPECT_EQ(launchSizes(chain(kMaxOpsInKernel)), std::vector<size_t>{kMaxOpsInKernel});
  std::vector<size_t> sizes = launchSizes(chain(10 * kMaxOpsInKernel));
  EXPECT_EQ(sizes, std::vector<size_t>(10, kMaxOpsInKernel));
}

// A query takes as long as the launch is large.
TEST_F(FusionGroupsTest, AnOpOfAChainIsQueriedOnce) {
  constexpr unsigned kLaunches = 10;
  launchSizes(chain(kLaunches * kMaxOpsInKernel));
  EXPECT_LE(queries, kLaunches * (kMaxOpsInKernel + 1));
}

// Each op reads its predecessor twice: the number of paths is two to the power of the length.
TEST_F(FusionGroupsTest, DiamondsAreWalkedOnce) {
  Body elements;
  for (unsigned i = 0; i < 100; ++i)
    elements.add("mul", "", elements.last + ", " + elements.last, kBinary);
  EXPECT_EQ(launchSizes(elements), std::vector<size_t>{100});

  Body numbers; // rematerialized in every consumer's launch
  numbers.add("rows", "{to = f32}", "", "() -> tensor<f32>");
  for (unsigned i = 0; i < 200; ++i)
    numbers.add("mul", "", numbers.last + ", " + numbers.last, "(tensor<f32>, tensor<f32>) -> tensor<f32>");
  EXPECT_LE(largest(launchSizes(numbers, "tensor<f32>")), kMaxOpsInKernel);
}

TEST_F(FusionGroupsTest, RematerializedOpsCountWhereTheyAreUsed) {
  Body movements;
  for (unsigned i = 0; i < 4 * kMaxOpsInKernel; ++i)
    movements.add("slice",
                  "{start = array<i64: 0, 0>, end = array<i64: -9223372036854775808, 8>, "
                  "step = array<i64: 1, 1>}",
                  movements.last, "(tensor<?x8xf32>) -> tensor<?x8xf32>");
  movements.add("relu", "", movements.last, "(tensor<?x8xf32>) -> tensor<?x8xf32>");
  EXPECT_LE(largest(launchSizes(movements)), kMaxOpsInKernel);
}

// The operands of a wide concatenation are computed before it.
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
  body.add("add", "", body.last + ", %v2", kBinary);
  EXPECT_EQ(launchSizes(body, kRow, /*fuse=*/true, &silent), std::vector<size_t>(5, 1));
}

// If a backend accepts everything, all ops form one launch as long as it stays convex, including products and any
// number of ops.
TEST_F(FusionGroupsTest, ABackendThatTakesAllHasOneLaunch) {
  sluice_backend_compile greedy = *sluice_cpu_backend_compile();
  greedy.can_fuse = [](sluice_session *, const sluice_kernel_view *, int *fuses) {
    *fuses = 1;
    return SLUICE_OK;
  };
  Body body = chain(2 * kMaxOpsInKernel);
  addProduct(body, body.last);
  body.add("einsum", "{equation = \"ab,bc->ac\"}", body.last + ", %v" + std::to_string(2 * kMaxOpsInKernel),
           "(tensor<?x8xf32>, tensor<8x8xf32>) -> tensor<?x8xf32>");
  EXPECT_EQ(launchSizes(body, kRow, /*fuse=*/true, &greedy), std::vector<size_t>{2 * kMaxOpsInKernel + 3});
}

// A chain and its gradient, which reads the result of each op again. Each query passes the whole launch to the backend.
TEST_F(FusionGroupsTest, TheBackendIsAskedAFewTimesForEachOpOfADeepGraph) {
  static size_t questions;
  sluice_backend_compile counting = *sluice_cpu_backend_compile();
  counting.can_fuse = [](sluice_session *session, const sluice_kernel_view *view, int *fuses) {
    ++questions;
    return sluice_cpu_backend_compile()->can_fuse(session, view, fuses);
  };
  constexpr unsigned kDepth = 8 * kMaxOpsInKernel;
  constexpr const char *kUnary = "(tensor<?x8xf32>) -> tensor<?x8xf32>";
  Body body;
  std::vector<std::string> values{"%x"};
  for (unsigned i = 0; i < kDepth; ++i) {
    body.add("sin", "", body.last, kUnary);
    values.push_back(body.last);
  }
  for (unsigned i = kDepth; i-- > 0;) {
    std::string gradient = body.last;
    body.add("cos", "", values[i], kUnary);
    body.add("mul", "", gradient + ", " + body.last, kBinary);
  }
  questions = 0;
  launchSizes(body, kRow, /*fuse=*/true, &counting);
  EXPECT_LE(questions, 8 * body.count);
}

TEST_F(FusionGroupsTest, ElementwiseOpsComeAlongToTheirReader) {
  Body body;
  body.add("mul", "", "%x, %x", kBinary);
  addProduct(body, "%x");
  body.add("add", "", body.last + ", %v0", kBinary);
  EXPECT_EQ(launchSizes(body), (std::vector<size_t>{1, 3}));

  addProduct(body, "%v0"); // which the first launch now also stores
  body.add("add", "", body.last + ", %v3", kBinary);
  EXPECT_EQ(launchSizes(body), (std::vector<size_t>{1, 3, 1, 2}));
}

// A library may multiply a product with a certain function of a matrix, but not with another matrix.
TEST_F(FusionGroupsTest, ABackendMayTakeAnOpForWhatComesAlong) {
  sluice_backend_compile library = *sluice_cpu_backend_compile();
  library.can_fuse = [](sluice_session *, const sluice_kernel_view *view, int *fuses) {
    auto has = [&](auto isIt) {
      for (size_t i = 0; i < view->num_ops; ++i)
        if (isIt(static_cast<Operation *>(sluice_kernel_op_at(view, i)->operation)))
          return true;
      return false;
    };
    *fuses = !has(llvm::IsaPred<EinsumOp>) || (has(llvm::IsaPred<TanhOp>) && view->num_results == 1);
    return SLUICE_OK;
  };
  auto sizesWith = [&](const char *function) {
    Body body;
    addProduct(body, "%x");
    body.add(function, "", "%x", "(tensor<?x8xf32>) -> tensor<?x8xf32>");
    body.add("mul", "", "%v1, %v2", kBinary);
    return launchSizes(body, kRow, /*fuse=*/true, &library);
  };
  EXPECT_EQ(sizesWith("tanh"), (std::vector<size_t>{1, 3}));
  EXPECT_EQ(sizesWith("sin"), (std::vector<size_t>{1, 1, 2}));
}

// A library may compute the sum of an operand in a product's launch, in either program order, but not in a product that
// depends on the sum.
TEST_F(FusionGroupsTest, ABackendMayReadAValueOnceForTwo) {
  sluice_backend_compile library = *sluice_cpu_backend_compile();
  library.can_fuse = [](sluice_session *, const sluice_kernel_view *view, int *fuses) {
    auto isMade = [&](size_t i) {
      return isa<EinsumOp, SumOp>(static_cast<Operation *>(sluice_kernel_op_at(view, i)->operation));
    };
    *fuses = view->num_ops == 2 && isMade(0) && isMade(1) && view->num_results == 2;
    return SLUICE_OK;
  };
  auto addSum = [](Body &body) {
    body.add("sum", "{axes = array<i64: 0>}", "%x", "(tensor<?x8xf32>) -> tensor<8xf32>");
  };
  auto addProductOfColumns = [](Body &body) {
    body.add("einsum", "{equation = \"ab,ac->bc\"}", "%x, %x", "(tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<8x8xf32>");
  };
  auto sizesOf = [&](Body &body, const char *both, const sluice_backend_compile &backend) {
    body.add("einsum", "{equation = \"a,ab->b\"}", both, "(tensor<8xf32>, tensor<8x8xf32>) -> tensor<8xf32>");
    return launchSizes(body, "tensor<8xf32>", /*fuse=*/true, &backend);
  };
  Body inFront, behind, waiting;
  addSum(inFront), addProductOfColumns(inFront);
  EXPECT_EQ(sizesOf(inFront, "%v0, %v1", library), (std::vector<size_t>{2, 1}));
  addProductOfColumns(behind), addSum(behind);
  EXPECT_EQ(sizesOf(behind, "%v1, %v0", library), (std::vector<size_t>{2, 1}));
  EXPECT_EQ(launchSizes(behind, "tensor<8xf32>"), (std::vector<size_t>{1, 1, 1})) << "the CPU reads it twice";

  addSum(waiting);
  waiting.add("tanh", "", "%v0", "(tensor<8xf32>) -> tensor<8xf32>");
  waiting.add("einsum", "{equation = \"ab,b->a\"}", "%x, %v1", "(tensor<?x8xf32>, tensor<8xf32>) -> tensor<?xf32>");
  EXPECT_EQ(launchSizes(waiting, "tensor<?xf32>", /*fuse=*/true, &library), (std::vector<size_t>{1, 1, 1}));
}

// The product reads the value that would otherwise be merged into its launch.
TEST_F(FusionGroupsTest, WhatALaunchReadsDoesNotComeAlong) {
  Body body;
  body.add("mul", "", "%x, %x", kBinary);
  addProduct(body, "%v0");
  body.add("add", "", body.last + ", %v0", kBinary);
  EXPECT_EQ(launchSizes(body), (std::vector<size_t>{1, 1, 2}));
}

// The softmax reads an operand of the second `where` and is read by it, but is in neither launch. The second `where`
// rematerializes its mask.
TEST_F(FusionGroupsTest, WhatIsReadOnTheWayDoesNotComeAlong) {
  Body body;
  body.add("isnan", "", "%x", "(tensor<?x8xf32>) -> tensor<?x8xi1>");
  constexpr const char *kWhere = "(tensor<?x8xi1>, tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>";
  body.add("where", "", "%v0, %x, %x", kWhere);
  body.add("softmax", "{axis = 1 : i64}", body.last, "(tensor<?x8xf32>) -> tensor<?x8xf32>");
  addProduct(body, "%x");
  body.add("where", "", "%v0, %v2, " + body.last, kWhere);
  EXPECT_EQ(launchSizes(body), (std::vector<size_t>{2, 1, 1, 3}));
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

namespace {

/// A loop that stacks a carried value and a value computed from it. `more` is additional code, and `stack` is the next
/// stack.
Body stacking(const std::string &more = "", const std::string &stack = "%u") {
  auto updated = [](const std::string &name, const std::string &in, const std::string &of) {
    return "%p" + name + " = sluice.expand " + of +
           " {dims = array<i64: 0, 2>, shape = array<i64: ?, 1, 8>} : (tensor<?x8xf32>) -> "
           "tensor<?x1x8xf32>\n%" +
           name + " = sluice.dynamic_update_slice " + in + ", %p" + name +
           ", %i {axis = 1 : i64} : (tensor<?x4x8xf32>, tensor<?x1x8xf32>, tensor<i32>) -> tensor<?x4x8xf32>\n";
  };
  Body body;
  body.text = R"(
    %zero = sluice.full {value = 0.0 : f64, type = tensor<i32>} : () -> tensor<i32>
    %none = sluice.full {value = 0.0 : f64, type = tensor<?x4x8xf32>} : () -> tensor<?x4x8xf32>
    %r:4 = sluice.loop "l" 4 times (%i = %zero : tensor<i32>, %a = %x : tensor<?x8xf32>, %s = %none : tensor<?x4x8xf32>,
                                    %t = %none : tensor<?x4x8xf32>) {
      %j = sluice.add %i, %i : (tensor<i32>, tensor<i32>) -> tensor<i32>
      %b = sluice.add %a, %a : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
)" + updated("u", "%s", "%b") +
              updated("v", "%t", "%a") + more + "sluice.next %j, %b, " + stack +
              ", %v : tensor<i32>, tensor<?x8xf32>, tensor<?x4x8xf32>, tensor<?x4x8xf32>\n}\n";
  body.last = "%r#1";
  return body;
}

} // namespace

TEST_F(FusionGroupsTest, PartsAreStoredWhereTheyAreComputed) {
  EXPECT_EQ(sizesInLoop(stacking()), (std::vector<size_t>{5, 1})) << "the sum with two stacks, and then the count";
}

// A value with other readers may not be overwritten.
TEST_F(FusionGroupsTest, PartsOfWhatIsReadBesidesAreStoredByThemselves) {
  std::string read = "%w = sluice.add %s, %t : (tensor<?x4x8xf32>, tensor<?x4x8xf32>) -> tensor<?x4x8xf32>\n";
  EXPECT_EQ(sizesInLoop(stacking(read, "%w")), (std::vector<size_t>{2, 1, 2, 1, 1}));
  std::string readNext = "%w = sluice.add %u, %u : (tensor<?x4x8xf32>, tensor<?x4x8xf32>) -> tensor<?x4x8xf32>\n";
  EXPECT_EQ(sizesInLoop(stacking(readNext, "%w")), (std::vector<size_t>{3, 2, 1, 1}));
}
