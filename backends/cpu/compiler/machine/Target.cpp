#include "backends/cpu/compiler/machine/Target.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/TargetParser/X86TargetParser.h"

#include <unistd.h>

namespace sluice::cpu {

using llvm::StringRef;

// Required by all generated code.
static constexpr llvm::StringLiteral kNeeded[] = {"avx2", "fma", "f16c"};
// Used if available, as in nearly every CPU with the required extensions.
static constexpr llvm::StringLiteral kUsed[] = {"bmi", "bmi2", "lzcnt", "movbe", "popcnt"};
// Together they provide vectors of 512 bits. Later extensions (VNNI, VBMI, ...) do not improve the generated code, and
// a program that uses them would not run on all machines with AVX-512.
static constexpr llvm::StringLiteral kWide[] = {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"};

// Processors that start only one 512-bit multiply-add per cycle, because their vector ports are 256 bits wide or only
// one port supports 512 bits.
static bool hasSingleWideFma(StringRef cpu) {
  static const llvm::StringSet<> single = {"znver4", "icelake-client", "tigerlake", "rocketlake", "cannonlake"};
  return single.contains(cpu);
}

// Cores with 5 cycles from a multiply-add to its result, and cores that start more than 4 instructions in a cycle.
// Source: Agner Fog, "The microarchitecture of Intel, AMD, and VIA CPUs" and "Instruction tables".
static int64_t fmaLatencyOf(StringRef cpu) {
  static const llvm::StringSet<> slow = {"haswell", "broadwell", "znver1", "znver2"};
  return slow.contains(cpu) ? 5 : 4;
}

static int64_t issueWidthOf(StringRef cpu) {
  static const llvm::StringSet<> four = {"haswell",     "broadwell",  "skylake",   "skylake-avx512",
                                         "cascadelake", "cooperlake", "x86-64-v3", "x86-64-v4"};
  static const llvm::StringSet<> five = {"icelake-client", "icelake-server", "tigerlake", "rocketlake", "cannonlake"};
  return four.contains(cpu) ? 4 : five.contains(cpu) ? 5 : 6;
}

bool Target::has(StringRef instruction) const { return llvm::is_contained(instructions, instruction); }

// The target for `cpu`, with those of the available extensions that generated code uses.
static Target targetWith(StringRef cpu, const llvm::StringMap<bool> &available) {
  auto isThere = [&](StringRef name) { return available.lookup(name); };
  Target target;
  target.cpu = cpu.str();
  for (llvm::ArrayRef<llvm::StringLiteral> names : {llvm::ArrayRef(kNeeded), llvm::ArrayRef(kUsed)})
    for (StringRef name : llvm::make_filter_range(names, isThere))
      target.instructions.push_back(name.str());
  bool wide = llvm::all_of(kWide, isThere);
  if (wide)
    for (StringRef name : kWide)
      target.instructions.push_back(name.str());
  target.vectorBits = wide ? 512 : target.has("avx2") ? 256 : 128;
  target.numVectorRegisters = wide ? 32 : 16;
  target.fmaPorts = wide && hasSingleWideFma(cpu) ? 1 : 2;
  target.fmaLatency = fmaLatencyOf(cpu);
  target.issueWidth = issueWidthOf(cpu);
  target.l2 = wide ? 1 << 20 : 256 << 10;
  return target;
}

static llvm::Error refuse(std::errc code, const llvm::Twine &why) {
  return llvm::createStringError(std::make_error_code(code), why);
}

static int64_t cacheBytes(int name, int64_t fallback) {
  long bytes = sysconf(name);
  return bytes > 0 ? bytes : fallback;
}

static Target findHost() {
  Target target = targetWith(llvm::sys::getHostCPUName(), llvm::sys::getHostCPUFeatures());
  target.l1 = cacheBytes(_SC_LEVEL1_DCACHE_SIZE, target.l1);
  target.l2 = cacheBytes(_SC_LEVEL2_CACHE_SIZE, target.l2);
  return target;
}

Target Target::host() {
  static const Target host = findHost(); // on virtual machines, the queries take long
  return host;
}

static llvm::Expected<Target> named(StringRef cpu) {
  if (llvm::X86::parseArchX86(cpu, /*Only64Bit=*/true) == llvm::X86::CK_None)
    return refuse(std::errc::invalid_argument, "there is no CPU '" + cpu + "'");
  llvm::SmallVector<StringRef> listed;
  llvm::X86::getFeaturesForCPU(cpu, listed);
  llvm::StringMap<bool> available;
  for (StringRef name : listed) { // the list omits implied extensions
    available[name] = true;
    llvm::X86::updateImpliedFeatures(name, /*Enabled=*/true, available);
  }
  return targetWith(cpu, available);
}

// "32K" or "2M".
static bool parseBytes(StringRef text, int64_t &bytes) {
  int64_t unit = text.consume_back("K") ? 1 << 10 : text.consume_back("M") ? 1 << 20 : 0;
  constexpr int64_t least = 1 << 10, most = 1 << 30;
  if (unit == 0 || text.getAsInteger(10, bytes) || bytes < 1 || bytes > most / unit)
    return false;
  bytes *= unit;
  return bytes >= least;
}

// "l1=32K,l2=256K", either or both.
static llvm::Error setCaches(StringRef text, Target &target) {
  llvm::SmallVector<StringRef> settings;
  text.split(settings, ',');
  for (StringRef setting : settings) {
    auto [name, value] = setting.split('=');
    int64_t *cache = name == "l1" ? &target.l1 : name == "l2" ? &target.l2 : nullptr;
    if (!cache || !parseBytes(value, *cache))
      return refuse(std::errc::invalid_argument, "'" + setting + "' is not a cache size such as l1=32K or l2=1M");
  }
  return llvm::Error::success();
}

// Checks that all required extensions are available.
static llvm::Error checkNeeded(const Target &target) {
  std::string missing;
  for (StringRef name : kNeeded)
    if (!target.has(name))
      missing += (missing.empty() ? "" : " and ") + name.str();
  if (missing.empty())
    return llvm::Error::success();
  return refuse(std::errc::not_supported,
                "code needs AVX2, FMA and F16C, and '" + target.cpu + "' is without " + missing);
}

llvm::Expected<Target> Target::of(StringRef text) {
  auto [name, caches] = text.split(':');
  llvm::Expected<Target> target = name == "native" ? llvm::Expected<Target>(host()) : named(name);
  if (!target)
    return target;
  if (llvm::Error error = checkNeeded(*target))
    return error;
  if (name.size() != text.size())
    if (llvm::Error error = setCaches(caches, *target))
      return error;
  return target;
}

} // namespace sluice::cpu
