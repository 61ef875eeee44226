// Every entry point runs twice on the same inputs and states: compiled and in the reference interpreter. The compiled
// run keeps the results of each launch before its buffers are overwritten. Each kernel of the interpreter reads the
// results of the compiled kernels before it, and its results are compared with the compiled kernel's. So errors do not
// accumulate over the depth of a network, and a value that was overwritten too early is detected at its consumer.
// Finally, outputs and states must equal the results of the kernels that produced them.
#include "tools/compiler/Verify.h"

#include "ir/Layout.h"
#include "ir/Module.h"
#include "ir/reference/Interpreter.h"
#include "ir/text/DiagnosticText.h"
#include "ir/text/ParseGuard.h"
#include "runtime/io/InitialValues.h"
#include "tools/compiler/CompilerContext.h"
#include "tools/compiler/Deviation.h"
#include "tools/compiler/Diagnostics.h"
#include "tools/compiler/LoadedModel.h"
#include "tools/compiler/Magnitudes.h"
#include <cmath>
#include <cstring>
#include <random>

using namespace mlir;
using sluice::ir::HostTensor;

namespace sluice::compiler {

static double readElement(Type element, const std::byte *data, int64_t index) {
  return runtime::elementAsDouble(runtime::DType(*ir::dtypeOf(element)), data, index);
}

static HostTensor toReference(runtime::DType dtype, const runtime::Shape &shape, llvm::ArrayRef<std::byte> bytes) {
  HostTensor tensor(shape);
  for (int64_t i = 0; i < tensor.size(); ++i)
    tensor.data[i] = runtime::elementAsDouble(dtype, bytes.data(), i);
  return tensor;
}

template <typename T> static void appendAs(std::vector<std::byte> &bytes, double value) {
  T typed = static_cast<T>(value);
  const auto *raw = reinterpret_cast<const std::byte *>(&typed);
  bytes.insert(bytes.end(), raw, raw + sizeof typed);
}

static void append(std::vector<std::byte> &bytes, runtime::DType dtype, double value) {
#define SLUICE_DTYPE_APPEND(name, number, type, ...)                                                                   \
  case runtime::DType::name:                                                                                           \
    return appendAs<type>(bytes, value);
  switch (dtype) { SLUICE_FOR_EACH_DTYPE(SLUICE_DTYPE_APPEND) }
#undef SLUICE_DTYPE_APPEND
}

/// The index of an element of a row-major tensor.
static std::vector<int64_t> indexOf(size_t element, llvm::ArrayRef<int64_t> shape) {
  std::vector<int64_t> index(shape.size());
  for (size_t dim = shape.size(); dim-- > 0; element /= size_t(shape[dim]))
    index[dim] = int64_t(element % size_t(shape[dim]));
  return index;
}

/// The offset in memory of an element of a type with a layout.
class PhysicalIndex {
public:
  PhysicalIndex(RankedTensorType type, int64_t capacity)
      : dims(*ir::getPhysicalDims(type)), sizes(ir::getPhysicalShape(type, capacity)) {}

  int64_t operator()(llvm::ArrayRef<int64_t> index) const {
    int64_t offset = 0;
    for (auto [dim, size] : llvm::zip_equal(dims, sizes)) {
      int64_t at = index[dim.logical];
      if (dim.kind == ir::PhysicalDim::Div)
        at /= dim.tile;
      else if (dim.kind == ir::PhysicalDim::Mod)
        at %= dim.tile;
      offset = offset * size + at;
    }
    return offset;
  }

private:
  llvm::SmallVector<ir::PhysicalDim> dims;
  llvm::SmallVector<int64_t> sizes;
};

namespace {
class Comparison {
public:
  Comparison(ModuleOp module, runtime::Instance &instance, const VerifyOptions &options)
      : module(module), symbols(module), instance(instance), plan(instance.plan()),
        rows(plan.capacity > 0 ? std::min(options.rows, plan.capacity) : 1), random(options.seed), seed(options.seed),
        zeros(options.zeros), nans(options.nans) {}

  llvm::Expected<Verification> run();

private:
  using Bytes = std::vector<std::byte>;
  /// The results of each run of each launch, by entry.
  using Kept = std::map<const runtime::Entry *, std::vector<std::vector<Bytes>>>;

  /// A kernel as the reference runs it.
  struct KernelCall {
    const std::string &entry;
    ir::LaunchOp launch;
    llvm::ArrayRef<HostTensor> operands;

    Block &body() const { return ir::LaunchOp(launch).getCallee().getBody().front(); }
  };

