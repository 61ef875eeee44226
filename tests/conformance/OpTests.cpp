// Every op that the backend says it supports, compiled and compared with its reference function in double precision: in
// f32 and f64, row-major where the backend allows it and as the backend likes it best, with all rows and with fewer.
#include "backends/cpu/compiler/Codegen.h"
#include "ir/DiagnosticText.h"
#include "tests/conformance/OpKernel.h"
#include "llvm/ADT/StringRef.h"
#include <algorithm>
#include <optional>

using namespace mlir;

namespace sluice::conformance {

static constexpr size_t kGuardBytes = 256; // behind every buffer, to see stray writes
static constexpr unsigned char kGuardByte = 0x5a;

namespace {

/// A kernel of the backend, made and loaded, with the buffers of one launch.
class LoadedKernel {
public:
  LoadedKernel(RunHalf &half, passes::Backend &backend, ir::KernelOp kernel, const ir::DiagnosticText &diagnostics);
  ~LoadedKernel();

  /// Runs it on `operands` and gives the results' bytes.
  std::vector<Bytes> run(const std::vector<Bytes> &operands, const std::vector<size_t> &resultBytes, int64_t rows);

private:
  void addBuffer(Bytes contents, sluice_access access);

  RunHalf &half;
  sluice_launch_info info;
  std::optional<cpu::LoadedObject> object;
  sluice_module *module = nullptr;
  std::vector<sluice_host_stage> functions;
  std::vector<Bytes> contents; // of the buffers, with their guards; must live until work is done
  std::vector<sluice_buffer> buffers;
  sluice_queue *queue;
};

} // namespace

LoadedKernel::LoadedKernel(RunHalf &half, passes::Backend &backend, ir::KernelOp kernel,
                           const ir::DiagnosticText &diagnostics)
    : half(half) {
  FailureOr<sluice_launch_info> prepared = backend.prepare(kernel);
  expect(succeeded(prepared), "the op is supported, but prepare fails: " + diagnostics.errors());
  info = *prepared;
  FailureOr<sluice_blob> blob = backend.lower(kernel.getLoc());
  expect(succeeded(blob), "the op is supported, but lower fails: " + diagnostics.errors());
  queue = half.queue(0, SLUICE_QUEUE_COMPUTE);
  if (blob->kind == SLUICE_BLOB_DEVICE)
    half.check(half.table().module_load(half.get(), 0, blob->data, blob->bytes, &module), "module_load");
  if (blob->kind != SLUICE_BLOB_HOST_OBJECT)
    return;
  auto loaded = cpu::loadObject({static_cast<const char *>(blob->data), blob->bytes});
  expect(bool(loaded), "the object cannot be loaded: " + llvm::toString(loaded.takeError()));
  object.emplace(std::move(*loaded));
  for (size_t i = 0; i < info.num_stages; ++i) {
    auto function = object->lookup(info.stages[i].symbol);
    expect(bool(function), "the object has no function " + std::string(info.stages[i].symbol));
    functions.push_back(reinterpret_cast<sluice_host_stage>(*function));
  }
}

LoadedKernel::~LoadedKernel() {
  if (module && half.table().module_unload)
    half.table().module_unload(module);
}

void LoadedKernel::addBuffer(Bytes bytes, sluice_access access) {
  size_t size = bytes.size();
  bytes.resize(size + kGuardBytes, kGuardByte);
  contents.push_back(std::move(bytes));
  buffers.push_back({half.allocate(size + kGuardBytes), size, access});
}

std::vector<Bytes> LoadedKernel::run(const std::vector<Bytes> &operands, const std::vector<size_t> &resultBytes,
                                     int64_t rows) {
  contents.clear();
  buffers.clear();
  for (const Bytes &operand : operands)
    addBuffer(operand, SLUICE_READ);
  for (size_t bytes : resultBytes)
    addBuffer(Bytes(bytes, 0xff), SLUICE_WRITE);
  if (info.workspace_bytes > 0)
    addBuffer(Bytes(size_t(info.workspace_bytes), 0xff), SLUICE_READ_WRITE);
  for (auto [buffer, bytes] : llvm::zip_equal(buffers, contents))
    half.upload(queue, bytes, buffer.address);

  std::vector<sluice_launch_stage> stages;
  for (auto [stage, function] : llvm::zip(llvm::ArrayRef(info.stages, info.num_stages), functions))
    stages.push_back(
        {function, stage.tasks * (stage.rows_per_task ? (rows + stage.rows_per_task - 1) / stage.rows_per_task : 1)});
  sluice_launch launch{};
  launch.struct_size = sizeof(launch);
  launch.name = "conformance";
  launch.buffers = buffers.data();
  launch.num_buffers = buffers.size();
  launch.rows = rows;
  launch.stages = stages.data();
  launch.num_stages = stages.size();
  launch.module = module;
  launch.function = info.function;
  launch.parameters = info.parameters;
  launch.parameters_bytes = info.parameters_bytes;
  launch.flops = double(info.cost.flops + info.cost.flops_per_row * rows);
  launch.bytes = double(info.cost.bytes + info.cost.bytes_per_row * rows);
  launch.kind = "conformance";
  half.check(half.table().launch(queue, &launch), "launch");
  half.finish(queue);

  std::vector<Bytes> results;
  for (auto [number, buffer] : llvm::enumerate(buffers)) {
    Bytes bytes = half.read(buffer.address, buffer.bytes + kGuardBytes);
    auto isGuard = [](unsigned char byte) { return byte == kGuardByte; };
    expect(std::all_of(bytes.begin() + int64_t(buffer.bytes), bytes.end(), isGuard),
           "bytes beyond buffer " + std::to_string(number) + " were written");
    bytes.resize(buffer.bytes);
    if (number < operands.size())
      expect(bytes == operands[number], "operand " + std::to_string(number) + " was written");
    else if (results.size() < resultBytes.size())
      results.push_back(std::move(bytes));
  }
  for (const sluice_buffer &buffer : buffers)
    half.release(buffer.address);
  return results;
}

static void checkRows(OpKernel &kernel, LoadedKernel &loaded, int64_t rows) {
  std::vector<ir::HostTensor> values = kernel.drawOperands(rows, unsigned(rows));
  std::vector<ir::HostTensor> expected = kernel.evaluate(values, rows);
  std::vector<Bytes> operands;
  std::vector<size_t> resultBytes;
  for (auto [number, value] : llvm::enumerate(values))
    operands.push_back(pack(kernel.operandType(unsigned(number)), value, rows));
  for (size_t number = 0; number < expected.size(); ++number)
    resultBytes.push_back(pack(kernel.resultType(unsigned(number)), expected[number], rows).size());
  std::vector<Bytes> results = loaded.run(operands, resultBytes, rows);
  for (size_t number = 0; number < expected.size(); ++number) {
    mlir::RankedTensorType type = kernel.resultType(unsigned(number));
    expectEqual(type, unpack(type, results[number], rows), expected[number],
                "result " + std::to_string(number) + " of " + std::to_string(rows) + " rows");
  }
}

/// What the backend says that the op costs: nothing negative, and a kind.
static void checkCost(passes::Backend &backend, Operation *op) {
  passes::LaunchCost cost = backend.cost(op, op->getOperands(), op->getResults());
  constexpr size_t kMostLetters = 64;
  expect(!cost.kind.empty() && cost.kind.size() <= kMostLetters,
         "cost gives '" + cost.kind + "', which is no kind of at most 64 letters");
  const ir::Work &work = cost.work;
  expect(std::min({work.flops, work.flopsPerRow, work.bytes, work.bytesPerRow}) >= 0, "cost gives a negative figure");
}

/// Compiles and runs one sample; returns the reason if the backend does not support it.
static std::string checkSample(const Subject &subject, const ir::Sample &sample, bool preferredLayouts) {
  ir::DiagnosticText diagnostics(&test::getContext());
  sluice_compile_services services{sizeof(services), subject.host};
  sluice_target_options options{sizeof(options), "native", kCapacity, &services};
  auto backend = passes::Backend::create(*subject.compile, options, UnknownLoc::get(&test::getContext()));
  expect(backend != nullptr, "begin fails");
  OpKernel kernel(sample);
  if (std::string reason = backend->reasonAgainst(kernel.op()); !reason.empty())
    return reason;
  checkCost(*backend, kernel.op());
  kernel.takeLayouts(*backend, preferredLayouts);
  RunHalf half(subject);
  LoadedKernel loaded(half, *backend, kernel.outline(), diagnostics);
  for (int64_t rows : kernel.hasRows() ? std::vector<int64_t>{kCapacity, 3, 1} : std::vector<int64_t>{kCapacity})
    checkRows(kernel, loaded, rows);
  return "";
}

static void checkOp(const Subject &subject, const std::vector<ir::Sample> &samples) {
  if (!subject.compile)
    throw Skipped("there is no compile half");
  std::string reason;
  bool supported = false;
  for (const ir::Sample &sample : samples) {
    for (bool preferredLayouts : {false, true}) {
      try {
        std::string against = checkSample(subject, sample, preferredLayouts);
        supported |= against.empty();
        reason = against.empty() ? reason : against;
      } catch (const Failed &failed) {
        throw Failed(sample.op + (preferredLayouts ? " in the layouts it likes: " : ": ") + failed.what());
      }
    }
  }
  if (!supported)
    throw Skipped("unsupported: " + reason);
}

static void addTest(std::vector<Test> &tests, const std::string &op, const std::string &element,
                    const std::vector<ir::Sample> &samples) {
  std::string name = "op." + llvm::StringRef(op).split('.').second.str() + "." + element;
  if (!samples.empty())
    tests.push_back({name, [samples](const Subject &subject) { checkOp(subject, samples); }});
}

std::vector<Test> opTests() {
  std::vector<Test> tests;
  for (const std::string &op : test::getOpsWith<ir::ReferenceOp>()) {
    std::vector<ir::Sample> real, single, whole;
    for (const ir::Sample &sample : test::getSamples(op)) {
      ir::Sample narrow = withElement(sample, "f32");
      if (narrow.op == sample.op) {
        whole.push_back(sample);
        continue;
      }
      real.push_back(sample);
      single.push_back(narrow);
    }
    addTest(tests, op, "f32", single);
    addTest(tests, op, "f64", real);
    addTest(tests, op, "integer", whole);
  }
  return tests;
}

} // namespace sluice::conformance
