#include "backends/cpu/compiler/KernelTexts.h"

#include "runtime/files/OutputFile.h"
#include "llvm/ADT/StringExtras.h"
#include <set>

namespace sluice::cpu {

using llvm::StringRef;

void KernelTexts::add(StringRef name, const LoweredKernel &kernel) {
  if (folder.empty())
    return;
  Named &its = names.emplace_back(Named{name.str(), ""});
  for (const Stage &stage : kernel.stages)
    if (!stage.tile.empty())
      its.tiles += "tile: " + stage.tile + " in registers, in " + stage.function + "\n";
}

/// The vector registers that the assembly names, and its spills according to the comments of the code generator, for
/// example "# 32-byte Spill".
static std::string registersOf(StringRef assembly, const Target &target) {
  constexpr unsigned kLeastVector = 16; // bytes
  std::set<unsigned> used;
  size_t vectors = 0, scalars = 0;
  for (StringRef line : llvm::split(assembly, '\n')) {
    auto [code, comment] = line.split("# ");
    unsigned bytes = 0;
    if (!comment.consumeInteger(10, bytes) && comment.starts_with("-byte ") && comment.contains("Spill"))
      ++(bytes < kLeastVector ? scalars : vectors);
    for (size_t at = code.find("mm"); at != StringRef::npos; at = code.find("mm", at + 1)) {
      unsigned number = 0;
      StringRef rest = code.substr(at + 2);
      if (at >= 2 && code[at - 2] == '%' && !rest.consumeInteger(10, number))
        used.insert(number);
    }
  }
  return "registers: " + std::to_string(used.size()) + " of " + std::to_string(target.numVectorRegisters) +
         " vector registers; vector spills: " + std::to_string(vectors) +
         ", scalar spills: " + std::to_string(scalars) + "\n";
}

llvm::Error KernelTexts::write(llvm::ArrayRef<size_t> numbers, llvm::ArrayRef<mlir::ModuleOp> kernels,
                               const Target &target) {
  if (folder.empty())
    return llvm::Error::success();
  auto texts = compileToText(kernels, target);
  if (!texts)
    return texts.takeError();
  for (const auto &[number, text] : llvm::zip_equal(numbers, *texts)) {
    const Named &its = names[number];
    const std::pair<const char *, std::string> kinds[] = {{"txt", its.tiles + registersOf(text.assembly, target)},
                                                          {"vector.mlir", text.vectors},
                                                          {"ll", text.llvmIR},
                                                          {"s", text.assembly}};
    for (const auto &[kind, contents] : kinds) {
      std::string path = folder + "/" + its.name + "." + kind;
      if (files::Failure failure = files::writeFile(path, contents); !failure.empty())
        return llvm::createStringError(std::errc::io_error, "%s: %s", path.c_str(), failure.c_str());
    }
  }
  return llvm::Error::success();
}

} // namespace sluice::cpu
