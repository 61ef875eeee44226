// Compiles from a file to a file.
#include "ir/Target.h"
#include "ir/text/ParseGuard.h"
#include "passes/assign/PlacementRequest.h"
#include "tools/compiler/Compiler.h"
#include "tools/compiler/CompilerContext.h"
#include "tools/compiler/Diagnostics.h"
#include "tools/compiler/Dot.h"
#include "tools/compiler/Files.h"
#include "tools/compiler/InitialData.h"
#include "tools/compiler/Linker.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"
#include <chrono>
#include <optional>

using namespace mlir;

namespace sluice::compiler {

static std::string printModule(ModuleOp module, bool locations) {
  std::string text;
  llvm::raw_string_ostream out(text);
  OpPrintingFlags flags;
  flags.enableDebugInfo(locations);
  module->print(out, flags);
  out << '\n';
  return text;
}

static std::string defaultOutput(llvm::StringRef input, Emit emit) {
  if (isText(emit))
    return "-";
  llvm::SmallString<128> name(llvm::sys::path::filename(input));
  llvm::sys::path::replace_extension(name, emit == Emit::SharedLibrary ? "so" : emit == Emit::Object ? "o" : "");
  if (name == llvm::sys::path::filename(input))
    name += ".out"; // never overwrites the model
  return name.str().str();
}

/// The suffix of an artifact's file of large initial data.
static constexpr llvm::StringLiteral kValuesEnding = ".values.safetensors";

/// The objects of all variants, whose kernels have equal names.
static llvm::Expected<std::vector<std::string>> objectsOf(const Compiled &compiled) {
  if (compiled.others.empty())
    return compiled.objects;
  llvm::SmallVector<const Compiled *> variants{&compiled};
  llvm::append_range(variants, llvm::make_pointer_range(compiled.others));
  std::vector<std::string> objects;
  for (auto [number, variant] : llvm::enumerate(variants)) {
    auto joined = joinObjects(variant->objects, passes::querySymbol(int64_t(number)));
    if (!joined)
      return joined.takeError();
    objects.push_back(std::move(*joined));
  }
  return objects;
}

/// Writes the artifact, and its file of large initial data if there is any: both or neither.
static llvm::Error writeArtifact(ModuleOp module, const Compiled &compiled, Emit emit) {
  auto objects = objectsOf(compiled);
  if (!objects)
    return objects.takeError();
  std::string values = compiled.output + kValuesEnding.str();
  if (llvm::Error error = writeInitialData(module, compiled.values, values))
    return error;
  llvm::Error error = linkArtifact(*objects, compiled.output,
                                   emit == Emit::Executable      ? LinkOutput::Executable
                                   : emit == Emit::SharedLibrary ? LinkOutput::SharedLibrary
                                                                 : LinkOutput::Object);
  if (error && !compiled.values.file.empty())
    llvm::sys::fs::remove(values);
  return error;
}

static llvm::Error writeOutput(ModuleOp module, const Compiled &compiled, Emit emit, bool locations) {
  if (emit == Emit::None)
    return llvm::Error::success();
  if (!isText(emit))
    return writeArtifact(module, compiled, emit);
  std::string text = emit == Emit::Dot ? printDot(module) : printModule(module, locations);
  if (compiled.output != "-")
    return writeWhole(text, compiled.output);
  return writeStandardOutput(text);
}

passes::SharedCounts Compiled::allShared() const {
  passes::SharedCounts sums = shared;
  for (const Compiled &other : others) {
    sums.kernels += other.shared.kernels;
    sums.reused += other.shared.reused;
    sums.fromFolder += other.shared.fromFolder;
  }
  return sums;
}

llvm::Expected<OwningOpRef<ModuleOp>> readModel(llvm::StringRef path, MLIRContext &context) {
  if (path.ends_with(".onnx") && llvm::sys::fs::exists(path))
    return makeError(ExitCode::Usage,
                     "cannot read " + path + ": it is an ONNX file; `sluice import " + path + "` makes a model of it");
  auto module = ir::parseModuleFile(path, context);
  if (!module)
    return withCode(ExitCode::Invalid, module.takeError());
  locateValues(**module, path);
  return module;
}

static llvm::Expected<ir::Target> targetOf(llvm::StringRef list) {
  passes::PlacementRequest caps;
  auto devices = passes::takeCaps(list, caps);
  if (!devices)
    return devices.takeError();
  auto target = ir::Target::parse(*devices);
  return target ? std::move(target) : withCode(ExitCode::Usage, target.takeError());
}

/// The options for each list of devices. A backend's settings go to the lists that contain it; settings of a backend in
/// no list are rejected by the first.
static llvm::Expected<std::vector<CompileOptions>> optionsOfVariants(const CompileOptions &options,
                                                                     llvm::ArrayRef<std::string> otherDevices) {
  if (otherDevices.empty())
    return std::vector{options};
  std::vector<std::string> lists{options.devices};
  llvm::append_range(lists, otherDevices);
  std::vector<ir::Target> targets;
  for (const std::string &list : lists) {
    auto target = targetOf(list);
    if (!target)
      return target.takeError();
    if (llvm::any_of(targets, [&](const ir::Target &known) { return known.str() == target->str(); }))
      return makeError(ExitCode::Usage, "the devices '" + list + "' are listed twice");
    targets.push_back(std::move(*target));
  }
  std::vector<CompileOptions> all(lists.size(), options);
  for (auto [number, its] : llvm::enumerate(all)) {
    its.devices = lists[number];
    if (!its.dump_ir.empty())
      its.dump_ir += "/" + lists[number];
    for (const std::string &name : llvm::make_first_range(options.backends)) {
      auto has = [&](const ir::Target &target) {
        return llvm::any_of(target.devices(), [&](const ir::TargetDevice &device) { return device.backend == name; });
      };
      if (!has(targets[number]) && llvm::any_of(targets, has))
        its.backends.erase(name);
    }
  }
  return all;
}

llvm::Expected<Compiled> compileFile(llvm::StringRef path, const CompileOptions &options, const CompileTask &task) {
  bool stops = !task.compileTo.empty() && task.compileTo != "executable";
  Emit emit = stops && !isText(task.emit) ? Emit::Mlir : task.emit;
  std::string output = task.output.empty() ? defaultOutput(path, emit) : task.output;
  if (output == "-" && !isText(emit))
    return makeError(ExitCode::Usage, "only IR can be written to the standard output");
  if (isText(emit) && !task.otherDevices.empty())
    return makeError(ExitCode::Usage, "IR is for one list of devices, and several are given");
  auto variants = optionsOfVariants(options, task.otherDevices);
  if (!variants)
    return variants.takeError();

  CompilerContext context;
  std::vector<OwningOpRef<ModuleOp>> modules;
  std::optional<Compiled> compiled;
  for (auto [number, its] : llvm::enumerate(*variants)) {
    auto module = readModel(path, context.mlir());
    if (!module)
      return module.takeError();
    CompileTask part = task;
    part.variant = {int64_t(number), number + 1 == variants->size()};
    if (!isText(emit))
      part.values = (llvm::sys::path::filename(output) + kValuesEnding).str();
    auto variant = compileModule(**module, its, part, &context);
    if (!variant)
      return variant.takeError();
    modules.push_back(std::move(*module));
    if (!compiled)
      compiled = std::move(*variant);
    else
      compiled->others.push_back(std::move(*variant));
  }

  auto start = std::chrono::steady_clock::now();
  compiled->output = output;
  if (llvm::Error error = writeOutput(*modules.front(), *compiled, emit, task.printLocations))
    return error;
  std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  if (!isText(emit))
    compiled->phases.push_back({"executable", took.count()});
  return std::move(*compiled);
}

} // namespace sluice::compiler
