#include "tests/conformance/LoadedKernels.h"

#include "ir/Layout.h"
#include "llvm/ADT/STLExtras.h"
#include <cmath>

using namespace mlir;

namespace sluice::conformance {

static constexpr size_t kGuardBytes = 256; // behind every buffer, to see stray writes
static constexpr unsigned char kGuardByte = 0x5a;
/// Contents of results before a launch: NaN and -1, then numbers and booleans that no result has throughout.
static constexpr unsigned char kPoisons[] = {0xff, 0x2d};

std::string printTypes(Operation *op) {
  std::string text;
  llvm::raw_string_ostream out(text);
  llvm::interleaveComma(op->getOperandTypes(), out);
  out << " -> ";
  llvm::interleaveComma(op->getResultTypes(), out);
  return text;
}

static RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }

//===- values in buffers ------------------------------------------------------------------------------------------===//

/// A value in its buffer layout: rows beyond `rows` are NaN, padding is zero.
static Bytes pack(RankedTensorType type, const ir::HostTensor &value, int64_t rows) {
  Type element = type.getElementType();
  size_t size = size_t(ir::getElementBytes(element));
  Bytes bytes(size_t(ir::getBufferBytes(type, kCapacity)), 0);
  ir::forEachElement(type, kCapacity, kCapacity, [&](ArrayRef<int64_t>, int64_t place) {
    std::fill_n(bytes.begin() + place * int64_t(size), size, 0xff);
  });
  ir::forEachElement(type, rows, kCapacity, [&](ArrayRef<int64_t> index, int64_t place) {
    ir::writeElement(element, &bytes[size_t(place) * size], value.at(index));
  });
  return bytes;
}

static ir::HostTensor unpack(RankedTensorType type, const Bytes &bytes, int64_t rows) {
  ir::HostTensor value(ir::runtimeShape(type, rows));
  size_t size = size_t(ir::getElementBytes(type.getElementType()));
  ir::forEachElement(type, rows, kCapacity, [&](ArrayRef<int64_t> index, int64_t place) {
    value.at(index) = ir::readElement(type.getElementType(), &bytes[size_t(place) * size]);
  });
  return value;
}

/// Fails the test where `found` is not `expected`, within the rounding of the element type.
static void expectEqual(RankedTensorType type, const ir::HostTensor &found, const ir::HostTensor &expected,
                        const std::string &what) {
  Type element = type.getElementType();
  // Of halves the last digit: the reference rounds them, too, and rarely the other way.
  double tolerance = element.isF64()    ? 1e-10
                     : element.isF32()  ? 2e-4
                     : element.isF16()  ? 0x1p-10
                     : element.isBF16() ? 0x1p-7
                                        : 0;
  double largest = 1;
  for (double value : expected.data)
    largest = std::isfinite(value) ? std::max(largest, std::fabs(value)) : largest;
  for (size_t i = 0; i < expected.data.size(); ++i) {
    double want = ir::roundTo(element, expected.data[i]), have = found.data[i];
    bool same = have == want || (std::isnan(have) && std::isnan(want)) || std::fabs(have - want) <= tolerance * largest;
    expect(same, what + ": element " + std::to_string(i) + " is " + std::to_string(have) + " instead of " +
                     std::to_string(want));
  }
}

/// Fails the test unless the padding of a result's tiles is zero; all rows must exist.
static void expectZeroPadding(RankedTensorType type, const Bytes &bytes, const std::string &what) {
  auto size = size_t(ir::getElementBytes(type.getElementType()));
  Bytes padding = bytes;
  ir::forEachElement(type, kCapacity, kCapacity, [&](ArrayRef<int64_t>, int64_t place) {
    std::fill_n(padding.begin() + place * int64_t(size), size, 0);
  });
  expect(llvm::all_of(padding, [](unsigned char byte) { return byte == 0; }), what + ": its padding is not zero");
}

//===- loading ----------------------------------------------------------------------------------------------------===//

