#include "backends/cpu/compiler/SessionKernels.h"

#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/STLExtras.h"

#include <numeric>

namespace sluice::cpu {

using namespace mlir;

SmallVector<size_t> SessionKernels::all() const {
  SmallVector<size_t> numbers(kernels.size());
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

std::optional<size_t> SessionKernels::find(StringRef symbol) const {
  auto found = bySymbol.find(symbol);
  return found == bySymbol.end() ? std::nullopt : std::optional(found->second);
}

/// `wanted`, or `wanted` and a number. Stages are called name, name_0, name_partial_1, ...: a prefix is in use if any
/// function begins with it.
std::string SessionKernels::uniqueName(StringRef wanted) const {
  auto isTaken = [&](StringRef prefix) {
    auto next = functions.lower_bound(prefix);
    return next != functions.end() && StringRef(*next).starts_with(prefix);
  };
  std::string name = wanted.str();
  for (unsigned number = 2; isTaken(name); ++number)
    name = (wanted + "_" + Twine(number)).str();
  return name;
}

/// A module with a copy of the kernel. Casts without operands stand for its operands.
static OwningOpRef<ModuleOp> copyOf(ir::KernelOp kernel) {
  OwningOpRef<ModuleOp> module = ModuleOp::create(UnknownLoc::get(kernel.getContext()));
  OpBuilder builder = OpBuilder::atBlockEnd(module->getBody());
  ValueRange operands =
      builder.create<UnrealizedConversionCastOp>(kernel.getLoc(), kernel->getOperandTypes(), ValueRange()).getResults();
  IRMapping mapping;
  mapping.map(kernel.getOperands(), operands);
  builder.clone(*kernel, mapping);
  return module;
}

FailureOr<LoweredKernel> SessionKernels::add(ir::KernelOp kernel, StringRef symbol, const Target &target,
                                             int64_t capacity) {
  Kernel its{symbol.empty() ? uniqueName(kernel.getName()) : symbol.str(),
             ModuleOp::create(UnknownLoc::get(kernel.getContext())), nullptr};
  FailureOr<LoweredKernel> lowered =
      lowerKernel(kernel, {*its.module, /*hasBodies=*/false}, its.name, target, capacity);
  if (failed(lowered))
    return failure();
  if (!lowered->hasBodies)
    its.postponed = copyOf(kernel);
  for (const Stage &stage : lowered->stages)
    functions.insert(stage.function);
  if (!symbol.empty())
    bySymbol[symbol] = kernels.size();
  kernels.push_back(std::move(its));
  return lowered;
}

FailureOr<ModuleOp> SessionKernels::generate(size_t number, const Target &target, int64_t capacity) {
  Kernel &its = kernels[number];
  if (!its.postponed)
    return *its.module;
  its.module = ModuleOp::create(its.module->getLoc());
  ir::KernelOp kernel = *its.postponed->getOps<ir::KernelOp>().begin();
  if (failed(lowerKernel(kernel, *its.module, its.name, target, capacity)))
    return failure();
  its.postponed = nullptr;
  return *its.module;
}

} // namespace sluice::cpu
