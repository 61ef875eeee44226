// A double of NVRTC: its "cubin" and its "PTX" are a shared object for the emulated threads, with the name of the architecture
// behind it, which the driver's double loads. What several architectures ask for is compiled once.
//
// What it assumes of NVRTC is in CONTRACTS.md. A program is compiled once.
//
// CUDA_EMU_TEXT stands in front of every text, so that tests see how a device that does otherwise is found out, and
// CUDA_EMU_PTX=compute_121 is what all PTX is for.
#include "tests/cuda_emu/HostCompiler.h"
#include "tests/cuda_emu/SharedMemory.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <future>
#include <iterator>
#include <map>
#include <mutex>
#include <regex>
#include <string>
#include <utility>

namespace {

enum Status { Success = 0, InvalidInput = 3, InvalidProgram = 4, InvalidOption = 5, Compilation = 6 };

struct Program {
  std::string text, log, code;
  bool isPtx = false;
};

/// What the driver's double finds of every kernel.
std::string describeKernels(const std::string &text) {
  std::string added;
  std::regex kernel("(?:__launch_bounds__\\((\\d+).*\\) )?__global__ void (\\w+)\\(");
  for (std::sregex_iterator match(text.begin(), text.end(), kernel), end; match != end; ++match) {
    std::string name = (*match)[2], threads = (*match)[1];
    if (!threads.empty())
      added += "extern \"C\" unsigned cuda_emu_bounds_" + name + "() { return " + threads + "; }\n";
    added += "extern \"C\" void cuda_emu_launch_" + name +
             "(cuda_emu::Dim grid, cuda_emu::Dim block, void *const *arguments) { cuda_emu::call(" + name +
             ", grid, block, arguments); }\n" + "extern \"C\" const unsigned *cuda_emu_sizes_" + name +
             "() { return cuda_emu::argumentSizes(" + name + "); }\n";
  }
  return added;
}

constexpr int kArchitectures[] = {75, 80, 86, 87, 88, 89, 90, 100, 103, 110, 120, 121};

bool isKnown(const std::string &architecture) {
  return std::any_of(std::begin(kArchitectures), std::end(kArchitectures), [&](int number) {
    return architecture == "sm_" + std::to_string(number) || architecture == "compute_" + std::to_string(number);
  });
}

/// What the assembler says of a function that has more shared memory than machine code can ask for; empty if none has.
std::string describeExcess(const std::string &object) {
  constexpr size_t kMost = 48 << 10;
  for (const auto &[function, bytes] : sluice::test::sharedBytes(object))
    if (bytes > kMost)
      return "ptxas info    : Compiling entry function '" + function + "'\nptxas info    : Used " +
             std::to_string(bytes) + " bytes smem\n";
  return "";
}

/// CUDA_EMU_EFFORT=least is for kernels that run a few times.
sluice::test::Effort effort() {
  const char *wanted = std::getenv("CUDA_EMU_EFFORT");
  return wanted && std::strcmp(wanted, "least") == 0 ? sluice::test::Effort::Least : sluice::test::Effort::Some;
}

struct Compiled {
  std::string object, log, excess;
};

const Compiled &compileOnce(const std::string &text) {
  static std::mutex mutex;
  static std::map<std::string, std::shared_future<Compiled>> all;
  std::promise<Compiled> mine;
  bool isMine;
  std::shared_future<Compiled> *compiled;
  {
    std::lock_guard lock(mutex);
    auto [entry, isNew] = all.try_emplace(text, mine.get_future().share());
    compiled = &entry->second, isMine = isNew;
  }
  if (isMine) {
    Compiled made;
    made.object = sluice::test::compileForHost(text + describeKernels(text), effort(), made.log);
    made.excess = made.object.empty() ? "" : describeExcess(made.object);
    mine.set_value(std::move(made));
  }
  return compiled->get();
}

/// CUDA_EMU_NVRTC_LOG names a file that gets a line of each program that is compiled: its architecture, and how many are being
/// compiled as it ends, itself among them.
class Compiling {
public:
  explicit Compiling(std::string architecture) : architecture(std::move(architecture)) {
    std::lock_guard lock(mutex);
    ++count;
  }
  Compiling(const Compiling &) = delete;
  Compiling &operator=(const Compiling &) = delete;
  ~Compiling() {
    std::lock_guard lock(mutex);
    if (const char *path = std::getenv("CUDA_EMU_NVRTC_LOG"))
      std::ofstream(path, std::ios::app) << architecture << " " << count << "\n";
    --count;
  }

private:
  static inline std::mutex mutex;
  static inline int count = 0;
  std::string architecture;
};

} // namespace

