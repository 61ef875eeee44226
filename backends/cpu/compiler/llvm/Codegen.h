// Compiles a module of stage functions to machine code: LLVM IR (LowerToLLVM.h), light clean-up, object file.
#pragma once

#include "backends/cpu/compiler/machine/Target.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <memory>
#include <string>
#include <vector>

namespace llvm::orc {
class LLJIT;
}

namespace sluice::cpu {

struct CodegenOptions {
  // Expand math functions of f32 vectors into polynomials. Functions without a polynomial call libm lane by lane.
  bool polynomialMath = true;
  // Threads that compile the parts of a large module; 0: one per core. The object does not depend on the number.
  unsigned threads = 0;
  // Receives, if set, the assembly of the object.
  std::string *assembly = nullptr;
};

using Object = llvm::SmallVector<char, 0>; // the bytes of a position-independent ELF object

// An object with the functions of all modules. For many ops it is an archive of several objects, compiled in parallel.
// Private symbols with one name must be equal in all modules. The modules are consumed.
llvm::Expected<Object> compileToObject(llvm::ArrayRef<mlir::ModuleOp> modules, const Target &target,
                                       const CodegenOptions &options = {});

// An object for each of `count` modules, compiled in parallel; empty if the module has no public function. An object
// depends on its module only. A function is compiled alike in any module. `moduleOf` returns the modules in order, in
// this thread, while other threads compile earlier ones; null: it failed. The modules are consumed.
llvm::Expected<std::vector<Object>> compileToObjects(mlir::MLIRContext &context, size_t count,
                                                     llvm::function_ref<mlir::ModuleOp(size_t number)> moduleOf,
                                                     const Target &target, const CodegenOptions &options = {});

// The code of a kernel as text.
struct KernelText {
  std::string vectors, llvmIR, assembly; // the MLIR of its functions, LLVM IR after optimization, assembly
};

// The texts of the code of each module. Modules are unchanged.
llvm::Expected<std::vector<KernelText>> compileToText(llvm::ArrayRef<mlir::ModuleOp> kernels, const Target &target);

// Code in this process, linked in memory. The code lives as long as this object.
class LoadedObject {
public:
  LoadedObject(LoadedObject &&) noexcept;
  ~LoadedObject();

  llvm::Expected<void *> lookup(llvm::StringRef symbol);

private:
  friend llvm::Expected<LoadedObject> loadObjects(llvm::ArrayRef<llvm::StringRef> objects);
  explicit LoadedObject(std::unique_ptr<llvm::orc::LLJIT> jit);
  /// The cause of a failed lookup, which the linker reports separately from the failure.
  std::unique_ptr<llvm::Error> cause;
  std::unique_ptr<llvm::orc::LLJIT> jit;
};

/// Links objects, and those members of archives that are referenced. They see the symbols of libm and libc, and of no
/// other library of the process. The contents are copied.
llvm::Expected<LoadedObject> loadObjects(llvm::ArrayRef<llvm::StringRef> objects);
inline llvm::Expected<LoadedObject> loadObject(llvm::ArrayRef<char> object) {
  return loadObjects(llvm::StringRef(object.data(), object.size()));
}

} // namespace sluice::cpu
