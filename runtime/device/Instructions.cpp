#include "runtime/device/Instructions.h"

#include "runtime/base/Status.h"
#include "runtime/base/Text.h"

#include <algorithm>
#include <iterator>

namespace sluice::runtime {

namespace {
struct Extension {
  std::string_view name;
  bool isThere;
};
} // namespace

/// All extensions that the CPU backend may require. The check covers the processor and the register state that the
/// system saves.
static bool hasInstructions(std::string_view name) {
#if defined(__x86_64__)
  static const Extension known[] = {
      {"avx2", __builtin_cpu_supports("avx2") != 0},         {"fma", __builtin_cpu_supports("fma") != 0},
      {"bmi", __builtin_cpu_supports("bmi") != 0},           {"bmi2", __builtin_cpu_supports("bmi2") != 0},
      {"f16c", __builtin_cpu_supports("f16c") != 0},         {"lzcnt", __builtin_cpu_supports("lzcnt") != 0},
      {"movbe", __builtin_cpu_supports("movbe") != 0},       {"popcnt", __builtin_cpu_supports("popcnt") != 0},
      {"avx512f", __builtin_cpu_supports("avx512f") != 0},   {"avx512bw", __builtin_cpu_supports("avx512bw") != 0},
      {"avx512cd", __builtin_cpu_supports("avx512cd") != 0}, {"avx512dq", __builtin_cpu_supports("avx512dq") != 0},
      {"avx512vl", __builtin_cpu_supports("avx512vl") != 0},
  };
  const auto *found = std::find_if(std::begin(known), std::end(known), [&](auto &item) { return item.name == name; });
  return found != std::end(known) && found->isThere;
#else
  return false;
#endif
}

void checkInstructions(const Build &build) {
  std::vector<std::string> missing;
  std::copy_if(build.needs.begin(), build.needs.end(), std::back_inserter(missing),
               [](const std::string &name) { return !hasInstructions(name); });
  if (!missing.empty())
    failUnsupported(concat("the model was compiled for the CPU ", quote(build.cpu), ", and this machine's is without ",
                           listed(missing), "; compile it with --target-cpu for this one"));
}

} // namespace sluice::runtime
