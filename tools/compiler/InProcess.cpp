// sluice::compile: the output of `sluice compile --emit=so`, loaded into the program that built the graph.
#include "frontend/graph/GraphImpl.h"
#include "passes/driver/OptionTable.h"
#include "runtime/base/Status.h"
#include "runtime/base/Text.h"
#include "runtime/instance/SizedEntries.h"
#include "runtime/instance/Weights.h"
#include "sluice/compile.h"
#include "tools/compiler/Compiler.h"
#include "tools/compiler/CompilerContext.h"
#include "tools/compiler/Diagnostics.h"
#include "tools/compiler/GraphData.h"
#include "tools/compiler/LoadedModel.h"
#include <algorithm>
#include <map>

namespace sluice {

/// Inputs are kept until the run that consumes them, because their number of rows is only known then.
struct Program::Impl {
  struct Pending {
    DType dtype;
    std::vector<std::byte> bytes;
    size_t count;
  };

  compiler::GraphData data; ///< large data, read by `init`
  std::unique_ptr<compiler::LoadedModel> model;
  std::map<std::string, Pending, std::less<>> inputs;
  std::optional<Pending> key; ///< of `init`; separate, because a graph may have an input of the same name
  const runtime::Entry *lastEntry = nullptr;
  int64_t lastRows = 0;

