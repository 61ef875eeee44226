#include "passes/artifact/LowerKernels.h"

#include "ir/Module.h"
#include "passes/artifact/Artifact.h"
#include "passes/artifact/BuildPlan.h"
#include "passes/driver/PassTable.h"
#include "llvm/Support/FileSystem.h"

using namespace mlir;

namespace sluice::passes {

/// Adds a backend's code: host objects to the linker's inputs, device code to the artifact's sections.
static LogicalResult addCode(Compilation &c, Backend &backend) {
  FailureOr<sluice_blob> blob = backend.lower(c.module.getLoc());
  if (failed(blob))
    return failure();
  llvm::append_range(c.result.functions, backend.needsIn(*blob));
  std::string bytes(static_cast<const char *>(blob->data), blob->bytes);
  if (blob->kind == SLUICE_BLOB_HOST_OBJECT)
    c.result.objects.push_back(std::move(bytes));
  else if (blob->kind == SLUICE_BLOB_DEVICE)
    c.code.push_back({backend.name().str(), std::move(bytes)});
  return success();
}

/// The link of the devices that hold unplaced values: if a replica link is given, it is the same for all devices.
static std::optional<runtime::GivenLink> givenReplicaLink(const Compilation &c) {
  StringRef device = c.backends->target().first().name;
  const LinkCosts &link = c.costs.link(device, device);
  if (!ir::isReplicated(c.module) || link.source != CostSource::Given)
    return std::nullopt;
  return runtime::GivenLink{link.bytesPerSecond, link.latency};
}

static BuiltPlan buildPlanOf(Compilation &c) {
  return buildPlan(c.module, {c.backends->target(), c.backends->of(ir::kHostDevice).describe(), c.inputs.backendFolder,
                              c.inputs.dataPath, c.code, c.options, givenReplicaLink(c), &c.result.values});
}

runtime::Plan planOf(Compilation &compilation) { return buildPlanOf(compilation).plan; }

/// Adds notes that list the parts of the artifact.
static void noteArtifact(Compilation &c, const std::string &artifact) {
  auto note = [&](const Twine &text) { c.notes.push_back(text.str()); };
  note("This phase leaves the IR unchanged. It produces:");
  for (const std::string &object : c.result.objects)
    note("  an object of " + Twine(object.size()) + " bytes with the kernels of the host");
  for (const DeviceCode &device : c.code)
    note("  " + Twine(device.blob.size()) + " bytes of code for backend '" + device.backend + "'");
  for (const FunctionNeeds &needs : c.result.functions)
    note("    " + needs.function + ": " + Twine(needs.registers) + " registers per thread, " +
         Twine(needs.sharedBytes) + " bytes of shared memory, " + Twine(needs.spilledBytes) + " bytes spilled");
  note("  an object of " + Twine(artifact.size()) + " bytes with the plan and the code of devices");
}

LogicalResult lowerKernels(Compilation &c) {
  const std::string &texts = c.inputs.kernelTexts;
  if (std::error_code error = texts.empty() ? std::error_code() : llvm::sys::fs::create_directories(texts))
    return c.module.emitError("cannot make the folder ") << texts << ": " << error.message();
  if (!texts.empty()) // backends write facts to these files, to which others are added
    for (auto function : c.module.getOps<ir::FunctionOp>())
      llvm::sys::fs::remove(texts + "/" + function.getSymName() + ".txt");
  for (const std::unique_ptr<Backend> &backend : c.backends->sessions())
    if (!(c.shared && backend->lowersKernels()) && failed(addCode(c, *backend)))
      return failure();
  if (!c.shared)
    return success();
  c.result.shared = c.shared->counts();
  return c.shared->lower(c.module.getLoc(), c.result.objects);
}

LogicalResult buildArtifact(Compilation &c) {
  BuiltPlan built = buildPlanOf(c);
  llvm::Expected<std::string> artifact = emitArtifact(built, c.code, c.result.values.constants, c.inputs.variant);
  if (!artifact)
    return c.module.emitError(llvm::toString(artifact.takeError()));
  noteArtifact(c, *artifact);
  c.result.objects.push_back(std::move(*artifact));
  c.result.plan = std::move(built.plan);
  return success();
}

} // namespace sluice::passes
