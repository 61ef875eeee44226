#include "backends/cuda/compiler/nvrtc/KernelTexts.h"

#include "runtime/files/OutputFile.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Program.h"
#include <fmt/format.h>

namespace sluice::cuda {

using llvm::StringRef;

void KernelTexts::add(StringRef name, const GridKernel &kernel, std::string facts) {
  if (!areWanted())
    return;
  Kernel &its = kernels.emplace_back(Kernel{name.str(), std::move(facts), kernel.text, {}});
  if (!kernel.tile.empty())
    its.facts += "tile: " + kernel.tile + "\n";
  for (const GridFunction &function : kernel.functions) {
    its.functions.insert(function.name);
    its.facts +=
        fmt::format("function: {}, {} tasks{} of {} threads\n", function.name, function.tasks,
                    function.rowsPerTask ? fmt::format(" per {} rows", function.rowsPerTask) : "", function.threads);
  }
}

/// The name after `begin` if the line has it, up to a character that no name has; else empty.
static StringRef nameAfter(StringRef line, StringRef begin) {
  size_t at = line.find(begin);
  return at == StringRef::npos
             ? ""
             : line.drop_front(at + begin.size()).take_while([](char c) { return llvm::isAlnum(c) || c == '_'; });
}

std::string ptxOf(StringRef unit, const llvm::StringSet<> &functions) {
  std::string text;
  bool hasAny = false, isOther = false;
  int64_t depth = 0; // of braces
  for (StringRef line : llvm::split(unit.rtrim('\n'), '\n')) {
    StringRef name = nameAfter(line, ".entry ");
    if (!name.empty()) {
      isOther = !functions.contains(name);
      hasAny |= !isOther;
    }
    StringRef global = nameAfter(line, ".globl\t");
    if (!isOther && (global.empty() || functions.contains(global)))
      text += line.str() + "\n";
    depth += int64_t(line.count('{')) - int64_t(line.count('}'));
    isOther &= depth > 0 || !line.contains('}');
  }
  return hasAny ? text : "";
}

std::string sassOf(StringRef listing, const llvm::StringSet<> &functions) {
  std::string text;
  bool isIts = false;
  for (StringRef line : llvm::split(listing.rtrim('\n'), '\n')) {
    bool begins = line.trim().starts_with(".section") || line.trim().starts_with("Function :");
    if (begins)
      isIts = functions.contains(nameAfter(line, ".text.")) || functions.contains(nameAfter(line, "Function : "));
    if (isIts)
      text += line.str() + "\n";
  }
  return text;
}

/// The listing of a cubin by nvdisasm if it is on PATH, else by cuobjdump; empty without them or if they fail.
static std::string disassemble(StringRef cubin) {
  auto nvdisasm = llvm::sys::findProgramByName("nvdisasm"), cuobjdump = llvm::sys::findProgramByName("cuobjdump");
  llvm::SmallString<128> input, output;
  if ((!nvdisasm && !cuobjdump) || llvm::sys::fs::createTemporaryFile("sluice", "cubin", input))
    return "";
  auto removeInput = llvm::make_scope_exit([&] { llvm::sys::fs::remove(input); });
  if (llvm::sys::fs::createTemporaryFile("sluice", "sass", output))
    return "";
  auto removeOutput = llvm::make_scope_exit([&] { llvm::sys::fs::remove(output); });
  if (!files::writeFile(input.str().str(), cubin).empty())
    return "";
  const std::string &program = nvdisasm ? *nvdisasm : *cuobjdump;
  std::optional<StringRef> redirects[] = {StringRef(""), output.str(), StringRef("")};
  if (llvm::sys::ExecuteAndWait(program, {program, nvdisasm ? "-c" : "-sass", input}, std::nullopt, redirects) != 0)
    return "";
  auto listing = llvm::MemoryBuffer::getFile(output);
  return listing ? (*listing)->getBuffer().str() : "";
}

llvm::Error KernelTexts::write(llvm::ArrayRef<UnitText> units, size_t kernelsOfUnit) const {
  std::vector<std::string> listings;
  for (const UnitText &unit : units)
    listings.push_back(unit.cubin.empty() ? "" : disassemble(unit.cubin));
  for (auto [number, kernel] : llvm::enumerate(kernels)) {
    size_t unit = number / kernelsOfUnit;
    std::string sass = sassOf(listings[unit], kernel.functions);
    std::string why =
        sass.empty() ? "sass: none (no cubin, or no disassembler on PATH that supports the architecture)\n" : "";
    const std::pair<const char *, std::string> kinds[] = {{"txt", kernel.facts + why},
                                                          {"cu", kernel.source},
                                                          {"ptx", ptxOf(units[unit].ptx, kernel.functions)},
                                                          {"sass", sass}};
    for (const auto &[kind, contents] : kinds) {
      std::string path = folder + "/" + kernel.name + "." + kind;
      files::Failure failure = contents.empty() ? files::Failure() : files::writeFile(path, contents);
      if (!failure.empty())
        return llvm::createStringError(std::errc::io_error, "%s: %s", path.c_str(), failure.c_str());
    }
  }
  return llvm::Error::success();
}

} // namespace sluice::cuda
