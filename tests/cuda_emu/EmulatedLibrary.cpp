#include "tests/cuda_emu/EmulatedLibrary.h"

#include "tests/cuda_emu/HostCompiler.h"
#include <dlfcn.h>
#include <gtest/gtest.h>

namespace sluice::test {

void EmulatedLibrary::compile(const std::string &text) {
  std::string log, object = compileForHost(text, Effort::Least, log);
  ASSERT_FALSE(object.empty()) << log << text;
  library = loadForHost(object, log);
  ASSERT_TRUE(library) << log;
}

void *EmulatedLibrary::find(const std::string &name) const { return dlsym(library, name.c_str()); }

} // namespace sluice::test
