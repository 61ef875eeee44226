#pragma once

namespace llvm {
class Module;
}

namespace sluice::cpu {

/// Loads register by register what several registers hold of which some have no lane that a masked load can want. As a
/// whole, LLVM 19 reads those registers for AVX2 without their mask: beyond the end of a buffer, too.
void loadOnlyWantedRegisters(llvm::Module &module, unsigned vectorBits);

} // namespace sluice::cpu
