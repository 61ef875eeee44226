#pragma once

namespace llvm {
class Module;
}

namespace sluice::cpu {

/// Splits masked loads of several registers into one load per register if some registers have no active lane. LLVM 19
/// reads such registers for AVX2 without a mask, even beyond the end of a buffer.
void loadOnlyWantedRegisters(llvm::Module &module, unsigned vectorBits);

} // namespace sluice::cpu
