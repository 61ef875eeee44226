// Kernels that are lowered alone, whose code other sessions may use: results, bytes and symbols.
#include "ir/text/DiagnosticText.h"
#include "tests/conformance/OpKernel.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Object/ObjectFile.h"
#include <algorithm>
#include <memory>

using namespace mlir;

namespace sluice::conformance {

namespace {

/// One kernel of each op that the backend supports in f32, all with different contents.
class Kernels {
public:
  explicit Kernels(const Subject &subject) {
    auto backend = begin(subject);
    if (!backend->lowersKernels())
      throw Skipped("it has no lower_kernels");
    llvm::StringSet<> known;
    for (const std::string &op : test::getOpsWith<ir::ReferenceOp>())
      add(op, *backend, known);
    if (kernels.empty())
      throw Skipped("it supports none of the ops");
  }

  size_t size() const { return kernels.size(); }
  OpKernel &operator[](size_t number) { return *kernels[number]; }
  ArrayRef<ir::KernelOp> ops() const { return outlined; }

private:
  void add(const std::string &op, passes::Backend &backend, llvm::StringSet<> &known) {
    for (const ir::Sample &sample : test::getSamples(op)) {
      auto kernel = std::make_unique<OpKernel>(withElement(sample, "f32"));
      if (!backend.reasonAgainst(kernel->op()).empty())
        continue;
      kernel->takeLayouts(backend, Layouts::Preferred);
      if (!backend.reasonAgainst(kernel->op()).empty())
        continue;
      ir::KernelOp made = kernel->outline("kernel_" + std::to_string(kernels.size()));
      if (!known.insert(backend.keyOf(made).digest).second)
        continue;
      outlined.push_back(made);
      kernels.push_back(std::move(kernel));
      return;
    }
  }

  std::vector<std::unique_ptr<OpKernel>> kernels;
  SmallVector<ir::KernelOp> outlined;
};

/// The results of a session for a kernel.
struct Made {
  std::string launch; // as text
  std::string object;
};

} // namespace

static std::string textOf(const sluice_launch_info &launch) {
  std::string text = std::to_string(launch.workspace_bytes) + " bytes of workspace";
  for (size_t number = 0; number < launch.num_stages; ++number) {
    const sluice_stage_info &stage = *sluice_launch_info_stage_at(&launch, number);
    text += std::string(", ") + stage.symbol + " " + std::to_string(stage.tasks) + " per " +
            std::to_string(stage.rows_per_task);
  }
  return text;
}

/// Prepares these kernels in a new session, and lowers them: in one call, or each in its own.
static std::vector<Made> make(const Subject &subject, ArrayRef<ir::KernelOp> kernels, StringRef prefix,
                              bool inOneCall) {
  ir::DiagnosticText diagnostics(&test::getContext());
  auto backend = begin(subject);
  std::vector<Made> made;
  std::vector<std::string> symbols;
  for (auto [number, kernel] : llvm::enumerate(kernels)) {
    symbols.push_back(backend->keyOf(kernel).symbol);
    auto launch = backend->prepare(kernel, (prefix + std::to_string(number)).str(), symbols.back());
    expect(succeeded(launch), "prepare of " + printTypes(kernel) + " fails: " + diagnostics.errors());
    made.push_back({textOf(*launch), ""});
  }
  Location loc = ir::KernelOp(kernels.front())->getLoc();
  size_t atOnce = inOneCall ? symbols.size() : 1;
  for (size_t first = 0; first < symbols.size(); first += atOnce) {
    auto objects = backend->lowerKernels(ArrayRef(symbols).slice(first, atOnce), loc);
    expect(succeeded(objects), "lower_kernels fails: " + diagnostics.errors());
    for (auto [number, object] : llvm::enumerate(*objects))
      made[first + number].object = std::move(object);
  }
  return made;
}

/// The kernels of two sessions, which lower them together and one by one, give the same bits.
static void results(const Subject &subject) {
  if (!subject.compile || !subject.run)
    throw Skipped("one of its halves is missing");
  Kernels kernels(subject);
  ir::DiagnosticText diagnostics(&test::getContext());
  RunHalf half(subject);
  auto together = begin(subject), alone = begin(subject);
  LoadedKernels expected(half, *together, kernels.ops(), diagnostics);
  LoadedKernels found(half, *alone, kernels.ops(), diagnostics, Lowering::Single);
  for (size_t number = 0; number < kernels.size(); ++number) {
    std::vector<ir::HostTensor> operands = kernels[number].drawOperands(kCapacity, /*seed=*/1);
    expect(found.resultsOf(number, operands) == expected.resultsOf(number, operands),
           "lower and lower_kernels give different results of " + printTypes(kernels.ops()[number]));
  }
}

/// Sessions with other orders, other names and other calls give the same bytes.
static void bytes(const Subject &subject) {
  if (!subject.compile)
    throw Skipped("there is no compile half");
  Kernels kernels(subject);
  std::vector<Made> first = make(subject, kernels.ops(), "first_", /*inOneCall=*/true);
  SmallVector<ir::KernelOp> reversed(llvm::reverse(kernels.ops()));
  std::vector<Made> second = make(subject, reversed, "second_", /*inOneCall=*/false);
  std::reverse(second.begin(), second.end());
  for (auto [kernel, one, other] : llvm::zip_equal(kernels.ops(), first, second)) {
    std::string types = printTypes(ir::KernelOp(kernel));
    expect(one.launch == other.launch,
           "the launch of " + types + " is '" + one.launch + "', and '" + other.launch + "' in another session");
    expect(one.object == other.object, "two sessions give different objects of " + types);
  }
}

/// All global symbols that an object defines begin with the symbol of its kernel.
static void symbols(const Subject &subject) {
  if (!subject.compile)
    throw Skipped("there is no compile half");
  Kernels kernels(subject);
  auto backend = begin(subject);
  for (auto [kernel, made] : llvm::zip_equal(kernels.ops(), make(subject, kernels.ops(), "", /*inOneCall=*/true))) {
    if (made.object.empty())
      continue;
    std::string prefix = backend->keyOf(kernel).symbol;
    auto object = llvm::object::ObjectFile::createObjectFile(llvm::MemoryBufferRef(made.object, prefix));
    expect(bool(object), prefix + " is no object: " + llvm::toString(object.takeError()));
    for (const llvm::object::SymbolRef &symbol : (*object)->symbols()) {
      uint32_t flags = llvm::cantFail(symbol.getFlags());
      StringRef name = llvm::cantFail(symbol.getName());
      bool isExported =
          (flags & llvm::object::SymbolRef::SF_Global) && !(flags & llvm::object::SymbolRef::SF_Undefined);
      expect(!isExported || name.starts_with(prefix), "the object of " + prefix + " defines " + name.str());
    }
  }
}

std::vector<Test> singleKernelTests() {
  return {{"lower_kernels.results", results}, {"lower_kernels.bytes", bytes}, {"lower_kernels.symbols", symbols}};
}

} // namespace sluice::conformance
