#include "tests/cuda_emu/EmulatedLibrary.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Program.h"
#include <dlfcn.h>
#include <fstream>
#include <gtest/gtest.h>

namespace sluice::test {

using namespace llvm;

void EmulatedLibrary::compile(const std::string &text) {
  SmallString<128> folder;
  ASSERT_FALSE(llvm::sys::fs::createUniqueDirectory("sluice-loops", folder));
  std::string source = (folder + "/text.cpp").str(), object = (folder + "/text.so").str();
  std::ofstream(source) << text;
  SmallVector<StringRef> arguments = {SLUICE_CXX_COMPILER,
                                      "-shared",
                                      "-fPIC",
                                      "-O0",
                                      "-w",
                                      "-std=c++17",
                                      "-fwrapv",
                                      "-ffp-contract=off",
                                      "-fsanitize=alignment",
                                      "-fsanitize-trap=alignment",
                                      "-include",
                                      SLUICE_CUDA_EMULATOR,
                                      source,
                                      "-o",
                                      object};
  ASSERT_EQ(llvm::sys::ExecuteAndWait(SLUICE_CXX_COMPILER, arguments), 0) << source;
  library = dlopen(object.c_str(), RTLD_NOW);
  ASSERT_TRUE(library) << dlerror();
  llvm::sys::fs::remove_directories(folder);
}

void *EmulatedLibrary::find(const std::string &name) const { return dlsym(library, name.c_str()); }

} // namespace sluice::test