  runtime::Instance &instance() const { return model->instance(); }
};

[[noreturn]] static void failBy(llvm::Error error, const std::string &what, const SourceLocation &location) {
  compiler::Failure failure = compiler::takeFailure(std::move(error));
  throw Error(what + failure.text, location, {}, int(failure.code));
}

/// Runs a call into the runtime and converts its errors to the graph API's: at the user's line, prefixed with the
/// method.
template <typename Body> static void guarded(const char *method, std::source_location where, Body body) {
  llvm::Error error = compiler::guardRuntime([&] {
    body();
    return llvm::Error::success();
  });
  if (error)
    failBy(std::move(error), std::string(method) + ": ", where);
}

/// The graph API and the runtime generate their element types from one table.
static runtime::DType toRuntime(DType dtype) { return runtime::DType(dtype); }

static void checkDType(const std::string &name, runtime::DType has, DType given) {
  if (toRuntime(given) != has)
    runtime::failUsage(name + " is " + std::string(runtime::nameOf(has)) + ", and was called with " + to_string(given));
}

static std::string nameOf(const char *kind, std::string_view name) {
  return std::string(kind) + " '" + std::string(name) + "'";
}

Program::Program(std::unique_ptr<Impl> impl) : impl(std::move(impl)) {}
Program::Program(Program &&) noexcept = default;
Program &Program::operator=(Program &&) noexcept = default;
Program::~Program() = default;

static bool isInit(const runtime::Entry &entry) { return entry.name == "init"; }

/// Finds an input of the graph's entry points, or else the key of `init`. Returns whether it is that key.
static bool findInput(const runtime::Plan &plan, std::string_view name, DType dtype) {
  const runtime::Value *ofGraph = nullptr, *ofInit = nullptr;
  std::vector<std::string> names;
  for (const runtime::Entry &entry : plan.entries)
    for (const runtime::Value &input : entry.inputs) {
      if (input.name == name)
        (isInit(entry) ? ofInit : ofGraph) = &input;
      if (std::find(names.begin(), names.end(), input.name) == names.end())
        names.push_back(input.name);
    }
  const runtime::Value *found = ofGraph ? ofGraph : ofInit;
  if (!found)
    runtime::failUsage("no entry point has an input '" + std::string(name) + "'; they have: " + runtime::listed(names));
  checkDType(nameOf("input", name), found->dtype, dtype);
  return !ofGraph;
}

static void setState(runtime::Instance &instance, std::string_view name, std::span<const std::byte> bytes, size_t count,
                     DType dtype) {
  const runtime::State &state = instance.state(name);
  checkDType(nameOf("state", name), state.dtype, dtype);
  if (state.elements() != int64_t(count))
    runtime::failUsage(nameOf("state", name) + " has " + std::to_string(state.elements()) + " elements, and " +
                       std::to_string(count) + " were given");
  instance.setState(state, bytes);
}

void Program::set(Kind kind, std::string_view name, const void *data, std::size_t count, DType dtype, Where where) {
  const auto *bytes = static_cast<const std::byte *>(data);
  size_t size = count * runtime::sizeOf(toRuntime(dtype));
  if (kind == Kind::state)
    return guarded("set_state", where, [&] { setState(impl->instance(), name, {bytes, size}, count, dtype); });
  bool isKey = false;
  guarded("set_input", where, [&] { isKey = findInput(impl->instance().plan(), name, dtype); });
  Impl::Pending pending{dtype, {bytes, bytes + size}, count};
  if (isKey)
    impl->key = std::move(pending);
  else
    impl->inputs.insert_or_assign(std::string(name), std::move(pending));
}

void Program::seed(std::uint64_t seed, Where) {
  std::int32_t key[2] = {std::int32_t(seed >> 32), std::int32_t(seed)};
  auto bytes = std::as_bytes(std::span(key));
  impl->key = Impl::Pending{i32, {bytes.begin(), bytes.end()}, 2};
}

/// The value set for an input, or null if none was set.
static const Program::Impl::Pending *findPending(const Program::Impl &program, const runtime::Entry &entry,
                                                 const runtime::Value &input) {
  if (isInit(entry))
    return program.key ? &*program.key : nullptr;
  auto found = program.inputs.find(input.name);
  return found == program.inputs.end() ? nullptr : &found->second;
}

/// The error of an input without a value, with the method that sets it.
[[noreturn]] static void failMissing(const runtime::Entry &entry, const runtime::Value &input) {
  if (isInit(entry))
    runtime::failUsage("'init' draws random numbers and has no seed: call seed(n) before run(\"init\", rows)");
  runtime::failUsage("'" + entry.name + "' needs the input '" + input.name +
                     "', which has no value: call set_input(\"" + input.name + "\", values) before run");
}

/// Passes an input to the run that consumes it.
static void takeInput(runtime::Instance &instance, const runtime::Entry &entry, const runtime::Value &input,
                      const Program::Impl &program, int64_t rows) {
  const Program::Impl::Pending *pending = findPending(program, entry, input);
  if (!pending && input.isUnread)
    return;
  if (!pending)
    failMissing(entry, input);
  checkDType(nameOf("input", input.name), input.dtype, pending->dtype);
  int64_t wanted = runtime::elementsOf(input.shapeFor(rows, instance.plan().capacity));
  if (wanted != int64_t(pending->count))
    runtime::failUsage(nameOf("input", input.name) + " has " + std::to_string(wanted) + " elements in " +
                       std::to_string(rows) + " rows of '" + entry.name + "', and set_input gave " +
                       std::to_string(pending->count));
  instance.setInput(input, pending->bytes, rows);
}

/// Whether all inputs that a call reads have as many elements as were set.
static bool fits(const Program::Impl &program, const runtime::Entry &entry, int64_t rows, int64_t capacity) {
  return std::ranges::all_of(entry.inputs, [&](const runtime::Value &input) {
    const Program::Impl::Pending *pending = findPending(program, entry, input);
    return pending ? int64_t(pending->count) == runtime::elementsOf(input.shapeFor(rows, capacity)) : input.isUnread;
  });
}

/// The entry point of this name, or the one of its sizes that fits the inputs.
static const runtime::Entry &entryOf(const runtime::Instance &instance, std::string_view name,
                                     const Program::Impl &program, int64_t rows) {
  std::vector<const runtime::Entry *> entries = runtime::entriesFor(instance.plan(), name);
  if (entries.size() < 2)
    return entries.empty() ? instance.entry(name) : *entries.front();
  std::string given;
  for (const auto &[input, pending] : program.inputs)
    given += (given.empty() ? "" : ", ") + std::to_string(pending.count) + " elements of " + runtime::quote(input);
  return runtime::entryThatFits(entries, name, given.empty() ? "no inputs" : given, [&](const runtime::Entry &entry) {
    return fits(program, entry, rows, instance.plan().capacity);
  });
}

void Program::run(std::string_view name, std::int64_t rows, Where where) {
  guarded("run", where, [&] {
    runtime::Instance &instance = impl->instance();
    const runtime::Entry &entry = entryOf(instance, name, *impl, rows);
    instance.checkRows(entry, rows);
    for (const runtime::Value &input : entry.inputs)
      takeInput(instance, entry, input, *impl, rows);
    instance.run(entry, rows);
    impl->lastEntry = &entry;
    impl->lastRows = rows;
  });
}

/// An output of the last run.
static const runtime::Value &outputOf(const Program::Impl &program, std::string_view name) {
  if (!program.lastEntry)
    runtime::failUsage("nothing has run yet, so there is no output '" + std::string(name) + "'");
  const runtime::Value *output = program.lastEntry->findOutput(name);
  if (!output)
    runtime::failUsage("'" + program.lastEntry->name + "' has no output '" + std::string(name) + "'");
  return *output;
}

std::size_t Program::count(Kind kind, std::string_view name, Where where) const {
  int64_t count = 0;
  guarded(kind == Kind::state ? "state" : "output", where, [&] {
    if (kind == Kind::state)
      count = impl->instance().state(name).elements();
    else
      count = runtime::elementsOf(outputOf(*impl, name).shapeFor(impl->lastRows, impl->instance().plan().capacity));
  });
  return size_t(count);
}

void Program::get(Kind kind, std::string_view name, void *data, std::size_t count, DType dtype, Where where) const {
  std::span<std::byte> bytes(static_cast<std::byte *>(data), count * runtime::sizeOf(toRuntime(dtype)));
  if (kind == Kind::state)
    return guarded("state", where, [&] {
      const runtime::State &state = impl->instance().state(name);
      checkDType(nameOf("state", name), state.dtype, dtype);
      impl->instance().getState(state, bytes);
    });
  guarded("output", where, [&] {
    const runtime::Value &output = outputOf(*impl, name);
    checkDType(nameOf("output", name), output.dtype, dtype);
    impl->instance().getOutput(output, bytes, impl->lastRows);
  });
}

void Program::load_weights(const std::string &path, Where where) {
  guarded("load_weights", where, [&] { runtime::loadWeights(impl->instance(), path); });
}

void Program::save_weights(const std::string &path, Where where) const {
  guarded("save_weights", where, [&] { runtime::saveWeights(impl->instance(), path); });
}

std::vector<TransferCount> Program::transfers(Where where) const {
  std::vector<TransferCount> result;
  guarded("transfers", where, [&] {
    runtime::Instance &instance = impl->instance();
    const std::vector<runtime::Device> &devices = instance.plan().devices;
    std::map<std::pair<size_t, size_t>, runtime::CopyCount> sums; // over replicas
    for (const auto &[from, to, count, replica] : instance.copies())
      sums[{from, to}] += count;
    for (const auto &[pair, count] : sums)
      result.push_back({devices[pair.first].name, devices[pair.second].name, count.copies, count.bytes});
  });
  return result;
}

/// Rejects invalid values, and one replica per launched process.
static void checkOptions(const CompileOptions &options, std::source_location where) {
  for (const passes::Option &option : passes::allOptions())
    if (std::string reason = passes::invalidValue(options, option); !reason.empty())
      throw Error(("compile: " + option.name + ": " + reason).str(), where);
  if (options.replicas == ir::kReplicasOfLaunch)
    throw Error("compile: replicas: cannot use one replica per launched process in process; set a number", where);
}

Program compile(const Graph &graph, const CompileOptions &options, std::source_location where) {
  mlir::ModuleOp written = moduleOf(graph, where);
  checkOptions(options, where);
  compiler::CompileTask task;
  task.emit = compiler::Emit::SharedLibrary;
  auto impl = std::make_unique<Program::Impl>();
  compiler::throwWhenExhausted();
  impl->data.write(graph, where);
  llvm::Error error = compiler::guardRuntime([&]() -> llvm::Error {
    mlir::OwningOpRef<mlir::ModuleOp> module = written.clone();
    impl->data.locate(*module);
    auto compiled = compiler::compileModule(*module, options, task, &compiler::CompilerContext::ofProcess());
    if (!compiled)
      return compiled.takeError();
    runtime::InstanceOptions instance{options.threads};
    instance.devices.settings = options.runtime_backends;
    auto loaded = compiler::LoadedModel::load(compiled->objects, std::move(instance));
    if (!loaded)
      return loaded.takeError();
    impl->model = std::move(*loaded);
    return llvm::Error::success();
  });
  if (error) // at the lines of the graph, which its text contains
    failBy(std::move(error), "", SourceLocation());
  return Program(std::move(impl));
}

} // namespace sluice
