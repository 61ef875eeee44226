// Compiles functions of tensors to programs on arrays.
#include "tools/arrays/SavedValues.h"
#include "tools/compiler/Compiler.h"
#include "tools/compiler/CompilerContext.h"
#include "tools/compiler/Diagnostics.h"
#include "tools/compiler/GraphData.h"
#include "tools/compiler/LoadedCode.h"

namespace sluice::detail {

using runtime::ArrayDevice;

static std::string spelling(const ArrayDevice &device) {
  return device.isHost() ? device.backend() : device.backend() + ":" + std::to_string(device.ordinal());
}

std::string targetOf(const std::vector<ArrayDevice *> &devices) {
  std::string list;
  for (ArrayDevice *device : devices)
    list += (list.empty() ? "" : ",") + spelling(*device);
  return list;
}

namespace {
/// The code of a program, and the data that its constants are read from.
struct ProgramCode {
  compiler::GraphData data;
  std::unique_ptr<compiler::LoadedCode> loaded;
};
} // namespace

std::shared_ptr<runtime::ArrayProgram> compileGraph(const Graph &graph, const CompileRequest &request) {
  compiler::throwWhenExhausted();
  auto code = std::make_shared<ProgramCode>();
  code->data.write(graph, request.where);
  mlir::ModuleOp written = moduleOf(graph, request.where);
  std::shared_ptr<runtime::ArrayProgram> program;
  llvm::Error error = compiler::guardRuntime([&]() -> llvm::Error {
    mlir::OwningOpRef<mlir::ModuleOp> module = written.clone();
    code->data.locate(*module);
    compiler::CompileTask task;
    task.emit = compiler::Emit::SharedLibrary;
    static const CompileOptions defaults;
    auto compiled = compiler::compileModule(*module, request.options ? *request.options : defaults, task,
                                            &compiler::CompilerContext::ofProcess());
    if (!compiled)
      return compiled.takeError();
    auto loaded = compiler::LoadedCode::load(compiled->objects);
    if (!loaded)
      return loaded.takeError();
    code->loaded = std::move(*loaded);
    program = std::make_shared<runtime::ArrayProgram>(code->loaded->artifact(), code);
    return llvm::Error::success();
  });
  if (error) {
    compiler::Failure failure = compiler::takeFailure(std::move(error));
    throw Error(std::string(request.function) + ": " + failure.text, request.where, {}, int(failure.code));
  }
  return program;
}

/// Makes a call return the values that gradients read.
static std::vector<SavedValue> addSaved(CallGraph &call, const Trace &trace, const std::vector<CapturedModel> &models) {
  const CompileRequest &request = call.request;
  if (request.isDifferentiated.empty())
    return {};
  CallGraph other(request);
  std::vector<CapturedModel> known = models;
  if (other.trace(trace, known))
    return {};
  std::vector<SavedValue> saved = findSaved(other, request.isDifferentiated);
  GraphImpl &graph = *Access::graph(call.graph);
  for (mlir::Value value : valuesOf(graph, /*last=*/nullptr, saved, request.function, request.where))
    call.results.push_back(Access::tensor(graph, value));
  return saved;
}

std::unique_ptr<CachedCall> compileCall(const CompileRequest &request, Trace trace,
                                        std::vector<CapturedModel> &models) {
  CallGraph call(request);
  if (call.trace(trace, models))
    return nullptr;
  auto cached = std::make_unique<CachedCall>();
  cached->saved = addSaved(call, trace, models);
  cached->function = request.function;
  cached->isWhole = request.isWhole;
  for (size_t i = 0; i < call.results.size(); ++i) {
    if (bool exists{call.results[i]}; !exists)
      throw Error(std::string(request.function) + ": result " + std::to_string(i + 1) + " is an empty tensor",
                  request.where);
    const ArrayType *type = call.typeOf(call.results[i]);
    cached->results.push_back(type);
    call.graph.output("y" + std::to_string(i), Arg(call.results[i], request.where), call.on(type->device));
  }
  std::vector<std::string> passed;
  for (size_t number : request.saved)
    passed.push_back("x" + std::to_string(number));
  for (size_t i = call.results.size() - cached->saved.size(); i < call.results.size(); ++i)
    passed.push_back("y" + std::to_string(i));
  call.setPassed(passed);
  cached->program = compileGraph(call.graph, request);
  cached->devices = std::move(call.devices);
  // The compiler drops unused inputs and may reorder outputs: their names contain the numbers.
  for (const runtime::Value &input : cached->program->inputs())
    cached->inputs.push_back(size_t(std::stoul(input.name.substr(1))));
  cached->outputs.resize(cached->results.size());
  for (size_t i = 0; i < cached->program->outputs().size(); ++i)
    cached->outputs[size_t(std::stoul(cached->program->outputs()[i].name.substr(1)))] = i;
  cached->models = models;
  cached->trace = [trace = std::move(trace), models, own = request.own,
                   function = request.function](std::span<const Tensor> operands, std::source_location where) {
    return traceWithModels(trace, models, operands, own, {function, where, /*isFirst=*/false});
  };
  return cached;
}

} // namespace sluice::detail
