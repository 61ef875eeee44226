// gpu_check_run PART PLUGIN [--folder F] [--model M] [--only NAME,...] [--after NAME] [--most N] [--bare] [--products own|both]
// [--seconds S]: one part of the check, in a process of its own, for `run`. Parts are probe, hold, conformance, contracts, names,
// kernels and peaks; PLUGIN is the run half. Links the runtime's bases alone: neither a compiler nor a framework.
#include "tools/gpu_check/runner/Parts.h"

#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <iostream>

using namespace sluice::gpu_check;

static constexpr int kUsage = 2, kInvalid = 3;

static const sluice_backend_run *loadRunHalf(const char *path) {
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  auto query = library ? reinterpret_cast<sluice_backend_query_fn>(dlsym(library, "sluice_backend_query")) : nullptr;
  if (!query)
    std::cerr << "gpu_check_run: " << path << " is no backend: " << dlerror() << '\n';
  return query ? query()->run : nullptr;
}

static bool read(int count, char **arguments, PartOptions &options) {
  for (int i = 3; i < count; ++i) {
    std::string flag = arguments[i];
    if (flag == "--bare") {
      options.bare = true;
      continue;
    }
    if (++i == count)
      return false;
    std::string value = arguments[i];
    if (flag == "--folder")
      options.folder = value;
    else if (flag == "--model")
      options.model = value;
    else if (flag == "--only")
      options.only = value;
    else if (flag == "--after")
      options.after = value;
    else if (flag == "--most")
      options.most = std::atoll(value.c_str());
    else if (flag == "--products" && (value == "own" || value == "both"))
      options.products = value;
    else if (flag == "--seconds")
      options.seconds = std::atof(value.c_str());
    else
      return false;
  }
  return true;
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
  PartOptions options;
  if (count < 3 || !read(count, arguments, options)) {
    std::cerr << "usage: gpu_check_run PART PLUGIN [FLAGS]\n";
    return kUsage;
  }
  const sluice_backend_run *half = loadRunHalf(arguments[2]);
  if (!half)
    return kInvalid;
  try {
    return runPart(arguments[1], *half, options);
  } catch (const std::exception &error) {
    std::cerr << "gpu_check_run: " << error.what() << '\n';
    return kInvalid;
  }
}
