#include "backends/cuda/compiler/nvrtc/Nvrtc.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include <dlfcn.h>
#include <fmt/format.h>
#include <regex>

namespace sluice::cuda {

using llvm::StringRef;

// The part of NVRTC's interface that is used, unchanged since CUDA 11.2; declared here, so that a build requires no
// toolkit.
struct Nvrtc::Functions {
  using Program = struct ProgramTag *;
  using Status = int; // 0: success

  Status (*version)(int *major, int *minor);
  Status (*architectureCount)(int *count);
  Status (*architectures)(int *numbers); // 90 for sm_90
  const char *(*errorString)(Status);
  Status (*create)(Program *, const char *text, const char *name, int headers, const char *const *headerTexts,
                   const char *const *headerNames);
  Status (*destroy)(Program *);
  Status (*compile)(Program, int options, const char *const *texts);
  Status (*logSize)(Program, size_t *);
  Status (*log)(Program, char *);
  Status (*cubinSize)(Program, size_t *);
  Status (*cubin)(Program, char *);
  Status (*ptxSize)(Program, size_t *);
  Status (*ptx)(Program, char *);

  bool find(void *library) {
    auto one = [&](auto &function, const char *name) {
      function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
      return function != nullptr;
    };
    return one(version, "nvrtcVersion") && one(architectureCount, "nvrtcGetNumSupportedArchs") &&
           one(architectures, "nvrtcGetSupportedArchs") && one(errorString, "nvrtcGetErrorString") &&
           one(create, "nvrtcCreateProgram") && one(destroy, "nvrtcDestroyProgram") &&
           one(compile, "nvrtcCompileProgram") && one(logSize, "nvrtcGetProgramLogSize") &&
           one(log, "nvrtcGetProgramLog") && one(cubinSize, "nvrtcGetCUBINSize") && one(cubin, "nvrtcGetCUBIN") &&
           one(ptxSize, "nvrtcGetPTXSize") && one(ptx, "nvrtcGetPTX");
  }
};

static llvm::Error makeError(const std::string &text) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(), "%s", text.c_str());
}

/// NVRTC loads its builtins by name alone, which the loader may not find. They are therefore loaded first, with
/// any version in their name.
static void *openLibrary(const std::string &path) {
  StringRef folder = llvm::sys::path::parent_path(path);
  std::error_code error;
  for (llvm::sys::fs::directory_iterator file(folder, error), end; !folder.empty() && !error && file != end;
       file.increment(error))
    if (llvm::sys::path::filename(file->path()).starts_with("libnvrtc-builtins.so"))
      dlopen(file->path().c_str(), RTLD_NOW | RTLD_GLOBAL);
  return dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
}

LibrarySearch Nvrtc::search() {
  return {"SLUICE_NVRTC", {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"}, {"cu13", "cuda_nvrtc"}};
}

llvm::Expected<Nvrtc> Nvrtc::load() {
  LibrarySearch places = search();
  for (const std::string &path : places.places()) {
    void *library = openLibrary(path);
    if (!library)
      continue;
    static Functions functions; // of a library that is never unloaded
    if (!functions.find(library))
      return makeError(path + " lacks functions of NVRTC 11.2 or later");
    Nvrtc found(&functions);
    int major = 0, minor = 0;
    functions.version(&major, &minor);
    found.version_ = fmt::format("{}.{}", major, minor);
    return found;
  }
  return makeError(
      "NVRTC, which compiles CUDA kernels, was not found (looked for " + places.listed() +
      "): install the CUDA toolkit 12 or 13, or the Python package nvidia-cuda-nvrtc, or name the library in "
      "SLUICE_NVRTC");
}

std::vector<std::string> Nvrtc::architectures() const {
  int count = 0;
  functions->architectureCount(&count);
  std::vector<int> numbers(size_t(count), 0);
  functions->architectures(numbers.data());
  std::vector<std::string> names;
  for (int number : numbers)
    names.push_back(fmt::format("sm_{}", number));
  return names;
}

static constexpr const char *kPtx = "compute_"; // prefix of architectures whose code is PTX

bool Nvrtc::has(const std::string &architecture) const {
  StringRef number = architecture;
  std::string machine = number.consume_front(kPtx) ? "sm_" + number.str() : architecture;
  return llvm::is_contained(architectures(), machine);
}

/// Parses the assembler's report of each kernel: a line with its name, its stack and spills, its registers and memory.
static std::vector<KernelResources> readResources(const std::string &log) {
  static const std::regex entry("Compiling entry function '([^']+)'"),
      spills("(\\d+) bytes stack frame, (\\d+) bytes spill stores, (\\d+) bytes spill loads"),
      registers("Used (\\d+) registers"), shared("(\\d+) bytes smem");
  std::vector<KernelResources> kernels;
  llvm::SmallVector<StringRef> lines;
  StringRef(log).split(lines, '\n');
  for (StringRef text : lines) {
    std::string line = text.str();
    std::smatch match;
    if (std::regex_search(line, match, entry))
      kernels.push_back({match[1]});
    if (kernels.empty())
      continue;
    KernelResources &kernel = kernels.back();
    if (std::regex_search(line, match, spills)) {
      kernel.stack = std::stoi(match[1]);
      kernel.spillStores = std::stoi(match[2]);
      kernel.spillLoads = std::stoi(match[3]);
    }
    if (std::regex_search(line, match, registers))
      kernel.registers = std::stoi(match[1]);
    if (std::regex_search(line, match, shared))
      kernel.shared = std::stoi(match[1]);
  }
  return kernels;
}

llvm::Expected<DeviceCode> Nvrtc::compile(const std::string &text, const std::string &architecture,
                                          llvm::ArrayRef<const char *> options, bool wantsPtx) const {
  Functions::Program program = nullptr;
  auto check = [&](Functions::Status status, const std::string &what) {
    return status == 0 ? llvm::Error::success()
                       : makeError(fmt::format("NVRTC {}: {}", functions->errorString(status), what));
  };
  if (llvm::Error error = check(functions->create(&program, text.c_str(), "kernels.cu", 0, nullptr, nullptr), "create"))
    return error;
  auto destroy = llvm::make_scope_exit([&] { functions->destroy(&program); });
  std::string target = "--gpu-architecture=" + architecture;
  llvm::SmallVector<const char *> all = {target.c_str(), "--std=c++17", "--fmad=false", "--ptxas-options=-v"};
  llvm::append_range(all, options);
  Functions::Status status = functions->compile(program, int(all.size()), all.data());
  DeviceCode code;
  size_t size = 0;
  if (functions->logSize(program, &size) == 0 && size > 1) {
    code.log.resize(size);
    functions->log(program, code.log.data());
    code.log.pop_back(); // the terminator
  }
  if (llvm::Error error = check(status, code.log))
    return error;
  bool isPtx = StringRef(architecture).starts_with(kPtx);
  if (llvm::Error error =
          check((isPtx ? functions->ptxSize : functions->cubinSize)(program, &size), "there is no code"))
    return error;
  code.bytes.resize(size);
  if (llvm::Error error =
          check((isPtx ? functions->ptx : functions->cubin)(program, code.bytes.data()), "there is no code"))
    return error;
  code.kernels = readResources(code.log);
  if (wantsPtx && functions->ptxSize(program, &size) == 0 && size > 1) {
    code.ptx.resize(size);
    functions->ptx(program, code.ptx.data());
    code.ptx.pop_back(); // the terminator
  }
  return code;
}

} // namespace sluice::cuda