  llvm::Error compareEntry(ir::EntryOp entry);
  HostTensor makeInput(const runtime::Value &input);
  HostTensor makeKey() const;
  double planted(double value);
  SmallVector<HostTensor> setInputs(const runtime::Entry &entry);
  ir::StateMap readStates();
  void setDataOfStates(ir::StateMap &states);
  HostTensor readResult(RankedTensorType type, llvm::ArrayRef<std::byte> data) const;
  Kept runKeeping(const runtime::Entry &entry);
  llvm::Expected<SmallVector<HostTensor>> compareLaunches(const runtime::Entry &entry,
                                                          llvm::ArrayRef<HostTensor> inputs, ir::StateMap &states,
                                                          llvm::ArrayRef<std::vector<Bytes>> left);
  void compareKernel(const KernelCall &call, llvm::ArrayRef<Bytes> left, llvm::MutableArrayRef<HostTensor> results);
  void compareResult(const KernelCall &call, unsigned number, const HostTensor &actual, const HostTensor &expected);
  void compareEnds(const runtime::Entry &entry, llvm::ArrayRef<HostTensor> outputs, const ir::StateMap &states);
  void compareValue(const std::string &entry, const std::string &name, const HostTensor &actual,
                    const HostTensor &expected);
  void note(Difference difference, const Deviation &worst, const HostTensor &actual, const HostTensor &expected);

