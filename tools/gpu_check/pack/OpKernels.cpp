#include "tools/gpu_check/pack/OpKernels.h"

#include "passes/driver/OptionValues.h"
#include "tests/conformance/OpKernel.h"
#include "tools/compiler/Backends.h"
#include "tools/compiler/Diagnostics.h"
#include "tools/gpu_check/pack/WritePack.h"
#include "llvm/ADT/StringExtras.h"
#include <deque>
#include <set>

using namespace mlir;

namespace sluice::gpu_check {

using conformance::Layouts;

/// Samples with and without rows, in both element types.
static std::vector<ir::Sample> samplesOf(const std::string &op) {
  std::vector<ir::Sample> samples;
  for (const ir::Sample &given : test::getSamples(op)) {
    std::optional<ir::Sample> rows = conformance::withRows(given);
    for (const ir::Sample &sample : rows ? std::vector{given, *rows} : std::vector{given}) {
      ir::Sample narrow = conformance::withElement(sample, "f32");
      samples.push_back(narrow);
      if (narrow.op != sample.op)
        samples.push_back(sample);
    }
  }
  return samples;
}

namespace {

/// The collected kernels; kernels that the backend rejects are omitted.
struct OpKernels {
  passes::Backend &backend;
  std::deque<conformance::OpKernel> kernels;
  std::vector<KernelToPack> packed;

  void add(const ir::Sample &sample, llvm::StringRef op) {
    std::set<std::string> known; // different layouts may be equivalent
    for (Layouts layouts : {Layouts::RowMajor, Layouts::Preferred, Layouts::Reversed, Layouts::Tiled}) {
      conformance::OpKernel &kernel = kernels.emplace_back(sample);
      bool isRefused = !backend.reasonAgainst(kernel.op()).empty();
      if (!isRefused)
        kernel.takeLayouts(backend, layouts);
      std::string types = isRefused ? "" : conformance::printTypes(kernel.op());
      if (isRefused || !known.insert(types).second || !backend.reasonAgainst(kernel.op()).empty()) {
        kernels.pop_back();
        continue;
      }
      KernelToPack &added = packed.emplace_back(KernelToPack{kernel.outline(), (op + " " + types).str()});
      for (auto [low, high] : sample.ranges)
        added.ranges.push_back({low, high});
    }
  }
};

} // namespace

llvm::Expected<size_t> packOps(StringRef only, const std::string &name, const std::string &folder,
                               const CompileOptions &options) {
  auto table = compiler::findBackend("cuda");
  if (!table)
    return table.takeError();
  ir::DiagnosticText diagnostics(&test::getContext());
  sluice_compile_services services{sizeof(services), &compiler::hostBackend()};
  std::string settings = passes::settingsOf(options, "cuda");
  sluice_target_options target{sizeof(target),   "native", conformance::kCapacity, &services,
                               settings.c_str(), nullptr,  passes::mathOf(options)};
  auto backend = passes::Backend::create(**table, target, UnknownLoc::get(&test::getContext()));
  if (!backend)
    return compiler::makeError(compiler::ExitCode::Unsupported, diagnostics.errors());
  SmallVector<StringRef> names;
  only.split(names, ',', -1, /*KeepEmpty=*/false);
  OpKernels ops{*backend, {}, {}};
  for (const std::string &op : test::getOpsWith<ir::ReferenceOp>()) {
    StringRef mnemonic = StringRef(op).split('.').second;
    if (names.empty() || llvm::is_contained(names, mnemonic))
      for (const ir::Sample &sample : samplesOf(op))
        ops.add(sample, mnemonic);
  }
  if (ops.packed.empty())
    return compiler::makeError(compiler::ExitCode::Usage, "there is no op of '" + only + "' that the backend takes");
  if (llvm::Error error = packKernels({name, conformance::kCapacity, 0, {}}, ops.packed, *backend, folder))
    return std::move(error);
  return ops.packed.size();
}

} // namespace sluice::gpu_check