LoadedKernels::LoadedKernels(RunHalf &half, passes::Backend &backend, ArrayRef<ir::KernelOp> ops,
                             const ir::DiagnosticText &diagnostics, Lowering lowering)
    : half(half) {
  std::vector<std::string> symbols;
  for (ir::KernelOp op : ops) {
    symbols.push_back(lowering == Lowering::Single ? backend.keyOf(op).symbol : "");
    FailureOr<sluice_launch_info> prepared = backend.prepare(op, "", symbols.back());
    expect(succeeded(prepared),
           "every op is supported, but prepare of " + printTypes(op) + " fails: " + diagnostics.errors());
    kernels.push_back({op, *prepared, {}});
  }
  Location loc = kernels.front().op->getLoc();
  if (lowering == Lowering::Single) {
    FailureOr<std::vector<std::string>> objects = backend.lowerKernels(symbols, loc);
    expect(succeeded(objects), "every op is supported, but lower_kernels fails: " + diagnostics.errors());
    loadObjects(SmallVector<StringRef>(objects->begin(), objects->end()));
  } else {
    FailureOr<sluice_blob> blob = backend.lower(loc);
    expect(succeeded(blob), "every op is supported, but lower fails: " + diagnostics.errors());
    load(*blob);
  }
  queue = half.queue(0, SLUICE_QUEUE_COMPUTE);
}

void LoadedKernels::load(const sluice_blob &blob) {
  if (blob.kind == SLUICE_BLOB_DEVICE) {
    expect(half.table().module_load, "it makes device code, but its run half has no module_load");
    half.check(half.table().module_load(half.get(), 0, blob.data, blob.bytes, &module), "module_load");
  }
  if (blob.kind == SLUICE_BLOB_HOST_OBJECT)
    loadObjects(StringRef(static_cast<const char *>(blob.data), blob.bytes));
}

void LoadedKernels::loadObjects(ArrayRef<StringRef> objects) {
  auto loaded = cpu::loadObjects(objects);
  expect(bool(loaded), "the object cannot be loaded: " + llvm::toString(loaded.takeError()));
  object.emplace(std::move(*loaded));
  for (Kernel &kernel : kernels) {
    for (size_t number = 0; number < kernel.info.num_stages; ++number) {
      const sluice_stage_info &stage = *sluice_launch_info_stage_at(&kernel.info, number);
      auto function = object->lookup(stage.symbol);
      expect(bool(function), "the object has no function " + std::string(stage.symbol));
      kernel.functions.push_back(reinterpret_cast<sluice_host_stage>(*function));
    }
  }
}

LoadedKernels::~LoadedKernels() {
  if (module && half.table().module_unload)
    half.table().module_unload(module);
}

//===- running ----------------------------------------------------------------------------------------------------===//

void LoadedKernels::addBuffer(Bytes bytes, sluice_access access) {
  size_t size = bytes.size();
  bytes.resize(size + kGuardBytes, kGuardByte);
  contents.push_back(std::move(bytes));
  addresses.push_back(half.allocate(size + kGuardBytes));
  buffers.push_back({{size, access}});
}

/// Data of a launch in a sequence is released after the call, except the memory at its addresses.
void LoadedKernels::launchAndWait(sluice_launch launch, bool isKept) {
  if (!isKept) {
    half.check(half.table().launch(queue, &launch), "launch");
    return half.finish(queue);
  }
  std::vector<void *> itsAddresses = addresses;
  sluice_call itsCall = *launch.call;
  launch.addresses = itsAddresses.data();
  launch.call = &itsCall;
  Sequence sequence =
      half.capture(queue, [&] { half.check(half.table().launch(queue, &launch), "launch within a capture"); });
  std::fill(itsAddresses.begin(), itsAddresses.end(), nullptr);
  itsCall.rows = 0;
  half.replay(queue, sequence);
  half.finish(queue);
}

