#include "tests/backends/cpu/KernelRun.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Verifier.h"
#include "llvm/Support/raw_ostream.h"
#include <algorithm>
#include <cmath>
#include <ctime>
#include <numeric>
#include <random>

namespace sluice::cpu::testing {

using namespace mlir;

using StageFn = void (*)(void *const *, int64_t, int64_t, int64_t);

KernelRun::KernelRun(const std::vector<std::string> &operands, const std::string &body, const std::string &yields,
                     int64_t capacity, const std::string &aliases, const Target &target)
    : KernelCase(operands, body, yields, capacity, aliases), target(target) {
  if (!op)
    return;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) { messages += diagnostic.str() + "\n"; });
  OwningOpRef<ModuleOp> code = ModuleOp::create(UnknownLoc::get(&context));
  auto made = lowerKernel(op, *code, op.getName(), target, capacity);
  if (failed(made) || failed(verify(*code)))
    return;
  llvm::raw_string_ostream(functions) << *code;
  auto compiled = compileToObject(*code, target);
  if (!compiled) {
    messages += llvm::toString(compiled.takeError()) + "\n" + functions;
    return;
  }
  auto loaded = loadObject(*compiled);
  if (!loaded) {
    messages += llvm::toString(loaded.takeError());
    return;
  }
  kernel = *made;
  object.emplace(std::move(*loaded));
}

std::string KernelRun::assembly() {
  OwningOpRef<ModuleOp> code = ModuleOp::create(UnknownLoc::get(&context));
  (void)*lowerKernel(op, *code, op.getName(), target, capacity);
  std::string text;
  CodegenOptions options;
  options.assembly = &text;
  llvm::cantFail(compileToObject(*code, target, options).takeError());
  return text;
}

LoweredKernel KernelRun::described() {
  OwningOpRef<ModuleOp> functions = ModuleOp::create(UnknownLoc::get(&context));
  return *lowerKernel(op, {*functions, /*hasBodies=*/false}, op.getName(), target, capacity);
}

void KernelRun::run(int64_t rows, unsigned seed) {
  std::vector<void *> pointers = begin(rows, kernel->workspaceBytes);
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

// CPU time of the thread, so that other processes do not count.
static double secondsOfThread() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return double(now.tv_sec) + 1e-9 * double(now.tv_nsec);
}

double KernelRun::time(int64_t rows) {
  run(rows);
  std::vector<void *> pointers = addresses();
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

} // namespace sluice::cpu::testing
