#include "passes/driver/Dump.h"
#include "ir/Target.h"
#include "runtime/files/OutputFile.h"
#include "runtime/plan/DeviceName.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace sluice::passes {

static LogicalResult writeFile(ModuleOp module, const std::string &path, llvm::function_ref<void(raw_ostream &)> body) {
  std::string text;
  llvm::raw_string_ostream os(text);
  body(os);
  files::Failure failure = files::writeFile(path, text);
  return failure.empty() ? success() : module.emitError() << path << ": " << failure;
}

/// The names of the accelerators that types call #acc0, #acc1, ...
static void printDevices(raw_ostream &os, ModuleOp module) {
  FailureOr<ir::Target> target = ir::Target::of(module);
  if (failed(target))
    return;
  for (const ir::TargetDevice &device : target->devices().drop_front())
    os << "// " << device.name << " is " << runtime::shownDevice(device.name, device.spelling()) << '\n';
}

LogicalResult Dump::write(ModuleOp module, unsigned number, StringRef phase, ArrayRef<std::string> notes) {
  if (folder.empty())
    return success();
  if (std::error_code error = llvm::sys::fs::create_directories(folder))
    return module.emitError("cannot make the folder ") << folder << ": " << error.message();
  std::string name;
  llvm::raw_string_ostream(name) << llvm::format("%02u-", number) << phase << ".mlir";
  int64_t ops = 0;
  module.walk([&](Operation *) { ++ops; });
  files.push_back({name, phase.str(), ops});
  OpPrintingFlags flags;
  flags.enableDebugInfo(true, /*prettyForm=*/false).elideLargeElementsAttrs(64);
  return writeFile(module, folder + "/" + name, [&](raw_ostream &os) {
    printDevices(os, module);
    for (const std::string &note : notes)
      os << "// " << note << '\n';
    module.print(os, flags);
  });
}

LogicalResult Dump::finish(ModuleOp module) {
  if (folder.empty())
    return success();
  llvm::json::Array list;
  for (const File &file : files)
    list.push_back(llvm::json::Object{{"file", file.name}, {"phase", file.phase}, {"ops", file.ops}});
  llvm::json::Value manifest = llvm::json::Object{{"format", 1}, {"phases", std::move(list)}};
  return writeFile(module, folder + "/manifest.json",
                   [&](raw_ostream &os) { os << llvm::formatv("{0:2}\n", manifest); });
}

} // namespace sluice::passes