  ModuleOp module;
  SymbolTable symbols;
  runtime::Instance &instance;
  const runtime::Plan &plan;
  int64_t rows;
  std::mt19937_64 random;
  uint64_t seed;
  double zeros, nans;
  Verification result;
};
} // namespace

/// The input of `init`, computed from the seed.
HostTensor Comparison::makeKey() const {
  HostTensor tensor({2});
  tensor.data[0] = static_cast<double>(static_cast<int32_t>(seed >> 32));
  tensor.data[1] = static_cast<double>(static_cast<int32_t>(seed));
  return tensor;
}

/// Random values that are valid for every model: classes are 0 or 1.
HostTensor Comparison::makeInput(const runtime::Value &input) {
  HostTensor tensor(input.shapeFor(rows, plan.capacity));
  int64_t whole = input.dtype == runtime::DType::u8 ? 256 : 2,
          range = std::min(whole, input.below > 0 ? input.below : whole);
  Type element = ir::typeOf(module.getContext(), sluice_dtype(input.dtype));
  for (double &value : tensor.data) {
    double unit = static_cast<double>(random() >> 40) * 0x1p-24; // exact in f32
    value = ir::roundTo(element, runtime::isFloat(input.dtype) ? unit : std::floor(unit * static_cast<double>(range)));
    if (runtime::isFloat(input.dtype))
      value = planted(value);
  }
  return tensor;
}

double Comparison::planted(double value) {
  if (zeros == 0 && nans == 0)
    return value;
  double drawn = static_cast<double>(random() >> 11) * 0x1p-53;
  return drawn < nans ? NAN : drawn < nans + zeros ? 0 : value;
}

HostTensor Comparison::readResult(RankedTensorType type, llvm::ArrayRef<std::byte> data) const {
  HostTensor tensor(ir::runtimeShape(type, rows));
  PhysicalIndex place(type, plan.capacity);
  int64_t at = 0;
  ir::forEachIndex(tensor.shape, [&](llvm::ArrayRef<int64_t> index) {
    tensor.data[size_t(at++)] = readElement(type.getElementType(), data.data(), place(index));
  });
  return tensor;
}

void Comparison::compareResult(const KernelCall &call, unsigned number, const HostTensor &actual,
                               const HostTensor &expected) {
  ir::LaunchOp launch = call.launch;
  Type element = cast<RankedTensorType>(launch.getOutputs()[number].getType()).getElementType();
  double tolerance = toleranceOf(element);
  SmallVector<HostTensor> magnitudes, halves, rounded, hidden;
  auto magnitude = [&]() -> const HostTensor & {
    if (magnitudes.empty())
      magnitudes = magnitudesOf(call.body(), call.operands, rows, /*perturbs=*/true);
    return magnitudes[number];
  };
  auto granted = [&](size_t i) {
    if (halves.empty())
      halves = errorsOfHalves(call.body(), call.operands, rows);
    return ir::isHalf(element) ? 0 : halves[number].data[i];
  };
  auto inTypes = [&]() -> const HostTensor & {
    if (rounded.empty())
      rounded = roundedResultsOf(call.body(), call.operands, rows);
    return rounded[number];
  };
  auto withHiddenKeys = [&]() -> const HostTensor & {
    if (hidden.empty())
      hidden = hiddenResultsOf(call.body(), call.operands, rows);
    return hidden[number];
  };
  Explanations explanations{magnitude, granted, inTypes, withHiddenKeys};
  bool isFloat = isa<FloatType>(element);
  Deviation worst = isFloat ? compareFloats(element, actual, expected, explanations)
                            : compareIntegers(actual, expected, explanations);
  if (isFloat)
    result.largestError = std::max(result.largestError, worst.error);
  if (worst.error <= tolerance || result.first)
    return;
  Difference difference;
  difference.entry = call.entry;
  difference.kernel = launch.getName().str();
  difference.place = ir::printLocation(launch.getLoc());
  for (Operation &op : call.body().without_terminator())
    difference.ops.push_back(op.getName().getStringRef().str());
  difference.result = number;
  difference.tolerance = tolerance;
  note(difference, worst, actual, expected);
}

void Comparison::note(Difference difference, const Deviation &worst, const HostTensor &actual,
                      const HostTensor &expected) {
  difference.index = indexOf(worst.element, expected.shape);
  difference.error = worst.error;
  difference.actual = actual.data[worst.element];
  difference.expected = expected.data[worst.element];
  result.first = std::move(difference);
}

/// Compares a kernel's results with the reference's for the same operands. Consumers then read the compiled kernel's
/// results, so that an error is attributed to the kernel that made it.
void Comparison::compareKernel(const KernelCall &call, llvm::ArrayRef<Bytes> left,
                               llvm::MutableArrayRef<HostTensor> results) {
  ++result.launches;
  for (auto [number, tensor] : llvm::enumerate(results)) {
    HostTensor actual =
        readResult(cast<RankedTensorType>(call.launch->getResult(unsigned(number)).getType()), left[number]);
    compareResult(call, unsigned(number), actual, tensor);
    tensor = std::move(actual);
  }
}

/// Outputs and states must have exactly the bits of their kernels' results; otherwise another action overwrote them.
void Comparison::compareValue(const std::string &entry, const std::string &name, const HostTensor &actual,
                              const HostTensor &expected) {
  Deviation worst = compareIntegers(actual, expected);
  if (worst.error == 0 || result.first)
    return;
  Difference difference;
  difference.entry = entry;
  difference.value = name;
  note(difference, worst, actual, expected);
}

ir::StateMap Comparison::readStates() {
  ir::StateMap states;
  for (const runtime::State &state : plan.states) {
    Bytes bytes(size_t(state.logicalBytes()));
    instance.getState(state, bytes);
    states[state.name] = toReference(state.dtype, state.shape, bytes);
  }
  return states;
}

/// `init` does not set states that are initialized from data. The runtime reads them from where the data is stored.
void Comparison::setDataOfStates(ir::StateMap &states) {
  for (const runtime::InitialValue &value : instance.dataOfStates()) {
    const runtime::State &state = *value.state;
    runtime::TensorSource source = value.source.as(state.dtype, state.shape);
    Bytes bytes(source.bytes());
    source.read(0, bytes);
    states[state.name] = toReference(state.dtype, state.shape, bytes);
  }
}

SmallVector<HostTensor> Comparison::setInputs(const runtime::Entry &entry) {
  SmallVector<HostTensor> inputs;
  for (const runtime::Value &input : entry.inputs) {
    const HostTensor &tensor = inputs.emplace_back(entry.name == "init" ? makeKey() : makeInput(input));
    Bytes bytes;
    for (double value : tensor.data)
      append(bytes, input.dtype, value);
    instance.setInput(input, bytes, rows);
  }
  return inputs;
}

/// The actions of an entry point, by their numbers in the plan.
static SmallVector<Operation *> actionsOf(ir::EntryOp entry) {
  SmallVector<Operation *> actions;
  entry.walk<WalkOrder::PreOrder>([&](ir::ActionOp action) { actions.push_back(action); });
  return actions;
}

/// Runs a call and keeps the results of each run of each launch before their buffers are overwritten, also those of the
/// derivations that run before the call.
Comparison::Kept Comparison::runKeeping(const runtime::Entry &entry) {
  Kept kept;
  std::map<const runtime::Entry *, std::vector<std::pair<const runtime::Launch *, Operation *>>> launches;
  auto addLaunches = [&](const runtime::Entry &its) {
    for (auto [planned, op] : llvm::zip_equal(its.allActions(), actionsOf(symbols.lookup<ir::EntryOp>(its.name))))
      launches[&its].push_back({planned.action->launch(), op});
  };
  addLaunches(entry);
  for (size_t derivation : entry.derivations)
    addLaunches(plan.entries[derivation]);
  instance.watch([&](const runtime::Entry &watched, size_t action) {
    auto [launch, planned] = launches.at(&watched)[action];
    if (!launch)
      return;
    auto op = cast<ir::LaunchOp>(planned);
    auto first = launch->buffers.begin() + op.getArguments().size();
    std::vector<Bytes> &results = kept[&watched].emplace_back();
    for (const runtime::Buffer &buffer : llvm::make_range(first, first + op.getOutputs().size()))
      instance.readBuffer(watched, buffer, results.emplace_back(size_t(buffer.bytes)));
  });
  instance.run(entry, rows);
  instance.synchronize();
  instance.watch({});
  return kept;
}

/// Interprets an entry point, and compares the results of each launch. `states` become those after the call.
llvm::Expected<SmallVector<HostTensor>> Comparison::compareLaunches(const runtime::Entry &entry,
                                                                    llvm::ArrayRef<HostTensor> inputs,
                                                                    ir::StateMap &states,
                                                                    llvm::ArrayRef<std::vector<Bytes>> left) {
  size_t launched = 0;
  ir::InterpreterOptions options;
  options.observer = [&](Operation *op, llvm::ArrayRef<HostTensor> operands,
                         llvm::MutableArrayRef<HostTensor> results) {
    if (auto launch = dyn_cast<ir::LaunchOp>(op))
      compareKernel({entry.name, launch, operands}, left[launched++], results);
  };
  ir::DiagnosticText diagnostics(module.getContext());
  FailureOr<SmallVector<HostTensor>> outputs =
      ir::interpret(symbols.lookup<ir::EntryOp>(entry.name), inputs, states, rows, options);
  if (failed(outputs))
    return makeError(ExitCode::Internal, "the reference interpreter failed: " + diagnostics.errors());
  return std::move(*outputs);
}

void Comparison::compareEnds(const runtime::Entry &entry, llvm::ArrayRef<HostTensor> outputs,
                             const ir::StateMap &states) {
  for (auto [output, expected] : llvm::zip_equal(entry.outputs, outputs)) {
    Bytes bytes(size_t(instance.bytesFor(output, rows)));
    instance.getOutput(output, bytes, rows);
    compareValue(entry.name, output.name, toReference(output.dtype, output.shapeFor(rows, plan.capacity), bytes),
                 expected);
  }
  for (const auto &[name, actual] : readStates())
    compareValue(entry.name, name, actual, states.at(name));
}

llvm::Error Comparison::compareEntry(ir::EntryOp entry) {
  const runtime::Entry &planned = instance.entry(entry.getSymName());
  ir::StateMap states = readStates();
  SmallVector<HostTensor> inputs = setInputs(planned);
  Kept kept = runKeeping(planned);
  for (size_t derivation : planned.derivations)
    if (auto left = kept.find(&plan.entries[derivation]); left != kept.end())
      if (auto outputs = compareLaunches(plan.entries[derivation], {}, states, left->second); !outputs)
        return outputs.takeError();
  auto outputs = compareLaunches(planned, inputs, states, kept[&planned]);
  if (!outputs)
    return outputs.takeError();
  if (planned.name == "init")
    setDataOfStates(states);
  compareEnds(planned, *outputs, states);
  result.entries.push_back(planned.name);
  return llvm::Error::success();
}

llvm::Expected<Verification> Comparison::run() {
  std::vector<ir::EntryOp> entries; // `init` first: the others start from its states
  for (ir::EntryOp entry : module.getOps<ir::EntryOp>())
    if (plan.findEntry(entry.getSymName().str())) // derivations run before calls of others
      entries.insert(entry.getSymName() == "init" ? entries.begin() : entries.end(), entry);
  for (ir::EntryOp entry : entries) {
    if (llvm::Error error = guardRuntime([&] { return compareEntry(entry); }))
      return error;
    if (result.first)
      break;
  }
  return std::move(result);
}

llvm::Expected<Verification> compareWithReference(ModuleOp module, runtime::Instance &instance,
                                                  const VerifyOptions &options) {
  return Comparison(module, instance, options).run();
}

llvm::Expected<Verification> verifyFile(llvm::StringRef path, const VerifyOptions &options) {
  CompilerContext context;
  auto module = readModel(path, context.mlir());
  if (!module)
    return module.takeError();
  if (ir::isReplicated(**module))
    return makeError(ExitCode::Unsupported, "cannot verify a dump with replicas: their collectives are not "
                                            "compared; verify the original model");
  if (ir::getMicrobatches(**module) > 1 || ir::getLogicalShards(**module) > 0 ||
      !(*module)->getOps<ir::PartsOp>().empty())
    return makeError(ExitCode::Unsupported, "cannot verify a dump with microbatches: calls in parts are not "
                                            "compared; verify the original model");
  auto compiled = compileModule(**module, options.compile, {}, &context);
  if (!compiled)
    return compiled.takeError();
  auto loaded = LoadedModel::load(compiled->objects, {});
  if (!loaded)
    return loaded.takeError();
  return compareWithReference(**module, (*loaded)->instance(), options);
}

} // namespace sluice::compiler
