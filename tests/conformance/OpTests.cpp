// Every op that the backend says it supports, compiled and compared with its reference function in double precision: in
// all floats, in every layout that the backend must accept, with all rows and with fewer.
#include "ir/text/DiagnosticText.h"
#include "tests/conformance/OpKernel.h"
#include "llvm/ADT/StringRef.h"
#include <algorithm>
#include <memory>
#include <set>

using namespace mlir;

namespace sluice::conformance {

namespace {

/// Outcome of a test's samples.
struct Tally {
  size_t refused = 0;
  std::string reason;          // why the backend refused one
  std::set<std::string> types; // of the kernels of one sample: layouts may come to the same

  void refuse(const std::string &why) {
    ++refused;
    reason = why;
  }
  std::string note() const {
    return refused == 0 ? "" : std::to_string(refused) + " cases refused, such as: " + reason;
  }
};

} // namespace

/// Checks the backend's cost of the op: nothing negative, and a kind.
static void checkCost(passes::Backend &backend, Operation *op) {
  passes::LaunchCost cost = backend.cost(op, op->getOperands(), op->getResults());
  constexpr size_t kMostLetters = 64;
  expect(!cost.kind.empty() && cost.kind.size() <= kMostLetters,
         "cost gives '" + cost.kind + "', which is no kind of at most 64 letters");
  const ir::Work &work = cost.work;
  expect(std::min({work.flops, work.flopsPerRow, work.bytes, work.bytesPerRow}) >= 0, "cost gives a negative figure");
}

/// One sample in one choice of layouts.
struct Case {
  std::string name;
  OpKernel kernel;
};

/// Runs `does`, whose failures name the case.
template <typename Does> static void within(const std::string &name, Does does) {
  try {
    does();
  } catch (const Failed &failed) {
    throw Failed(name + ": " + failed.what());
  }
}

/// Adds the sample with such layouts, unless the backend refuses it.
static void addCase(passes::Backend &backend, const ir::Sample &sample, Layouts layouts, Tally &tally,
                    std::vector<std::unique_ptr<Case>> &cases) {
  auto added = std::make_unique<Case>(Case{sample.op + ", " + nameOf(layouts), OpKernel(sample)});
  OpKernel &kernel = added->kernel;
  if (std::string reason = backend.reasonAgainst(kernel.op()); !reason.empty())
    return tally.refuse(reason);
  within(added->name, [&] {
    checkCost(backend, kernel.op());
    kernel.takeLayouts(backend, layouts);
  });
  if (!tally.types.insert(printTypes(kernel.op())).second)
    return;
  if (std::string reason = backend.reasonAgainst(kernel.op()); !reason.empty())
    return tally.refuse(reason);
  cases.push_back(std::move(added));
}

/// Compiles the cases together, and runs each.
static void checkCases(const Subject &subject, passes::Backend &backend, ArrayRef<std::unique_ptr<Case>> cases,
                       const ir::DiagnosticText &diagnostics) {
  RunHalf half(subject);
  SmallVector<ir::KernelOp> kernels;
  for (const auto &[number, its] : llvm::enumerate(cases))
    kernels.push_back(its->kernel.outline("conformance_" + std::to_string(number)));
  LoadedKernels loaded(half, backend, kernels, diagnostics);
  for (const auto &[number, its] : llvm::enumerate(cases))
    within(its->name, [&, number = number, &kernel = its->kernel] {
      for (int64_t rows : kRowsTried) {
        std::vector<ir::HostTensor> operands = kernel.drawOperands(rows, unsigned(rows));
        loaded.check(number, operands, kernel.evaluate(operands, rows), rows);
        if (!kernel.hasRows())
          return;
      }
    });
}

/// The layouts that a backend must accept: without propose_layout row-major ones alone. Kernels that are the host's have their
/// other layouts in the host's own run of this suite.
static std::vector<Layouts> layoutsOf(const passes::Backend &backend) {
  if (!backend.proposesLayouts())
    return {Layouts::RowMajor};
  if (backend.makerOfKernels() != backend.name())
    return {Layouts::Preferred};
  return {Layouts::RowMajor, Layouts::Preferred, Layouts::Reversed, Layouts::Tiled};
}

static std::string checkOp(const Subject &subject, const std::vector<ir::Sample> &samples) {
  if (!subject.compile)
    throw Skipped("there is no compile half");
  ir::DiagnosticText diagnostics(&test::getContext());
  auto backend = begin(subject);
  Tally tally;
  std::vector<std::unique_ptr<Case>> cases;
  for (const ir::Sample &sample : samples) {
    tally.types.clear();
    for (Layouts layouts : layoutsOf(*backend))
      addCase(*backend, sample, layouts, tally, cases);
  }
  if (cases.empty())
    throw Skipped("unsupported: " + tally.reason);
  checkCases(subject, *backend, cases, diagnostics);
  return tally.note();
}

static void addTest(std::vector<Test> &tests, const std::string &op, const std::string &element,
                    const std::vector<ir::Sample> &samples) {
  if (!samples.empty())
    tests.emplace_back(op + "." + element, [samples](const Subject &subject) { return checkOp(subject, samples); });
}

/// The tests of one op: its samples as they are, and with rows.
static void addTests(std::vector<Test> &tests, const std::string &op, const std::vector<ir::Sample> &given) {
  constexpr const char *kNarrow[] = {"f32", "f16", "bf16"};
  std::vector<ir::Sample> samples, real, narrowed[std::size(kNarrow)], whole;
  for (const ir::Sample &sample : given) {
    samples.push_back(sample);
    if (std::optional<ir::Sample> rows = withRows(sample))
      samples.push_back(*rows);
  }
  for (const ir::Sample &sample : samples) {
    bool isReal = withElement(sample, "f32").op != sample.op;
    (isReal ? real : whole).push_back(sample);
    for (auto [element, list] : llvm::zip_equal(kNarrow, narrowed))
      if (isReal)
        list.push_back(withElement(sample, element));
  }
  std::string name = "op." + StringRef(op).split('.').second.str();
  for (auto [element, list] : llvm::zip_equal(kNarrow, narrowed))
    addTest(tests, name, element, list);
  addTest(tests, name, "f64", real);
  addTest(tests, name, "integer", whole);
  if (samples.empty())
    tests.emplace_back(name,
                       [](const Subject &) -> std::string { throw Failed("the suite has no sample of this op"); });
}

/// A backend whose compile half supports no op was not tested by this suite.
static void supportsAnOp(const Subject &subject) {
  if (!subject.compile)
    throw Skipped("there is no compile half");
  std::string reason;
  auto backend = begin(subject);
  for (const std::string &op : test::getOpsWith<ir::ReferenceOp>()) {
    for (const ir::Sample &sample : test::getSamples(op)) {
      for (const char *element : {"f32", "f64"}) {
        OpKernel kernel(withElement(sample, element));
        reason = backend->reasonAgainst(kernel.op());
        if (reason.empty())
          return;
      }
    }
  }
  throw Failed("it supports none of the ops, so none was tried; of the last it says: " + reason);
}

std::vector<Test> opTests() {
  std::vector<Test> tests{{"compile.supports_an_op", supportsAnOp}};
  for (const std::string &op : test::getOpsWith<ir::ReferenceOp>())
    addTests(tests, op, test::getSamples(op));
  return tests;
}

} // namespace sluice::conformance
