#include "tests/e2e/Harness.h"
#include "ir/Target.h"
#include "ir/text/DiagnosticText.h"
#include "ir/text/ParseGuard.h"
#include "passes/driver/OptionTable.h"
#include "runtime/plan/ArtifactChecksum.h"
#include "tools/compiler/Backends.h"
#include "tools/compiler/Linker.h"
#include <cmath>
#include <cstring>
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <malloc.h>
#include <span>

using namespace mlir;

namespace sluice::test {

std::string modelText(const std::string &program, const std::string &arguments) {
  TemporaryFolder folder;
  std::string file = folder / "model.mlir";
  std::string command = std::string(SLUICE_BINARY_DIR) + "/bin/models/" + program + " " + arguments + " -o " + file;
  if (std::system(command.c_str()) != 0)
    throw std::runtime_error("failed: " + command);
  return contentOf(file);
}

std::string replaced(std::string text, const std::string &from, const std::string &to) {
  size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << "no '" << from << "' in the model";
  for (; at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
  return text;
}

std::optional<DType> dtypeOf(ir::Precision precision) {
  CompileOptions options;
  passes::setOption(options, *passes::findOption("precision"), ir::stringifyPrecision(precision));
  return options.precision;
}

static OwningOpRef<ModuleOp> parse(const std::string &text, MLIRContext &context) {
  context.loadDialect<ir::SluiceDialect>();
  llvm::Expected<OwningOpRef<ModuleOp>> module = ir::parseModuleText(text, "model.mlir", context);
  if (!module)
    throw std::runtime_error(llvm::toString(module.takeError()));
  return std::move(*module);
}

/// The compile half of this name; the search is cached.
static const sluice_backend_compile *backend(const std::string &name) {
  static std::map<std::string, const sluice_backend_compile *> known;
  auto [it, isNew] = known.try_emplace(name);
  if (!isNew)
    return it->second;
  llvm::Expected<const sluice_backend_compile *> found = compiler::findBackend(name);
  if (!found)
    throw std::runtime_error(llvm::toString(found.takeError()));
  return it->second = *found;
}

static passes::Lowered runPhases(ModuleOp module, const CompileOptions &options, passes::PipelineInputs inputs) {
  ir::DiagnosticText diagnostics(module.getContext());
  FailureOr<ir::Target> target = ir::Target::of(module);
  if (succeeded(target))
    for (const ir::TargetDevice &device : target->devices())
      inputs.backends.push_back(backend(device.backend));
  FailureOr<passes::Lowered> lowered = passes::runPipeline(module, options, inputs);
  if (failed(lowered))
    throw std::runtime_error("the model does not compile: " + diagnostics.errors());
  return std::move(*lowered);
}

Compiled::Compiled(const std::string &text, const CompileOptions &options, const RunOptions &run,
                   passes::PipelineInputs inputs) {
  MLIRContext context;
  OwningOpRef<ModuleOp> module = parse(text, context);
  passes::Lowered lowered = runPhases(*module, options, std::move(inputs));
  std::string path = folder / "model.so";
  if (llvm::Error error = compiler::linkArtifact(lowered.objects, path, compiler::LinkOutput::SharedLibrary))
    throw std::runtime_error(llvm::toString(std::move(error)));
  library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library)
    throw std::runtime_error(dlerror());
  restart(run);
}

const sluice_artifact &Compiled::artifact() const {
  return *reinterpret_cast<const sluice_artifact *(*)()>(dlsym(library, "sluice_artifact_query"))();
}

std::string Compiled::planText() const { return {artifact().plan, artifact().plan_size}; }

void Compiled::restart(const RunOptions &run) {
  instance.reset();
  changed = artifact();
  otherPlan = run.plan;
  otherCode = run.code;
  sections.assign(changed.sections, changed.sections + changed.num_sections);
  if (!otherPlan.empty()) {
    changed.plan = otherPlan.data();
    changed.plan_size = otherPlan.size();
  }
  if (!otherCode.empty()) {
    sections.at(0) = {otherCode.data(), otherCode.size()};
    changed.sections = sections.data();
  }
  changed.checksum = runtime::checksumOf(changed);
  runtime::InstanceOptions options;
  options.threads = run.threads;
  options.devices.settings["sim"] = run.sim;
  options.devices.replays = run.replays;
  if (run.simulator)
    options.devices.backends["sim"] = run.simulator;
  if (run.cuda)
    options.devices.backends["cuda"] = run.cuda;
  instance = std::make_unique<runtime::Instance>(changed, run.pool ? run.pool : std::make_shared<runtime::DevicePool>(),
                                                 options);
}

std::vector<std::string> Compiled::code() const {
  std::vector<std::string> code;
  for (const sluice_code_section &section : std::span(artifact().sections, artifact().num_sections))
    code.emplace_back(static_cast<const char *>(section.data), section.bytes);
  return code;
}

double relativeError(const std::vector<double> &value, const std::vector<double> &truth) {
  EXPECT_EQ(value.size(), truth.size());
  if (value.size() != truth.size())
    return INFINITY;
  double difference = 0, norm = 0;
  for (size_t i = 0; i < truth.size(); ++i) {
    difference += (value[i] - truth[i]) * (value[i] - truth[i]);
    norm += truth[i] * truth[i];
  }
  return difference == 0 ? 0 : std::sqrt(difference / norm);
}

std::string compileError(const std::string &text) {
  try {
    MLIRContext context;
    runPhases(*parse(text, context), {}, {});
  } catch (const std::exception &error) {
    return error.what();
  }
  return "";
}

Compiled::~Compiled() {
  instance.reset();
  if (library)
    dlclose(library);
}

template <typename T> static void packAs(const std::vector<double> &values, std::vector<std::byte> &bytes) {
  bytes.resize(values.size() * sizeof(T));
  for (size_t i = 0; i < values.size(); ++i) {
    T value = T(values[i]);
    std::memcpy(bytes.data() + i * sizeof(T), &value, sizeof(T));
  }
}

template <typename T> static void unpackAs(const std::vector<std::byte> &bytes, std::vector<double> &values) {
  values.resize(bytes.size() / sizeof(T));
  for (size_t i = 0; i < values.size(); ++i) {
    T value;
    std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof(T));
    values[i] = double(value);
  }
}