void LoadedKernels::launch(Kernel &kernel, int64_t rows, bool isKept) {
  const sluice_launch_info &info = kernel.info;
  std::vector<Larger<sluice_launch_stage>> stages;
  for (auto [number, function] : llvm::enumerate(kernel.functions)) {
    const sluice_stage_info &stage = *sluice_launch_info_stage_at(&info, number);
    stages.push_back(
        {{function, stage.tasks * (stage.rows_per_task ? (rows + stage.rows_per_task - 1) / stage.rows_per_task : 1)}});
  }
  std::string name = kernel.op.getName().str();
  sluice_call call{sizeof(call), rows, 0, rows};
  sluice_launch launch = launchOf(name.c_str(), call);
  launch.addresses = addresses.data();
  launch.buffers = firstOf(buffers);
  launch.num_buffers = buffers.size();
  launch.stages = firstOf(stages);
  launch.num_stages = stages.size();
  launch.module = info.function ? module : nullptr;
  launch.function = info.function;
  launch.parameters = info.parameters;
  launch.parameters_bytes = info.parameters_bytes;
  launch.flops = double(info.cost.flops + info.cost.flops_per_row * rows);
  launch.bytes = double(info.cost.bytes + info.cost.bytes_per_row * rows);
  launchAndWait(launch, isKept);
}

/// Runs a kernel on `operands`, with `poison` in its results and its workspace; gives the results' bytes.
std::vector<Bytes> LoadedKernels::run(Kernel &kernel, const std::vector<Bytes> &operands, int64_t rows,
                                      unsigned char poison, bool isKept) {
  contents.clear();
  addresses.clear();
  buffers.clear();
  for (const Bytes &operand : operands)
    addBuffer(operand, SLUICE_READ);
  for (Value result : kernel.op->getResults())
    addBuffer(Bytes(size_t(ir::getBufferBytes(typeOf(result), kCapacity)), poison), SLUICE_WRITE);
  if (kernel.info.workspace_bytes > 0)
    addBuffer(Bytes(size_t(kernel.info.workspace_bytes), poison), SLUICE_READ_WRITE);
  for (auto [address, bytes] : llvm::zip_equal(addresses, contents))
    half.upload(queue, bytes, address);
  launch(kernel, rows, isKept);

  std::vector<Bytes> found;
  for (auto [number, buffer] : llvm::enumerate(buffers)) {
    Bytes bytes = half.read(addresses[number], buffer.known.bytes + kGuardBytes);
    auto isGuard = [](unsigned char byte) { return byte == kGuardByte; };
    expect(std::all_of(bytes.begin() + int64_t(buffer.known.bytes), bytes.end(), isGuard),
           "bytes beyond buffer " + std::to_string(number) + " were written");
    bytes.resize(buffer.known.bytes);
    expect(number >= operands.size() || bytes == operands[number],
           "operand " + std::to_string(number) + " was written");
    found.push_back(std::move(bytes));
  }
  for (void *address : addresses)
    half.release(address);
  size_t results = kernel.op->getNumResults();
  return {found.begin() + int64_t(operands.size()), found.begin() + int64_t(operands.size() + results)};
}

std::vector<Bytes> LoadedKernels::resultsOf(size_t number, ArrayRef<ir::HostTensor> operands) {
  Kernel &kernel = kernels[number];
  std::vector<Bytes> packed;
  for (auto [operand, value] : llvm::zip_equal(kernel.op->getOperands(), operands))
    packed.push_back(pack(typeOf(operand), value, kCapacity));
  return run(kernel, packed, kCapacity, kPoisons[0], /*isKept=*/false);
}

void LoadedKernels::check(size_t number, ArrayRef<ir::HostTensor> operands, ArrayRef<ir::HostTensor> expected,
                          int64_t rows) {
  Kernel &kernel = kernels[number];
  std::vector<Bytes> packed;
  for (auto [operand, value] : llvm::zip_equal(kernel.op->getOperands(), operands))
    packed.push_back(pack(typeOf(operand), value, rows));
  for (unsigned char poison : kPoisons) {
    bool isKept = half.captures() && poison != kPoisons[0];
    std::vector<Bytes> results = run(kernel, packed, rows, poison, isKept);
    for (auto [index, result] : llvm::enumerate(kernel.op->getResults())) {
      std::string what = "result " + std::to_string(index) + " of " + kernel.op.getName().str() + " with " +
                         std::to_string(rows) + " rows" + (isKept ? ", replayed" : "");
      expectEqual(typeOf(result), unpack(typeOf(result), results[index], rows), expected[index], what);
      if (rows == kCapacity) // rows beyond those of a call hold anything
        expectZeroPadding(typeOf(result), results[index], what);
    }
  }
}

} // namespace sluice::conformance
