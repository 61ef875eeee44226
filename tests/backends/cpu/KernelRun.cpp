#include "tests/backends/cpu/KernelRun.h"

#include "ir/Layout.h"
#include "ir/Module.h"
#include "ir/reference/Interpreter.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"
#include <algorithm>
#include <cmath>
#include <cstring>
#include <ctime>
#include <numeric>

namespace sluice::cpu::testing {

using namespace mlir;

using StageFn = void (*)(void *const *, int64_t, int64_t, int64_t);

static constexpr size_t kGuardBytes = 256; // behind every buffer, to see stray writes
static constexpr char kGuardByte = 0x5a;

static std::string textOf(const std::vector<std::string> &operands, const std::string &body,
                          const std::string &yields) {
  std::string arguments, names, captured;
  for (size_t i = 0; i < operands.size(); ++i) {
    std::string number = std::to_string(i), comma = i ? ", " : "";
    arguments += comma + "%x" + number + ": " + operands[i];
    names += comma + "\"x" + number + "\"";
    captured += comma + "%" + number + " = %x" + number + " : " + operands[i];
  }
  std::string types = yields.substr(yields.find(':') + 1), results, outputs;
  size_t count = 1 + std::count(yields.begin(), yields.begin() + yields.find(':'), ',');
  for (size_t i = 0; i < count; ++i) {
    results += (i ? ", %k#" : "%k#") + std::to_string(i);
    outputs += (i ? ", \"y" : "\"y") + std::to_string(i) + "\"";
  }
  return "sluice.entry @e [" + names + "] -> [" + outputs + "] (" + arguments + ") {\n  %k:" + std::to_string(count) +
         " = sluice.kernel \"k\" (" + captured + ") -> (" + types + ") {\n" + body + "\n    sluice.yield " + yields +
         "\n  }\n  sluice.return " + results + " : " + types + "\n}\n";
}

KernelRun::KernelRun(const std::vector<std::string> &operands, const std::string &body, const std::string &yields,
                     int64_t capacity, const std::string &aliases)
    : capacity(capacity) {
  context.loadDialect<ir::SluiceDialect>();
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) { messages += diagnostic.str() + "\n"; });
  module = parseSourceString<ModuleOp>(aliases + textOf(operands, body, yields), &context);
  if (!module)
    return;
  ir::getModel(*module).setCapacity(uint64_t(capacity));
  entry = *module->getOps<ir::EntryOp>().begin();
  op = *entry.getBody().getOps<ir::KernelOp>().begin();
  code = ModuleOp::create(UnknownLoc::get(&context));
  auto made = lowerKernel(op, *code, op.getName(), Target::host(), capacity);
  if (failed(made))
    return;
  std::string before;
  llvm::raw_string_ostream(before) << *code;
  CodegenOptions options;
  options.llvmIR = &llvmIR;
  options.assembly = &assembly;
  auto compiled = compileToObject(*code, Target::host(), options);
  if (!compiled) {
    messages += llvm::toString(compiled.takeError()) + "\n" + before;
    return;
  }
  auto loaded = loadObject(*compiled);
  if (!loaded) {
    messages += llvm::toString(loaded.takeError());
    return;
  }
  kernel = *made;
  object.emplace(std::move(*loaded));
  llvmIR = before;
}

RankedTensorType KernelRun::typeOf(unsigned buffer) {
  unsigned operands = op->getNumOperands();
  Type type = buffer < operands ? op->getOperand(buffer).getType() : op->getResult(buffer - operands).getType();
  return cast<RankedTensorType>(type);
}

LoweredKernel KernelRun::described() {
  OwningOpRef<ModuleOp> functions = ModuleOp::create(UnknownLoc::get(&context));
  return *lowerKernel(op, {*functions, /*hasBodies=*/false}, op.getName(), Target::host(), capacity);
}

void KernelRun::randomize(double low, double high, unsigned seed) {
  std::mt19937 random(seed);
  inputs.clear();
  for (unsigned i = 0; i < op->getNumOperands(); ++i) {
    RankedTensorType type = typeOf(i);
    ir::HostTensor &input = inputs.emplace_back(ir::runtimeShape(type, capacity));
    std::uniform_real_distribution<double> real(low, high);
    for (double &value : input.data)
      value = isa<FloatType>(type.getElementType()) ? ir::roundTo(type.getElementType(), real(random))
                                                    : ir::roundTo(type.getElementType(), std::floor(real(random)));
  }
}

std::vector<char> KernelRun::pack(RankedTensorType type, const ir::HostTensor &value) {
  std::vector<char> bytes(ir::getBufferBytes(type, capacity));
  int64_t size = ir::getElementBytes(type.getElementType());
  ir::forEachElement(type, capacity, capacity, [&](ArrayRef<int64_t> index, int64_t place) {
    ir::writeElement(type.getElementType(), &bytes[place * size], value.at(index));
  });
  return bytes;
}

