// Where cublasLt and NCCL are looked for: what a variable names, the loader's, a toolkit's, and those of Python packages.
#include "backends/cuda/runtime/BlasLt.h"
#include "backends/cuda/runtime/Nccl.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sluice::cuda::test {

using testing::ElementsAre;

namespace fs = std::filesystem;

namespace {

/// A Python environment in a folder of its own, and no other place than the loader's and /usr/local/cuda.
class LibraryPlaces : public testing::Test {
protected:
  LibraryPlaces() : root(fs::path(testing::TempDir()) / "library_places") {
    for (const char *variable : {"SLUICE_CUBLASLT", "SLUICE_NCCL", "CUDA_HOME", "VIRTUAL_ENV", "CONDA_PREFIX"})
      unsetenv(variable);
    setenv("HOME", "/nowhere", 1);
  }
  ~LibraryPlaces() override { fs::remove_all(root); }

  /// A library of the packages of this Python; its path.
  std::string add(const std::string &python, const std::string &library) const {
    fs::path path = root / "lib" / python / "site-packages/nvidia" / library;
    fs::create_directories(path.parent_path());
    std::ofstream(path) << "a library";
    return path;
  }

  fs::path root;
};

} // namespace

TEST_F(LibraryPlaces, AreTheOneThatIsNamed) {
  setenv("SLUICE_CUBLASLT", "/mine/libcublasLt.so", 1);
  EXPECT_THAT(BlasLt::search().places(), ElementsAre("/mine/libcublasLt.so"));
}

TEST_F(LibraryPlaces, BeginWithTheLoaderAndToolkits) {
  setenv("CUDA_HOME", "/toolkit", 1);
  EXPECT_THAT(Nccl::search().places(),
              ElementsAre("libnccl.so.2", "/toolkit/lib64/libnccl.so.2", "/usr/local/cuda/lib64/libnccl.so.2"));
}

TEST_F(LibraryPlaces, EndWithPythonPackages) {
  std::string older = add("python3.11", "cublas/lib/libcublasLt.so.12"),
              newer = add("python3.11", "cu13/lib/libcublasLt.so.13"),
              nccl = add("python3.11", "nccl/lib/libnccl.so.2"),
              other = add("python3.12", "cu13/lib/libcublasLt.so.13");
  add("python3.12", "other/lib/libnccl.so.2");
  for (const char *variable : {"VIRTUAL_ENV", "CONDA_PREFIX"}) {
    setenv(variable, root.c_str(), 1);
    EXPECT_THAT(BlasLt::search().places(),
                ElementsAre("libcublasLt.so.13", "libcublasLt.so.12", "/usr/local/cuda/lib64/libcublasLt.so.13",
                            "/usr/local/cuda/lib64/libcublasLt.so.12", newer, older, other));
    EXPECT_THAT(Nccl::search().places(), ElementsAre("libnccl.so.2", "/usr/local/cuda/lib64/libnccl.so.2", nccl));
    unsetenv(variable);
  }
}

} // namespace sluice::cuda::test
