#include "tests/backends/KernelCase.h"

#include "ir/Layout.h"
#include "ir/Module.h"
#include "ir/reference/Interpreter.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"
#include <algorithm>
#include <cmath>
#include <random>

namespace sluice::test {

using namespace mlir;

// Guard bytes after every buffer, up to the end of its memory, which reveal stray writes.
static constexpr char kGuardByte = 0x5a;

static Bytes guarded(const Bytes &buffer) {
  size_t alignment = kSanitizerGuards ? 1 : GuardedAllocator<char>::kAlignment;
  Bytes bytes(GuardedAllocator<char>::padded(buffer.size(), alignment), kGuardByte);
  std::copy(buffer.begin(), buffer.end(), bytes.begin());
  return bytes;
}

SmallVector<Operation *> KernelCase::ops() {
  return SmallVector<Operation *>(llvm::make_pointer_range(op.getBody().front().without_terminator()));
}

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

KernelCase::KernelCase(const std::vector<std::string> &operands, const std::string &body, const std::string &yields,
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
}

RankedTensorType KernelCase::typeOf(unsigned buffer) {
  unsigned operands = op->getNumOperands();
  Type type = buffer < operands ? op->getOperand(buffer).getType() : op->getResult(buffer - operands).getType();
  return cast<RankedTensorType>(type);
}

void KernelCase::randomize(double low, double high, unsigned seed) {
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

Bytes KernelCase::pack(RankedTensorType type, const ir::HostTensor &value) {
  Bytes bytes(ir::getBufferBytes(type, capacity));
  int64_t size = ir::getElementBytes(type.getElementType());
  ir::forEachElement(type, capacity, capacity, [&](ArrayRef<int64_t> index, int64_t place) {
    ir::writeElement(type.getElementType(), &bytes[place * size], value.at(index));
  });
  return bytes;
}

ir::HostTensor KernelCase::unpack(RankedTensorType type, const Bytes &bytes, int64_t rows) {
  ir::HostTensor value(ir::runtimeShape(type, rows));
  int64_t size = ir::getElementBytes(type.getElementType());
  ir::forEachElement(type, rows, capacity, [&](ArrayRef<int64_t> index, int64_t place) {
    value.at(index) = ir::readElement(type.getElementType(), &bytes[place * size]);
  });
  return value;
}

std::vector<void *> KernelCase::begin(int64_t rows, int64_t workspaceBytes) {
  lastRows = rows;
  buffers.clear();
  sizes.clear();
  auto add = [&](const Bytes &buffer) {
    sizes.push_back(buffer.size());
    buffers.push_back(guarded(buffer));
  };
  for (unsigned i = 0; i < inputs.size(); ++i)
    add(pack(typeOf(i), inputs[i]));
  for (unsigned i = 0; i < op->getNumResults(); ++i)
    add(Bytes(ir::getBufferBytes(typeOf(inputs.size() + i), capacity), char(0xff)));
  add(Bytes(workspaceBytes, char(0xff)));
  return addresses();
}

std::vector<void *> KernelCase::addresses() {
  std::vector<void *> pointers;
  for (Bytes &buffer : buffers)
    pointers.push_back(buffer.data());
  return pointers;
}

ir::HostTensor KernelCase::output(unsigned number) {
  return unpack(typeOf(inputs.size() + number), bytes(number), lastRows);
}

std::vector<ir::HostTensor> KernelCase::expected() {
  SmallVector<ir::HostTensor> arguments;
  for (unsigned i = 0; i < inputs.size(); ++i)
    arguments.push_back(unpack(typeOf(i), pack(typeOf(i), inputs[i]), lastRows));
  ir::StateMap states;
  auto results = ir::interpret(entry, arguments, states, lastRows);
  return std::vector<ir::HostTensor>(results->begin(), results->end());
}

double KernelCase::error() {
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
    for (size_t at = 0; at < sizes[inputs.size() + i]; ++at)
      if (!used[at] && type.hasStaticShape() && bytes(i)[at] != 0)
        return INFINITY;
  }
  for (auto [buffer, size] : llvm::zip_equal(buffers, sizes))
    if (!std::all_of(buffer.begin() + size, buffer.end(), [](char byte) { return byte == kGuardByte; }))
      return INFINITY;
  return worst;
}

} // namespace sluice::test