#define EXPORTED extern "C" __attribute__((visibility("default")))

EXPORTED int nvrtcVersion(int *major, int *minor) {
  *major = 13;
  *minor = 0;
  return Success;
}

EXPORTED int nvrtcGetNumSupportedArchs(int *count) {
  *count = int(std::size(kArchitectures));
  return Success;
}

EXPORTED int nvrtcGetSupportedArchs(int *numbers) {
  std::copy(std::begin(kArchitectures), std::end(kArchitectures), numbers);
  return Success;
}

EXPORTED const char *nvrtcGetErrorString(int status) {
  switch (status) {
  case Success:
    return "NVRTC_SUCCESS";
  case InvalidInput:
    return "NVRTC_ERROR_INVALID_INPUT";
  case InvalidProgram:
    return "NVRTC_ERROR_INVALID_PROGRAM";
  case InvalidOption:
    return "NVRTC_ERROR_INVALID_OPTION";
  default:
    return "NVRTC_ERROR_COMPILATION";
  }
}

EXPORTED int nvrtcCreateProgram(Program **program, const char *text, const char *, int headers, const char *const *,
                                const char *const *) {
  if (!program || !text || headers != 0)
    return InvalidInput;
  const char *front = std::getenv("CUDA_EMU_TEXT");
  *program = new Program{std::string(front ? front : "") + text, "", ""};
  return Success;
}

EXPORTED int nvrtcDestroyProgram(Program **program) {
  delete *program;
  *program = nullptr;
  return Success;
}

EXPORTED int nvrtcCompileProgram(Program *program, int count, const char *const *options) {
  static const std::string kArchitecture = "--gpu-architecture=";
  std::string architecture;
  for (int i = 0; i < count; ++i)
    if (std::string option = options[i]; option.rfind(kArchitecture, 0) == 0)
      architecture = option.substr(kArchitecture.size());
  if (!isKnown(architecture)) {
    program->log = "nvrtc: error: invalid value for --gpu-architecture (-arch)";
    return InvalidOption;
  }
  Compiling compiling(architecture);
  const Compiled &compiled = compileOnce(program->text);
  program->log = compiled.log;
  if (compiled.object.empty())
    return Compilation;
  program->isPtx = architecture.rfind("compute_", 0) == 0;
  if (!program->isPtx && !compiled.excess.empty()) { // of PTX a driver says so
    program->log += compiled.excess;
    return Compilation;
  }
  const char *other = program->isPtx ? std::getenv("CUDA_EMU_PTX") : nullptr;
  program->code = compiled.object + (other ? other : architecture) + '\0';
  return Success;
}

EXPORTED int nvrtcGetProgramLogSize(Program *program, size_t *size) {
  *size = program->log.size() + 1;
  return Success;
}

EXPORTED int nvrtcGetProgramLog(Program *program, char *log) {
  std::memcpy(log, program->log.c_str(), program->log.size() + 1);
  return Success;
}

static int sizeOf(const Program *program, bool isPtx, size_t *size) {
  *size = program->isPtx == isPtx ? program->code.size() : 0;
  return *size == 0 ? InvalidProgram : Success;
}

static int copyCode(const Program *program, bool isPtx, char *code) {
  if (program->isPtx != isPtx)
    return InvalidProgram;
  std::memcpy(code, program->code.data(), program->code.size());
  return Success;
}

EXPORTED int nvrtcGetCUBINSize(Program *program, size_t *size) { return sizeOf(program, /*isPtx=*/false, size); }
EXPORTED int nvrtcGetCUBIN(Program *program, char *code) { return copyCode(program, /*isPtx=*/false, code); }
EXPORTED int nvrtcGetPTXSize(Program *program, size_t *size) { return sizeOf(program, /*isPtx=*/true, size); }
EXPORTED int nvrtcGetPTX(Program *program, char *code) { return copyCode(program, /*isPtx=*/true, code); }
