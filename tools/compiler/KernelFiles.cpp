#include "tools/compiler/KernelFiles.h"

#include "ir/Dialect.h"
#include "ir/Module.h"
#include "ir/Target.h"
#include "ir/text/DiagnosticText.h"
#include "runtime/plan/DeviceName.h"
#include "tools/compiler/Diagnostics.h"
#include "tools/compiler/Files.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/LineIterator.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"
#include <fmt/format.h>

using namespace mlir;

namespace sluice::compiler {

/// Replaces unprintable characters, because a line break would end the comment. Names come from the model.
static std::string harmless(llvm::StringRef text) {
  std::string made = text.str();
  for (char &letter : made)
    letter = llvm::isPrint(letter) ? letter : '_';
  return made;
}

/// A line of the user's source. Empty if there is no such line in a file of this folder, or below.
static std::string lineAt(FileLineColLoc at) {
  constexpr size_t kMostLetters = 120;
  llvm::StringRef path = at.getFilename().getValue();
  bool isBelow = !path.starts_with("/") && !path.contains(".."); // models are untrusted
  auto file = llvm::MemoryBuffer::getFile(isBelow && llvm::sys::fs::is_regular_file(path) ? path : "");
  if (!file)
    return "";
  llvm::line_iterator line(**file, /*SkipBlanks=*/false);
  while (!line.is_at_end() && line.line_number() < at.getLine())
    ++line;
  return line.is_at_end() ? "" : harmless(line->trim().take_front(kMostLetters));
}

/// The function's ops, each with its source location and the text of that line if the file is here; then the function.
static std::string bodyOf(ir::FunctionOp function) {
  std::string text;
  llvm::raw_string_ostream out(text);
  for (Operation &op : function.getBody().front().without_terminator()) {
    out << "// " << op.getName().stripDialect();
    if (std::string place = ir::printLocation(op.getLoc()); !place.empty())
      out << "  " << harmless(place);
    if (auto at = op.getLoc()->findInstanceOf<FileLineColLoc>())
      if (std::string line = lineAt(at); !line.empty())
        out << "  " << line;
    out << '\n';
  }
  OwningOpRef<ir::FunctionOp> copy = function.clone(); // the printer makes aliases for ops without a parent only
  copy->print(out, OpPrintingFlags().elideLargeElementsAttrs(64));
  out << '\n';
  return text;
}

/// "train_step 2, predict 1": the launches of a function in each entry point that has any.
static std::string launchesOf(ir::FunctionOp function, ModuleOp module) {
  llvm::SmallVector<std::string> all;
  for (auto entry : module.getOps<ir::EntryOp>()) {
    size_t count = 0;
    entry.walk([&](ir::LaunchOp launch) { count += launch.getFunction() == function.getSymName(); });
    if (count > 0)
      all.push_back(fmt::format("{} {}", entry.getSymName().str(), count));
  }
  return llvm::join(all, ", ");
}

/// The devices on which a function is launched, in the order of the target.
static llvm::SmallVector<const ir::TargetDevice *> devicesOf(ir::FunctionOp function, const ir::Target &target) {
  llvm::StringSet<> names;
  function->getParentOfType<ModuleOp>().walk([&](ir::LaunchOp launch) {
    if (launch.getFunction() == function.getSymName())
      names.insert(launch.getQueue()); // the compute queue of a device has its name
  });
  llvm::SmallVector<const ir::TargetDevice *> devices;
  for (const ir::TargetDevice &device : target.devices())
    if (names.contains(device.name))
      devices.push_back(&device);
  return devices;
}

/// Whether arithmetic or memory takes longer at the rates of the device.
static std::string boundOf(llvm::StringRef kind, double operations, double bytes, const passes::DeviceCosts &costs) {
  if (costs.source == passes::CostSource::Nominal)
    return "unknown: no rates of this device; run `sluice devices --measure`";
  const passes::KernelRates &rates = costs.ratesOf(kind);
  double compute = operations / rates.flopsPerSecond, memory = rates.roofline(0, bytes) - rates.launchSeconds;
  auto ofCompute = fmt::format("{:.3g} us at {:.1f} GFLOP/s", compute * 1e6, rates.flopsPerSecond / 1e9);
  auto ofMemory = fmt::format("{:.3g} us at {:.1f} GB/s", memory * 1e6, bytes / memory / 1e9);
  std::string source = "; rates: " + passes::nameOf(costs.source).str();
  if (bytes == 0 || compute > memory)
    return "compute: its operations take " + ofCompute + (bytes == 0 ? "" : ", its bytes " + ofMemory) + source;
  return "memory: its bytes take " + ofMemory + ", its operations " + ofCompute + source;
}

static std::string factsOf(ir::FunctionOp function, const ir::Target &target, const passes::CostModel &costs,
                           llvm::ArrayRef<passes::FunctionNeeds> needs) {
  auto module = function->getParentOfType<ModuleOp>();
  ir::CostAttr cost = function.getCost();
  int64_t rows = cost.getFlopsPerRow() || cost.getBytesPerRow() ? ir::getCapacity(module) : 0;
  int64_t operations = cost.getFlops() + cost.getFlopsPerRow() * rows;
  int64_t bytes = cost.getBytes() + cost.getBytesPerRow() * rows;
  llvm::SmallVector<const ir::TargetDevice *> devices = devicesOf(function, target);
  auto shown = llvm::map_to_vector(
      devices, [](const ir::TargetDevice *device) { return runtime::shownDevice(device->name, device->spelling()); });
  std::string facts =
      fmt::format("backend: {}, on {}\nlaunches: {}\ncost: {} operations, {} bytes{}; lane utilization: {:.0f} %\n",
                  function.getBackend().str(), llvm::join(shown, ", "), launchesOf(function, module), operations, bytes,
                  rows ? fmt::format(" with {} rows", rows) : "", 100 * cost.getLanes().getValueAsDouble());
  facts += "bound: " + boundOf(cost.getKind(), double(operations), double(bytes), costs.device(devices.front()->name)) +
           "\n";
  facts += fmt::format("workspace: {} bytes\n", function.getWorkspace());
  for (const passes::FunctionNeeds &its : needs)
    if (function.getCode() && its.backend == function.getBackend() &&
        llvm::StringRef(its.function).starts_with(*function.getCode()))
      facts += fmt::format("registers: {} per thread, {} bytes spilled, {} bytes of shared memory, in {} for {}\n",
                           its.registers, its.spilledBytes, its.sharedBytes, its.function, its.target);
  return facts;
}

llvm::Expected<std::vector<std::string>> writeKernels(ModuleOp module, const std::string &folder,
                                                      const passes::CostModel &costs,
                                                      llvm::ArrayRef<passes::FunctionNeeds> needs) {
  FailureOr<ir::Target> target = ir::Target::of(module);
  assert(succeeded(target) && "the module was compiled for it");
  std::vector<std::string> names;
  for (auto function : module.getOps<ir::FunctionOp>()) {
    names.push_back(function.getSymName().str());
    std::string path = folder + "/" + names.back();
    std::string facts = factsOf(function, *target, costs, needs);
    if (auto ofBackend = llvm::MemoryBuffer::getFile(path + ".txt"))
      facts += (*ofBackend)->getBuffer();
    if (llvm::Error error = writeAll({{path + ".txt", facts}, {path + ".mlir", bodyOf(function)}}))
      return std::move(error);
  }
  return names;
}

} // namespace sluice::compiler
