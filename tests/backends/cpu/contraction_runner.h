// Compiles and runs contractions for tests: a module, its code, and the stages' tasks in any order.
#pragma once

#include "backends/cpu/compiler/llvm/Codegen.h"
#include "backends/cpu/compiler/product/Contraction.h"

#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/Verifier.h"

#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

namespace sluice::cpu::testing {

enum class Order { AllAtOnce, OneByOne, Backwards };

using StageFn = void (*)(void *const *, int64_t, int64_t, int64_t);

// Memory that starts at a multiple of 64 bytes and ends where the array does.
template <typename T> class Array {
public:
  explicit Array(size_t size, T value = T()) : storage(size + 64 / sizeof(T), value), count(size) {}
  T *data() {
    auto address = reinterpret_cast<uintptr_t>(storage.data());
    return reinterpret_cast<T *>((address + 63) / 64 * 64);
  }
  T &operator[](size_t i) { return data()[i]; }
  size_t size() const { return count; }

private:
  std::vector<T> storage;
  size_t count;
};

template <typename T> Array<T> randomArray(size_t size, unsigned seed) {
  std::mt19937 generator(seed);
  std::uniform_real_distribution<double> uniform(-1, 1);
  Array<T> array(size);
  for (size_t i = 0; i < size; ++i)
    array[i] = static_cast<T>(uniform(generator));
  return array;
}

class Program {
public:
  using Emit = std::function<Contraction(mlir::ModuleOp, mlir::Location, mlir::Type f32, mlir::Type f64)>;

  Program(const Emit &emit, const Target &target) {
    auto loc = mlir::UnknownLoc::get(&context);
    mlir::OwningOpRef<mlir::ModuleOp> module = mlir::ModuleOp::create(loc);
    contraction = emit(*module, loc, mlir::Float32Type::get(&context), mlir::Float64Type::get(&context));
    if (mlir::failed(mlir::verify(*module)))
      llvm::report_fatal_error("the generated MLIR is invalid");
    CodegenOptions options;
    options.assembly = std::getenv("SLUICE_ASM") ? &assembly : nullptr;
    auto object = compileToObject(*module, target, options);
    if (!object)
      llvm::report_fatal_error(object.takeError());
    if (options.assembly)
      fputs(assembly.c_str(), stderr);
    auto made = loadObject(*object);
    if (!made)
      llvm::report_fatal_error(made.takeError());
    loaded.emplace(std::move(*made));
    for (const Stage &stage : contraction.stages)
      functions.push_back(reinterpret_cast<StageFn>(llvm::cantFail(loaded->lookup(stage.function))));
  }

  int64_t tasks(size_t stage, int64_t rows) const {
    const Stage &cut = contraction.stages[stage];
    return cut.rowsPerTask ? cut.tasks * ((rows + cut.rowsPerTask - 1) / cut.rowsPerTask) : cut.tasks;
  }

  void run(std::vector<void *> buffers, int64_t rows, Order order) const {
    for (size_t stage = 0; stage < functions.size(); ++stage) {
      int64_t count = tasks(stage, rows);
      if (order == Order::AllAtOnce)
        functions[stage](buffers.data(), rows, 0, count);
      for (int64_t task = 0; order == Order::OneByOne && task < count; ++task)
        functions[stage](buffers.data(), rows, task, task + 1);
      for (int64_t task = count; order == Order::Backwards && task-- > 0;)
        functions[stage](buffers.data(), rows, task, task + 1);
    }
  }

  Contraction contraction;
  std::vector<StageFn> functions;

private:
  mlir::MLIRContext context;
  std::optional<LoadedObject> loaded;
  std::string assembly;
};

// Targets that this machine can run: with its vectors, and with narrower ones.
inline std::vector<Target> testTargets() {
  Target host = Target::host();
  std::vector<Target> targets = {host};
  for (int64_t bits : {256, 128})
    if (bits < host.vectorBits) {
      Target narrow = host;
      narrow.vectorBits = bits;
      narrow.numVectorRegisters = 16;
      targets.push_back(narrow);
    }
  return targets;
}

/// Whether a case runs one of its combinations of a target and a type: the first, and another that depends on the case,
/// so that all cases together cover every combination; each of them with SLUICE_TEST_FULL.
inline bool isSampled(size_t number, size_t combinations, const std::string &name) {
  return number == 0 || std::getenv("SLUICE_TEST_FULL") ||
         number == 1 + std::hash<std::string>()(name) % (combinations - 1);
}

} // namespace sluice::cpu::testing
