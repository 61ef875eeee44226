// LLVM IR to machine code for one target: light clean-up, then an object or assembly.
//
// The passes take longer to create than to run on a small module, so one object of this class compiles many modules, in
// any compilation of the process.
#pragma once

#include "backends/cpu/compiler/llvm/Codegen.h"

namespace llvm {
class Module;
}

namespace sluice::cpu {

/// Required before LLVM generates or loads code.
void initializeNativeTarget();

/// One thread at a time may use it.
class MachineCode {
public:
  /// One that was given back, or a new one.
  static llvm::Expected<std::unique_ptr<MachineCode>> take(const Target &target);
  /// Keeps it for another module, unless many are kept. Do not call this after a crash or an exception.
  static void giveBack(std::unique_ptr<MachineCode> machine);
  ~MachineCode();

  /// Optimizes a module in place.
  void optimize(llvm::Module &module);
  /// Compile an optimized module, which they change. The result does not depend on modules compiled before.
  Object objectOf(llvm::Module &module);
  llvm::Expected<std::string> assemblyOf(llvm::Module &module, bool hasComments = false);

private:
  struct Parts;
  explicit MachineCode(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts;
};

} // namespace sluice::cpu
