#include "tests/cuda_emu/HostCompiler.h"

#include <cstdlib>
#include <dlfcn.h>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace sluice::test {

namespace fs = std::filesystem;

namespace {

class TemporaryFolder {
public:
  TemporaryFolder() {
    std::string name = (fs::temp_directory_path() / "sluice-cuda-XXXXXX").string();
    path = mkdtemp(name.data());
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
  std::string file(const char *name) const { return (path / name).string(); }

private:
  fs::path path;
};

} // namespace

static std::string read(const std::string &path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

/// The compiler and what it is told of sanitizers. Misaligned accesses are always looked for. CUDA_EMU_SANITIZE names one,
/// whose runtime must have been loaded in front of everything else, by LD_PRELOAD.
static std::string sanitizingCompiler() {
  const char *named = std::getenv("CUDA_EMU_SANITIZE");
  if (!named)
    return "'" SLUICE_CXX_COMPILER "' --ld-path='" SLUICE_LLD "' -fsanitize=alignment -fsanitize-trap=alignment";
  unsetenv("LD_PRELOAD"); // the compiler is not watched
  return "'" SLUICE_GXX "' -g -fno-sanitize-recover=all -fsanitize=" + std::string(named);
}

std::string compileForHost(const std::string &text, Effort effort, std::string &log) {
  TemporaryFolder folder;
  std::string source = folder.file("text.cpp"), object = folder.file("text.so"), messages = folder.file("messages");
  std::ofstream(source) << text;
  std::string command = sanitizingCompiler() +
                        " -shared -fPIC -w -std=c++17 -fwrapv -mfma -ffp-contract=off "
                        "-include '" SLUICE_CUDA_EMULATOR "' '" +
                        source + (effort == Effort::Least ? "' -O0 '" : "' -O1 '") + SLUICE_CUDA_THREADS "' -o '" +
                        object + "' > '" + messages + "' 2>&1";
  bool compiled = std::system(command.c_str()) == 0;
  log = read(messages);
  return compiled ? read(object) : "";
}

void *loadForHost(const std::string &object, std::string &log) {
  TemporaryFolder folder;
  std::string path = folder.file("text.so");
  std::ofstream(path, std::ios::binary) << object;
  void *library = dlopen(path.c_str(), RTLD_NOW);
  if (!library)
    log = dlerror();
  return library;
}

} // namespace sluice::test
