// Compiles a module of stage functions to machine code: LLVM IR (LowerToLLVM.h), light clean-up, object file.
#pragma once

#include "backends/cpu/compiler/machine/Target.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <memory>

namespace llvm::orc {
class LLJIT;
}

namespace sluice::cpu {

struct CodegenOptions {
  // Expand math functions of f32 vectors into polynomials. Functions without a polynomial call libm lane by lane.
  bool polynomialMath = true;
  // Threads that compile the parts of a large module; 0: one per core. The object does not depend on the number.
  unsigned threads = 0;
  // Receives, if set, the LLVM IR and the assembly of the object.
  std::string *llvmIR = nullptr;
  std::string *assembly = nullptr;
};

// A position-independent ELF object. For a large module it is an archive of several objects, compiled in parallel. The
// module is consumed.
llvm::Expected<llvm::SmallVector<char, 0>> compileToObject(mlir::ModuleOp module, const Target &target,
                                                           const CodegenOptions &options = {});

// Code in this process, for tests and benchmarks. The code lives as long as this object.
class LoadedObject {
public:
  LoadedObject(LoadedObject &&) noexcept;
  ~LoadedObject();

  llvm::Expected<void *> lookup(llvm::StringRef symbol);

private:
  friend llvm::Expected<LoadedObject> loadObject(llvm::ArrayRef<char> object);
  explicit LoadedObject(std::unique_ptr<llvm::orc::LLJIT> jit);
  std::unique_ptr<llvm::orc::LLJIT> jit;
};

llvm::Expected<LoadedObject> loadObject(llvm::ArrayRef<char> object);

} // namespace sluice::cpu
