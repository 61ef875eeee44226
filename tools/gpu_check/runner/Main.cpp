// One part of the check in a separate process, for `run`. Links the runtime's base libraries alone: neither a compiler
// nor a framework.
#include "runtime/base/Text.h"
#include "runtime/help/Arguments.h"
#include "runtime/help/HelpFormatter.h"
#include "tools/gpu_check/runner/Parts.h"

#include <dlfcn.h>
#include <iostream>

using namespace sluice;
using namespace sluice::gpu_check;

static constexpr int kUsage = 2, kInvalid = 3;

static const sluice_backend_run *loadRunHalf(const char *path) {
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  auto query = library ? reinterpret_cast<sluice_backend_query_fn>(dlsym(library, "sluice_backend_query")) : nullptr;
  if (!query)
    std::cerr << help::errorText("gpu_check_run", runtime::concat(path, " is not a backend: ", dlerror())) << '\n';
  return query ? query()->run : nullptr;
}

static void describe(CLI::App &app, std::string &part, std::string &plugin, PartOptions &options) {
  help::setHelp(app);
  app.add_option("part", part, "Part to run: probe, hold, conformance, contracts, names, kernels or peaks")
      ->required()
      ->type_name("PART");
  app.add_option("plugin", plugin, "Shared object of the backend's run half")->required()->type_name("PLUGIN");
  help::beginGroup(app, "Tests");
  app.add_option("--folder", options.folder, "Folder of the packs")->type_name("DIR");
  app.add_option("--model", options.model, "Model whose kernels are tried")->type_name("NAME");
  app.add_option("--only", options.only, "Contracts to check (default: all)")->type_name("NAME,...");
  app.add_option("--after", options.after, "Kernel or contract to continue after")->type_name("NAME");
  app.add_option("--most", options.most, "Maximum number of kernels; 0: all")->type_name("N")->capture_default_str();
  app.add_flag("--bare", options.bare, "Use neither guard memory nor initialized results");
  app.add_option(
         "--products", options.products,
         "Matrix products to try: own kernels, or both library and own kernels (default: the run half's choice)")
      ->type_name("own|both")
      ->check(help::oneOf({"own", "both"}));
  app.add_option("--seconds", options.seconds, "Minimum measuring time")->type_name("SECONDS")->capture_default_str();
}

static int runPart(const std::string &part, const sluice_backend_run &half, const PartOptions &options) {
  if (part == "probe")
    return probe(half);
  if (part == "hold")
    return hold(half);
  if (part == "conformance")
    return runConformance(half);
  if (part == "contracts")
    return runContracts(options);
  if (part == "names")
    return nameContracts();
  if (part == "kernels")
    return runKernels(half, options);
  if (part == "peaks")
    return measurePeaks(options);
  return kUsage;
}

int main(int count, char **arguments) {
  std::string part, plugin;
  PartOptions options;
  CLI::App app("Runs one part of the check of the CUDA backend.", "gpu_check_run");
  describe(app, part, plugin, options);
  if (std::optional<int> code = help::parse(app, count, arguments))
    return *code;
  const sluice_backend_run *half = loadRunHalf(plugin.c_str());
  if (!half)
    return kInvalid;
  try {
    return runPart(part, *half, options);
  } catch (const std::exception &error) {
    std::cerr << help::errorText("gpu_check_run", error.what()) << '\n';
    return kInvalid;
  }
}
