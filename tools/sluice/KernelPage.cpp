#include "tools/sluice/KernelPage.h"

#include "passes/Nearest.h"
#include "tools/compiler/Diagnostics.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"
#include <map>

using namespace sluice::compiler;

namespace sluice::tool {

/// The kinds of texts from the model to the machine. Other kinds follow.
static constexpr llvm::StringLiteral kKinds[] = {"txt", "mlir", "vector.mlir", "ll", "s", "cu", "ptx", "sass"};

/// The files of each kernel in the order of their kinds, by the kernel's name, which has no dot.
static std::map<std::string, std::vector<std::string>> filesIn(llvm::StringRef folder) {
  std::map<std::string, std::map<std::pair<size_t, std::string>, std::string>> sorted;
  std::error_code error;
  for (llvm::sys::fs::directory_iterator file(folder, error), end; !error && file != end; file.increment(error)) {
    auto [name, kind] = llvm::sys::path::filename(file->path()).split('.');
    size_t place = size_t(llvm::find(kKinds, kind) - std::begin(kKinds));
    sorted[name.str()][{place, kind.str()}] = file->path();
  }
  std::map<std::string, std::vector<std::string>> files;
  for (const auto &[name, its] : sorted)
    for (const auto &[kind, path] : its)
      files[name].push_back(path);
  return files;
}

static void printPage(llvm::raw_ostream &out, llvm::StringRef name, llvm::ArrayRef<std::string> files) {
  out << "==== " << name << " ====\n";
  for (const std::string &path : files) {
    auto text = llvm::MemoryBuffer::getFile(path);
    if (!text)
      continue;
    if (llvm::StringRef file = llvm::sys::path::filename(path); !file.ends_with(".txt"))
      out << "---- " << file << " ----\n";
    out << (*text)->getBuffer().rtrim('\n') << "\n\n";
  }
}

/// The kernels to print: all, or `only`.
static llvm::Expected<std::vector<std::string>> choose(const std::vector<std::string> &names, llvm::StringRef only) {
  if (only.empty())
    return names;
  if (llvm::is_contained(names, only))
    return std::vector{only.str()};
  llvm::SmallVector<llvm::StringRef> known(names.begin(), names.end());
  return makeError(ExitCode::Usage, "there is no kernel '" + only + "'" + passes::didYouMean(only, known) +
                                        "; the kernels are " + llvm::join(names, ", "));
}

llvm::Error printKernels(llvm::raw_ostream &out, llvm::StringRef model, const CompileOptions &options,
                         llvm::StringRef only, std::string &warnings) {
  llvm::SmallString<128> folder;
  if (std::error_code error = llvm::sys::fs::createUniqueDirectory("sluice-kernels", folder))
    return makeError(ExitCode::Invalid, "cannot make a temporary folder: " + error.message());
  auto remove = llvm::make_scope_exit([&] { llvm::sys::fs::remove_directories(folder); });
  CompileTask task;
  task.emit = Emit::None;
  task.compileTo = "lowered";
  task.kernelTexts = folder.str().str();
  auto compiled = compileFile(model, options, task);
  if (!compiled)
    return compiled.takeError();
  warnings = compiled->warnings;
  auto names = choose(compiled->kernels, only);
  if (!names)
    return names.takeError();
  auto files = filesIn(folder);
  for (const std::string &name : *names)
    printPage(out, name, files[name]);
  return llvm::Error::success();
}

} // namespace sluice::tool
