// The function that runs a range of one parallel stage's tasks: the output of every generator of CPU code.
//
//   func.func @name(%buffers: !llvm.ptr, %rows: i64, %begin: i64, %end: i64)      sluice_stage_fn of artifact.h
//
// All values are i64 and !llvm.ptr, so that no index casts are needed; memory is accessed through VectorAccess.h.
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLFunctionalExtras.h"

#include <cstdint>
#include <string>

namespace sluice::cpu {

// A stage has `tasks * ceil(rows / rowsPerTask)` tasks, or `tasks` if rowsPerTask is 0.
struct Stage {
  std::string function;
  int64_t tasks = 1;
  int64_t rowsPerTask = 0;
  std::string tile = {}; // its register tile, for reports; empty: none
};

/// Collects stage functions. Their task counts and workspace are available without bodies, in a fraction of the time.
struct StageModule {
  StageModule(mlir::ModuleOp module, bool hasBodies = true) : module(module), hasBodies(hasBodies) {}

  mlir::ModuleOp module;
  bool hasBodies;
};

class StageFunction {
public:
  // Adds an empty, public function (it only returns) to the end of the module. Loads the dialects of stage functions.
  static StageFunction create(const StageModule &into, llvm::StringRef name, mlir::Location loc);

  mlir::func::FuncOp func;
  mlir::Value rows, begin, end;

  // The address of the kernel's i-th buffer; loaded once, at the function's entry.
  mlir::Value buffer(int64_t i);

  // Memory on the stack for `count` vectors of this type. Later calls get the same memory.
  mlir::Value scratch(mlir::VectorType type, int64_t count);

  // Separate memory on the stack for `count` elements, aligned to 64 bytes.
  mlir::Value stack(mlir::Type element, int64_t count);

  // A builder before the function's return.
  mlir::OpBuilder bodyBuilder();

  // Emits the loop over the tasks [begin, end), with `body` for one task. Emits nothing if functions have no bodies.
  void forEachTask(llvm::function_ref<void(mlir::OpBuilder &, mlir::Value task)> body);

private:
  bool hasBody = true;
  llvm::DenseMap<int64_t, mlir::Value> loaded;
  llvm::DenseMap<std::pair<mlir::Type, int64_t>, mlir::Value> scratches;
};

} // namespace sluice::cpu
