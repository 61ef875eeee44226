// sluice::compile: what `sluice compile --emit=so` writes, loaded into the program that built the graph.
#include "frontend/GraphImpl.h"
#include "runtime/Status.h"
#include "sluice/compile.h"
#include "tools/compiler/Compiler.h"
#include "tools/compiler/Diagnostics.h"
#include "tools/compiler/LoadedModel.h"
#include "llvm/Support/ErrorHandling.h"
#include <cstring>
#include <map>
#include <mutex>
#include <new>

namespace sluice {

/// Inputs wait here for the run that takes them, because their rows are known only then.
struct Program::Impl {
  struct Pending {
    DType dtype;
    std::vector<std::byte> bytes;
    size_t count;
  };

  std::unique_ptr<compiler::LoadedModel> model;
  std::map<std::string, Pending, std::less<>> inputs;
  const runtime::Entry *lastEntry = nullptr;
  int64_t lastRows = 0;

  runtime::Instance &instance() const { return model->instance(); }
};

[[noreturn]] static void fail(const std::string &message) { throw Error(message, Place()); }

static void succeedOrThrow(llvm::Error error) {
  if (error)
    fail(compiler::takeFailure(std::move(error)).text);
}

/// Runs a call into the runtime, with its errors as the graph API's.
template <typename Body> static void guarded(Body body) {
  succeedOrThrow(compiler::guardRuntime([&] {
    body();
    return llvm::Error::success();
  }));
}

/// The element types of the graph API and of the runtime have the same names.
static runtime::DType toRuntime(DType dtype) { return *runtime::dtypeFromName(to_string(dtype)); }

static void checkDType(std::string_view name, runtime::DType expected, DType given) {
  if (toRuntime(given) != expected)
    runtime::failUsage("'" + std::string(name) + "' is " + std::string(runtime::nameOf(expected)) + ", not " +
                       to_string(given));
}

static void checkCount(std::string_view name, int64_t expected, size_t given) {
  if (expected != int64_t(given))
    runtime::failUsage("'" + std::string(name) + "' has " + std::to_string(expected) + " elements, not " +
                       std::to_string(given));
}

Program::Program(std::unique_ptr<Impl> impl) : impl(std::move(impl)) {}
Program::Program(Program &&) noexcept = default;
Program &Program::operator=(Program &&) noexcept = default;
Program::~Program() = default;

void Program::set(Kind kind, std::string_view name, const void *data, std::size_t count, DType dtype) {
  const auto *bytes = static_cast<const std::byte *>(data);
  size_t size = count * runtime::sizeOf(toRuntime(dtype));
  if (kind == Kind::input) {
    impl->inputs.insert_or_assign(std::string(name), Impl::Pending{dtype, {bytes, bytes + size}, count});
    return;
  }
  guarded([&] {
    const runtime::State &state = impl->instance().state(name);
    checkDType(name, state.dtype, dtype);
    checkCount(name, state.elements(), count);
    impl->instance().setState(state, {bytes, size});
  });
}

void Program::seed(std::uint64_t seed) {
  set_input("key", std::vector<std::int32_t>{std::int32_t(seed >> 32), std::int32_t(seed)});
}

void Program::run(std::string_view name, std::int64_t rows) {
  guarded([&] {
    runtime::Instance &instance = impl->instance();
    const runtime::Entry &entry = instance.entry(name);
    for (const runtime::Value &input : entry.inputs) {
      auto pending = impl->inputs.find(input.name);
      if (pending == impl->inputs.end())
        runtime::failUsage("'" + entry.name + "' needs the input '" + input.name + "'; set it first");
      checkDType(input.name, input.dtype, pending->second.dtype);
      checkCount(input.name, runtime::elementsOf(input.shapeFor(rows, instance.plan().capacity)),
                 pending->second.count);
      instance.setInput(input, pending->second.bytes, rows);
    }
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

std::size_t Program::count(Kind kind, std::string_view name) const {
  int64_t count = 0;
  guarded([&] {
    if (kind == Kind::state)
      count = impl->instance().state(name).elements();
    else
      count = runtime::elementsOf(outputOf(*impl, name).shapeFor(impl->lastRows, impl->instance().plan().capacity));
  });
  return size_t(count);
}

void Program::get(Kind kind, std::string_view name, void *data, std::size_t count, DType dtype) const {
  std::span<std::byte> bytes(static_cast<std::byte *>(data), count * runtime::sizeOf(toRuntime(dtype)));
  guarded([&] {
    if (kind == Kind::state) {
      const runtime::State &state = impl->instance().state(name);
      checkDType(name, state.dtype, dtype);
      impl->instance().getState(state, bytes);
      return;
    }
    const runtime::Value &output = outputOf(*impl, name);
    checkDType(name, output.dtype, dtype);
    impl->instance().getOutput(output, bytes, impl->lastRows);
  });
}

std::vector<TransferCount> Program::transfers() const {
  std::vector<TransferCount> result;
  guarded([&] {
    runtime::Instance &instance = impl->instance();
    const std::vector<runtime::Device> &devices = instance.plan().devices;
    for (const auto &[from, to, count] : instance.copies())
      result.push_back({devices[from].name, devices[to].name, count.copies, count.bytes});
  });
  return result;
}

/// LLVM ends the process where it gets no memory, unless it is told to throw.
static void throwWhenExhausted() {
  static std::once_flag once;
  std::call_once(
      once, [] { llvm::install_bad_alloc_error_handler([](void *, const char *, bool) { throw std::bad_alloc(); }); });
}

Program compile(const Graph &graph, const CompileOptions &options) {
  mlir::ModuleOp written = moduleOf(graph);
  compiler::CompileOptions how;
  how.promoteF64 = options.dtype == DType::f64;
  how.capacity = options.capacity.value_or(0);
  how.fuse = options.fuse;
  how.devices = options.devices;
  how.copies = options.copies;
  how.dumpIrDir = options.dump_ir;
  if (options.dtype && !is_float(*options.dtype))
    fail(std::string("a graph cannot be computed in ") + to_string(*options.dtype));
  if (how.capacity < 0)
    fail("a capacity of " + std::to_string(how.capacity) + " rows");

  auto impl = std::make_unique<Program::Impl>();
  throwWhenExhausted();
  succeedOrThrow(compiler::guardRuntime([&]() -> llvm::Error {
    mlir::OwningOpRef<mlir::ModuleOp> module = written.clone();
    auto compiled = compiler::compileModule(*module, how);
    if (!compiled)
      return compiled.takeError();
    runtime::InstanceOptions instance{options.threads};
    instance.devices.settings = options.backends;
    auto loaded = compiler::LoadedModel::load(compiled->objects, std::move(instance));
    if (!loaded)
      return loaded.takeError();
    impl->model = std::move(*loaded);
    return llvm::Error::success();
  }));
  return Program(std::move(impl));
}

} // namespace sluice
