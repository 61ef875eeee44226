#include "backends/cuda/compiler/nvrtc/Dump.h"

#include "runtime/files/OutputFile.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/LineIterator.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"
#include <fmt/format.h>

namespace sluice::cuda {

using namespace mlir;

/// Removes characters that end or continue a comment: names come from the model.
static std::string harmless(StringRef text) {
  std::string made;
  for (char letter : text)
    made += llvm::isAlnum(letter) || StringRef("._-/").contains(letter) ? letter : '_';
  return made;
}

/// A line of the user's source as the rest of a comment, restricted to characters that compilers read alike, without a
/// line continuation at its end. Empty if there is no such line in a file of this folder, or below.
static std::string lineAt(FileLineColLoc at) {
  constexpr size_t kMostLetters = 120;
  StringRef path = at.getFilename().getValue();
  bool isBelow = !path.starts_with("/") && !path.contains(".."); // models are untrusted
  auto file = llvm::MemoryBuffer::getFile(isBelow && llvm::sys::fs::is_regular_file(path) ? path : "");
  if (!file)
    return "";
  llvm::line_iterator line(**file, /*SkipBlanks=*/false);
  while (!line.is_at_end() && line.line_number() < at.getLine())
    ++line;
  if (line.is_at_end())
    return "";
  std::string text = line->trim().take_front(kMostLetters).str();
  for (char &letter : text)
    letter = llvm::isPrint(letter) ? letter : letter == '\t' ? ' ' : '?';
  return StringRef(text).rtrim("\\/ ").str(); // the trigraph "??/" is also a backslash
}

std::string sourceComment(ir::KernelOp kernel, bool hasLines) {
  std::string text = "// " + harmless(kernel.getName()) + "\n";
  for (Operation &op : kernel.getBody().front().without_terminator()) {
    auto at = op.getLoc()->findInstanceOf<FileLineColLoc>();
    text += "//   " + harmless(op.getName().stripDialect());
    if (at)
      text += fmt::format("  {}:{}:{}", harmless(at.getFilename()), at.getLine(), at.getColumn());
    if (std::string line = at && hasLines ? lineAt(at) : ""; !line.empty())
      text += "  " + line;
    text += '\n';
  }
  return text;
}

static llvm::Error makeError(const std::string &path, const std::string &why) {
  return llvm::createStringError(std::errc::invalid_argument, "%s: %s", path.c_str(), why.c_str());
}

static llvm::Error makeFolder(const std::string &folder) {
  std::error_code failed = llvm::sys::fs::create_directories(folder);
  if (!failed && !llvm::sys::fs::is_directory(folder))
    failed = std::make_error_code(std::errc::not_a_directory);
  return failed ? makeError(folder, failed.message()) : llvm::Error::success();
}

llvm::Error checkDumpFolder(const std::string &folder) {
  SmallVector<std::string> absent;     // the innermost first
  auto isAbsent = [](StringRef path) { // a dangling link is not absent
    llvm::sys::fs::file_status status;
    return llvm::sys::fs::status(path, status, /*follow=*/false) == std::errc::no_such_file_or_directory;
  };
  for (StringRef path = folder; !path.empty() && isAbsent(path); path = llvm::sys::path::parent_path(path))
    absent.push_back(path.str());
  llvm::Error error = makeFolder(folder);
  for (const std::string &made : absent)
    llvm::sys::fs::remove(made); // unless other files were added to it
  return error;
}

static llvm::Error writeFile(const std::string &path, std::string_view contents) {
  files::Failure failure = files::writeFile(path, contents);
  return failure.empty() ? llvm::Error::success() : makeError(path, failure);
}

static void writeResources(llvm::json::OStream &json, llvm::ArrayRef<CompiledUnit> compiled, size_t units) {
  for (auto [number, unit] : llvm::enumerate(compiled))
    for (const KernelResources &function : unit.functions)
      json.object([&] {
        json.attribute("function", function.name);
        json.attribute("unit", int64_t(number % units));
        json.attribute("architecture", unit.architecture);
        json.attribute("registers", function.registers);
        json.attribute("spilled_bytes", function.spillStores + function.spillLoads);
        json.attribute("stack_bytes", function.stack);
        json.attribute("shared_bytes", function.shared);
      });
}

llvm::Error writeDump(const std::string &folder, llvm::ArrayRef<std::string> units,
                      llvm::ArrayRef<CompiledUnit> compiled) {
  if (llvm::Error error = makeFolder(folder))
    return error;
  for (auto [number, unit] : llvm::enumerate(units))
    if (llvm::Error error = writeFile(fmt::format("{}/kernels-{}.cu", folder, number), unit))
      return error;
  for (auto [number, unit] : llvm::enumerate(compiled)) {
    const char *kind = StringRef(unit.architecture).starts_with("sm_") ? "cubin" : "ptx";
    std::string path = fmt::format("{}/kernels-{}.{}.{}", folder, number % units.size(), unit.architecture, kind);
    if (!unit.code.empty())
      if (llvm::Error error = writeFile(path, unit.code))
        return error;
  }
  std::string resources;
  llvm::raw_string_ostream out(resources);
  llvm::json::OStream json(out, /*IndentSize=*/2);
  json.object([&] { json.attributeArray("functions", [&] { writeResources(json, compiled, units.size()); }); });
  out << '\n';
  return writeFile(folder + "/kernels.json", resources);
}

} // namespace sluice::cuda
