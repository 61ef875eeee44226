// Search paths of cublasLt and NCCL: a variable, the loader's paths, a toolkit, and Python packages.
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

/// A Python environment in a separate folder; the only other places are the loader's, /usr/local/cuda and the system's.
class LibraryPlaces : public testing::Test {
protected:
  LibraryPlaces() : root(fs::path(testing::TempDir()) / "library_places") {
    for (const char *variable : {"SLUICE_CUBLASLT", "SLUICE_NCCL", "CUDA_HOME", "VIRTUAL_ENV", "CONDA_PREFIX"})
      unsetenv(variable);
    setenv("HOME", "/nowhere", 1);
  }
  ~LibraryPlaces() override { fs::remove_all(root); }

  /// A library of the packages of this Python; its path.
  std::string add(const std::string &python, const std::string &library,
                  const std::string &packages = "site-packages") const {
    fs::path path = root / "lib" / python / packages / "nvidia" / library;
    fs::create_directories(path.parent_path());
    std::ofstream(path) << "a library";
    return path;
  }

  static std::vector<std::string> placesOf(LibrarySearch search, std::vector<std::string> systems = {}) {
    search.systems = std::move(systems);
    return search.places();
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
  EXPECT_THAT(placesOf(Nccl::search()),
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
    EXPECT_THAT(placesOf(BlasLt::search()),
                ElementsAre("libcublasLt.so.13", "libcublasLt.so.12", "/usr/local/cuda/lib64/libcublasLt.so.13",
                            "/usr/local/cuda/lib64/libcublasLt.so.12", newer, older, other));
    EXPECT_THAT(placesOf(Nccl::search()), ElementsAre("libnccl.so.2", "/usr/local/cuda/lib64/libnccl.so.2", nccl));
    unsetenv(variable);
  }
}

// Debian's Python has packages, and root's packages, in dist-packages; they come last.
TEST_F(LibraryPlaces, EndWithTheSystems) {
  std::string debian = add("python3", "nccl/lib/libnccl.so.2", "dist-packages"),
              roots = add("python3.11", "nccl/lib/libnccl.so.2", "dist-packages"),
              built = add("python3.12", "nccl/lib/libnccl.so.2");
  fs::path users = root / "home/.local/lib/python3.11/site-packages/nvidia/nccl/lib/libnccl.so.2";
  fs::create_directories(users.parent_path());
  std::ofstream(users) << "a library";
  setenv("HOME", (root / "home").c_str(), 1);
  EXPECT_THAT(placesOf(Nccl::search(), {root, "/nowhere"}),
              ElementsAre("libnccl.so.2", "/usr/local/cuda/lib64/libnccl.so.2", users, debian, roots, built));
  EXPECT_THAT(Nccl::search().systems, ElementsAre("/usr/local", "/usr"));
}

TEST_F(LibraryPlaces, AreListed) {
  LibrarySearch search = {"SLUICE_NCCL", {"one.so", "two.so"}, {}, {}};
  EXPECT_EQ(search.listed(), "one.so, two.so, /usr/local/cuda/lib64/one.so, /usr/local/cuda/lib64/two.so");
}

} // namespace sluice::cuda::test