static std::vector<std::byte> pack(runtime::DType type, const std::vector<double> &values) {
  std::vector<std::byte> bytes;
#define SLUICE_DTYPE_PACK(name, number, type, ...)                                                                     \
  case runtime::DType::name:                                                                                           \
    packAs<type>(values, bytes);                                                                                       \
    break;
  switch (type) { SLUICE_FOR_EACH_DTYPE(SLUICE_DTYPE_PACK) }
#undef SLUICE_DTYPE_PACK
  return bytes;
}

static std::vector<double> unpack(runtime::DType type, const std::vector<std::byte> &bytes) {
  std::vector<double> values;
#define SLUICE_DTYPE_UNPACK(name, number, type, ...)                                                                   \
  case runtime::DType::name:                                                                                           \
    unpackAs<type>(bytes, values);                                                                                     \
    break;
  switch (type) { SLUICE_FOR_EACH_DTYPE(SLUICE_DTYPE_UNPACK) }
#undef SLUICE_DTYPE_UNPACK
  return values;
}

void Compiled::setState(const std::string &name, const std::vector<double> &values) {
  const runtime::State &state = instance->state(name);
  instance->setState(state, pack(state.dtype, values));
}

std::vector<double> Compiled::state(const std::string &name) const {
  const runtime::State &state = instance->state(name);
  std::vector<std::byte> bytes(state.logicalBytes());
  instance->getState(state, bytes);
  return unpack(state.dtype, bytes);
}

std::vector<std::byte> Compiled::stateBytes() const {
  std::vector<std::byte> all;
  for (const runtime::State &state : instance->plan().states) {
    if (state.isDerived())
      continue;
    std::vector<std::byte> bytes(state.logicalBytes());
    instance->getState(state, bytes);
    all.insert(all.end(), bytes.begin(), bytes.end());
  }
  return all;
}

static Values keyOf(uint64_t seed) { return {{"key", {double(int32_t(seed >> 32)), double(int32_t(seed))}}}; }

void Compiled::init(uint64_t seed) { run("init", keyOf(seed), 1); }

/// The values in order, rotated to begin with number `first`.
static std::vector<const runtime::Value *> beginningWith(size_t first, const std::vector<runtime::Value> &values) {
  std::vector<const runtime::Value *> order;
  for (size_t i = 0; i < values.size(); ++i)
    order.push_back(&values[(first + i) % values.size()]);
  return order;
}

void Compiled::submit(const std::string &name, const Values &inputs, int64_t rows, size_t first) {
  const runtime::Entry &entry = instance->entry(name);
  for (const runtime::Value *input : beginningWith(first, entry.inputs))
    instance->setInput(*input, pack(input->dtype, inputs.at(input->name)), rows);
  instance->run(entry, rows);
}

Values Compiled::run(const std::string &name, const Values &inputs, int64_t rows) {
  submit(name, inputs, rows);
  return outputs(name, rows);
}

Values Compiled::outputs(const std::string &name, int64_t rows, size_t first) {
  const runtime::Entry &entry = instance->entry(name);
  Values outputs;
  for (const runtime::Value *output : beginningWith(first, entry.outputs)) {
    std::vector<std::byte> bytes(instance->bytesFor(*output, rows));
    instance->getOutput(*output, bytes, rows);
    outputs[output->name] = unpack(output->dtype, bytes);
  }
  return outputs;
}

/// Keeps freed memory in the process: tests allocate gigabytes, and clearing new pages takes longer than most ops.
static void keepFreedMemory() {
  mallopt(M_MMAP_MAX, 0);
  mallopt(M_TRIM_THRESHOLD, -1);
}

Interpreted::Interpreted(const std::string &text, const std::string &phase, const CompileOptions &options,
                         passes::PipelineInputs inputs)
    : op(parse(text, context)) {
  keepFreedMemory();
  inputs.compileTo = phase;
  runPhases(*op, options, std::move(inputs));
  for (auto state : op->getOps<ir::StateOp>())
    states[state.getSymName().str()] = ir::HostTensor(state.getTensorType().getShape());
}

void Interpreted::init(uint64_t seed) { run("init", keyOf(seed), 1); }

Values Interpreted::run(const std::string &name, const Values &inputs, int64_t rows) {
  auto entry = op->lookupSymbol<ir::EntryOp>(name);
  SmallVector<ir::HostTensor> arguments;
  for (auto [input, argument] :
       llvm::zip_equal(entry.getInputs().getAsValueRange<StringAttr>(), entry.getInputArguments())) {
    ir::HostTensor tensor(ir::runtimeShape(argument.getType(), rows));
    tensor.data = inputs.at(input.str());
    arguments.push_back(std::move(tensor));
  }
  FailureOr<SmallVector<ir::HostTensor>> results = ir::interpret(entry, arguments, states, rows, options);
  if (failed(results))
    throw std::runtime_error("the interpreter failed");
  Values outputs;
  for (auto [output, value] : llvm::zip_equal(entry.getOutputs().getAsValueRange<StringAttr>(), *results))
    outputs[output.str()] = value.data;
  return outputs;
}

} // namespace sluice::test
