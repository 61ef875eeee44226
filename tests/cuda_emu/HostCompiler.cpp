#include "tests/cuda_emu/HostCompiler.h"
#include "tests/TemporaryFolder.h"

#include <cstdlib>
#include <dlfcn.h>
#include <fstream>

namespace sluice::test {

/// The shell's command that makes a shared object. Misaligned accesses are always looked for. CUDA_EMU_SANITIZE names a
/// sanitizer, whose runtime must have been loaded in front of everything else, by LD_PRELOAD. Without one, the compiler and
/// the linker are run one by one: most of the time of a small kernel is that in which programs start, and a compiler that
/// links starts three.
static std::string commandFor(const TemporaryFolder &folder, Effort effort) {
  std::string text = std::string(effort == Effort::Least ? " -O0" : " -O1") +
                     " -fPIC -w -std=c++17 -fwrapv -mfma -ffp-contract=off -include '" SLUICE_CUDA_EMULATOR "' '" +
                     folder / "text.cpp" + "'";
  std::string result = " '" SLUICE_CUDA_THREADS "' -o '" + folder / "text.so" + "'";
  if (const char *named = std::getenv("CUDA_EMU_SANITIZE")) {
    unsetenv("LD_PRELOAD"); // the compiler is not watched
    return "'" SLUICE_GXX "' -g -fno-sanitize-recover=all -shared -fsanitize=" + std::string(named) + text + result;
  }
  std::string object = " '" + folder / "text.o" + "'";
  return "'" SLUICE_CXX_COMPILER "' -fsanitize=alignment -fsanitize-trap=alignment -c" + text + " -o" + object +
         " && '" SLUICE_LINKER "' -shared" + object + result;
}

std::string compileForHost(const std::string &text, Effort effort, std::string &log) {
  TemporaryFolder folder;
  std::string messages = folder / "messages";
  std::ofstream(folder / "text.cpp") << text;
  std::string command = "(" + commandFor(folder, effort) + ") > '" + messages + "' 2>&1";
  bool compiled = std::system(command.c_str()) == 0;
  log = contentOf(messages);
  return compiled ? contentOf(folder / "text.so") : "";
}

void *loadForHost(const std::string &object, std::string &log) {
  TemporaryFolder folder;
  std::string path = folder / "text.so";
  std::ofstream(path, std::ios::binary) << object;
  void *library = dlopen(path.c_str(), RTLD_NOW);
  if (!library)
    log = dlerror();
  return library;
}

} // namespace sluice::test