ir::HostTensor KernelRun::unpack(RankedTensorType type, const std::vector<char> &bytes, int64_t rows) {
  ir::HostTensor value(ir::runtimeShape(type, rows));
  int64_t size = ir::getElementBytes(type.getElementType());
  ir::forEachElement(type, rows, capacity, [&](ArrayRef<int64_t> index, int64_t place) {
    value.at(index) = ir::readElement(type.getElementType(), &bytes[place * size]);
  });
  return value;
}

void KernelRun::run(int64_t rows, unsigned seed) {
  lastRows = rows;
  buffers.clear();
  for (unsigned i = 0; i < inputs.size(); ++i)
    buffers.push_back(pack(typeOf(i), inputs[i]));
  for (unsigned i = 0; i < op->getNumResults(); ++i)
    buffers.emplace_back(ir::getBufferBytes(typeOf(inputs.size() + i), capacity), char(0xff));
  buffers.emplace_back(kernel->workspaceBytes, char(0xff));
  std::vector<void *> pointers;
  for (std::vector<char> &buffer : buffers) {
    buffer.resize(buffer.size() + kGuardBytes, kGuardByte);
    pointers.push_back(buffer.data());
  }
  std::mt19937 random(seed);
  for (const Stage &stage : kernel->stages) {
    auto function = reinterpret_cast<StageFn>(llvm::cantFail(object->lookup(stage.function)));
    int64_t tasks = stage.tasks * (stage.rowsPerTask ? (rows + stage.rowsPerTask - 1) / stage.rowsPerTask : 1);
    if (seed == 0) {
      function(pointers.data(), rows, 0, tasks);
      continue;
    }
    std::vector<int64_t> order(tasks);
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), random);
    for (int64_t task : order)
      function(pointers.data(), rows, task, task + 1);
  }
}

// The thread's own, so that other processes do not count.
static double secondsOfThread() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return double(now.tv_sec) + 1e-9 * double(now.tv_nsec);
}

double KernelRun::time(int64_t rows) {
  run(rows);
  std::vector<void *> pointers;
  for (std::vector<char> &buffer : buffers)
    pointers.push_back(buffer.data());
  double best = INFINITY;
  for (int repeat = 0; repeat < 20; ++repeat) {
    double start = secondsOfThread();
    for (const Stage &stage : kernel->stages) {
      auto function = reinterpret_cast<StageFn>(llvm::cantFail(object->lookup(stage.function)));
      function(pointers.data(), rows, 0,
               stage.tasks * (stage.rowsPerTask ? (rows + stage.rowsPerTask - 1) / stage.rowsPerTask : 1));
    }
    best = std::min(best, secondsOfThread() - start);
  }
  return best;
}

ir::HostTensor KernelRun::output(unsigned number) {
  return unpack(typeOf(inputs.size() + number), bytes(number), lastRows);
}

std::vector<ir::HostTensor> KernelRun::expected() {
  SmallVector<ir::HostTensor> arguments;
  for (unsigned i = 0; i < inputs.size(); ++i)
    arguments.push_back(unpack(typeOf(i), pack(typeOf(i), inputs[i]), lastRows));
  ir::StateMap states;
  auto results = ir::interpret(entry, arguments, states, lastRows);
  return std::vector<ir::HostTensor>(results->begin(), results->end());
}

double KernelRun::error() {
  double worst = 0;
  std::vector<ir::HostTensor> wanted = expected();
  for (unsigned i = 0; i < wanted.size(); ++i) {
    ir::HostTensor got = output(i);
    for (int64_t at = 0; at < got.size(); ++at) {
      double a = got.data[at], b = wanted[i].data[at];
      bool same = a == b || (std::isnan(a) && std::isnan(b));
      worst = std::max(worst, same                   ? 0
                              : std::isfinite(a - b) ? std::fabs(a - b) / std::max(1.0, std::fabs(b))
                                                     : INFINITY);
    }
    // Padding is zero.
    RankedTensorType type = typeOf(inputs.size() + i);
    std::vector<bool> used(bytes(i).size(), false);
    int64_t size = ir::getElementBytes(type.getElementType());
    ir::forEachElement(type, capacity, capacity,
                       [&](ArrayRef<int64_t>, int64_t place) { std::fill_n(used.begin() + place * size, size, true); });
    for (size_t at = 0; at < bytes(i).size() - kGuardBytes; ++at)
      if (!used[at] && type.hasStaticShape() && bytes(i)[at] != 0)
        return INFINITY;
  }
  for (const std::vector<char> &buffer : buffers)
    for (size_t at = buffer.size() - kGuardBytes; at < buffer.size(); ++at)
      if (buffer[at] != kGuardByte)
        return INFINITY;
  return worst;
}

} // namespace sluice::cpu::testing
