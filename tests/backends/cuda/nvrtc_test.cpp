// NVRTC found, absent and refusing.
#include "tests/cuda_emu/Doubles.h"
#include "tests/cuda_emu/PinnedNvrtc.h"
#include <cstdlib>
#include <dlfcn.h>
#include <filesystem>
#include <fmt/format.h>
#include <gtest/gtest.h>

using sluice::cuda::DeviceCode;
using sluice::cuda::Nvrtc;

namespace {

constexpr const char *kArchitecture = "sm_90";

class NvrtcTest : public testing::Test {
protected:
  void SetUp() override {
    llvm::Expected<Nvrtc> found = sluice::test::loadPinnedNvrtc();
    if (!found)
      GTEST_SKIP() << llvm::toString(found.takeError());
    nvrtc = *found;
  }

  std::string errorOf(const std::string &text, const std::string &architecture) const {
    llvm::Expected<DeviceCode> code = nvrtc->compile(text, architecture);
    return code ? "" : llvm::toString(code.takeError());
  }

  std::optional<Nvrtc> nvrtc;
};

} // namespace

TEST(NvrtcSearch, SaysWhereItLooked) {
  ASSERT_EQ(setenv("SLUICE_NVRTC", "/nowhere/libnvrtc.so", 1), 0);
  llvm::Expected<Nvrtc> found = Nvrtc::load();
  ASSERT_EQ(unsetenv("SLUICE_NVRTC"), 0);
  ASSERT_FALSE(bool(found));
  std::string error = llvm::toString(found.takeError());
  EXPECT_NE(error.find("looked for /nowhere/libnvrtc.so)"), std::string::npos) << error;
}

TEST(NvrtcSearch, LooksForWhatToolkitsAndPackagesBring) {
  sluice::cuda::LibrarySearch search = Nvrtc::search();
  EXPECT_STREQ(search.variable, "SLUICE_NVRTC");
  EXPECT_EQ(search.files, (std::vector<std::string>{"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"}));
  EXPECT_EQ(search.packages, (std::vector<std::string>{"cu13", "cuda_nvrtc"}));
}

// NVRTC looks for them by a name without a folder, when it first compiles.
TEST_F(NvrtcTest, HasItsBuiltinsLoaded) {
  const char *file = std::getenv("SLUICE_NVRTC");
  if (!file)
    GTEST_SKIP() << "SLUICE_NVRTC does not name the library";
  std::filesystem::path folder = std::filesystem::path(file).parent_path();
  int builtins = 0;
  for (const auto &file : std::filesystem::directory_iterator(folder))
    if (file.path().filename().string().starts_with("libnvrtc-builtins.so")) {
      EXPECT_NE(dlopen(file.path().c_str(), RTLD_NOW | RTLD_NOLOAD), nullptr) << file.path();
      ++builtins;
    }
  EXPECT_GT(builtins, 0) << folder;
}

TEST_F(NvrtcTest, TellsWhatKernelsNeed) {
  llvm::Expected<DeviceCode> code = nvrtc->compile(R"(
extern "C" __global__ void plain(float *x) { x[threadIdx.x] += 1; }
extern "C" __global__ void sharing(float *x) {
  __shared__ float held[64];
  held[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  x[threadIdx.x] = held[63 - threadIdx.x];
}
extern "C" __global__ void indexing(float *x, int i) {
  float held[100];
  for (int k = 0; k < 100; ++k)
    held[k] = x[k * i];
  x[i] = held[i];
})",
                                                   kArchitecture);
  ASSERT_TRUE(bool(code)) << llvm::toString(code.takeError());
  EXPECT_EQ(code->bytes.substr(1, 3), "ELF");
  ASSERT_EQ(code->kernels.size(), 3u) << code->log;
  for (const sluice::cuda::KernelResources &kernel : code->kernels) {
    EXPECT_GT(kernel.registers, 0) << kernel.name;
    EXPECT_EQ(kernel.shared, kernel.name == "sharing" ? 256 : 0) << code->log;
    EXPECT_EQ(kernel.stack > 0, kernel.name == "indexing") << code->log;
  }
}

/// A kernel with an array of so many numbers, and one in a function that it calls.
static std::string sharing(int own, int called) {
  return fmt::format(R"(
template <int count> __device__ float turned(float x) {{
  __shared__ float held[count], other[1];
  held[threadIdx.x] = x;
  other[0] = x;
  __syncthreads();
  return held[count - 1 - threadIdx.x] + other[0];
}}
extern "C" __global__ void calling(float *x) {{ x[threadIdx.x] = turned<{1}>(x[threadIdx.x]); }}
extern "C" __global__ void sharing(float *x) {{
  __shared__ float first[{0} - 1000];
  __shared__ float second[1000];
  first[threadIdx.x] = second[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  x[threadIdx.x] = first[threadIdx.x + 1] + second[999 - threadIdx.x];
}})",
                     own, called);
}

/// More than 48 KB of them, by what compiles the architectures.
static void expectLimitOfSharedBytes(const Nvrtc &nvrtc) {
  constexpr int kMost = 48 << 8; // numbers
  auto errorOf = [&](int own, int called, const char *architecture) {
    llvm::Expected<DeviceCode> code = nvrtc.compile(sharing(own, called), architecture);
    return code ? "" : llvm::toString(code.takeError());
  };
  EXPECT_EQ(errorOf(kMost, kMost - 1, kArchitecture), "");
  for (auto [own, called] : {std::pair(kMost + 1, 1000), std::pair(2000, kMost)}) {
    std::string error = errorOf(own, called, kArchitecture);
    EXPECT_NE(error.find("NVRTC_ERROR_COMPILATION"), std::string::npos) << error;
    EXPECT_NE(error.find("49156 bytes smem"), std::string::npos) << error;
    EXPECT_EQ(errorOf(own, called, "compute_80"), "");
  }
}

TEST_F(NvrtcTest, LimitsSharedVariables) { expectLimitOfSharedBytes(*nvrtc); }

TEST(NvrtcDouble, LimitsSharedVariablesToo) {
  sluice::test::useCudaDoubles(1);
  llvm::Expected<Nvrtc> found = Nvrtc::load();
  ASSERT_EQ(unsetenv("SLUICE_NVRTC"), 0);
  ASSERT_TRUE(bool(found)) << llvm::toString(found.takeError());
  expectLimitOfSharedBytes(*found);
}

// As the driver's double reads it: code for another device than was asked for shows there, too.
TEST(NvrtcDouble, SaysWhatItsCodeIsFor) {
  sluice::test::useCudaDoubles(1);
  llvm::Expected<Nvrtc> found = Nvrtc::load();
  ASSERT_EQ(unsetenv("SLUICE_NVRTC"), 0);
  ASSERT_TRUE(bool(found)) << llvm::toString(found.takeError());
  for (std::string architecture : {"sm_90", "compute_80", "compute_100"}) {
    llvm::Expected<DeviceCode> code =
        found->compile("extern \"C\" __global__ void f(float *x) { *x = 1; }", architecture);
    ASSERT_TRUE(bool(code)) << llvm::toString(code.takeError());
    EXPECT_TRUE(llvm::StringRef(code->bytes).ends_with(architecture + '\0')) << architecture;
  }
}

TEST_F(NvrtcTest, WritesPtxForWhatIsNewer) {
  ASSERT_TRUE(nvrtc->has("compute_80"));
  EXPECT_FALSE(nvrtc->has("compute_42"));
  llvm::Expected<DeviceCode> code =
      nvrtc->compile("extern \"C\" __global__ void f(float *x) { *x = 1; }", "compute_80");
  ASSERT_TRUE(bool(code)) << llvm::toString(code.takeError());
  EXPECT_NE(code->bytes.find(".target sm_80"), std::string::npos);
  EXPECT_EQ(code->bytes.back(), '\0'); // as drivers read it
}

TEST_F(NvrtcTest, NamesTheLineOfAnError) {
  std::string error = errorOf("\n\n__global__ void f() { nothing(); }", kArchitecture);
  EXPECT_NE(error.find("kernels.cu(3)"), std::string::npos) << error;
  EXPECT_NE(error.find("nothing"), std::string::npos) << error;
}

TEST_F(NvrtcTest, RefusesArchitecturesThatItDoesNotKnow) {
  std::string error = errorOf("__global__ void f() {}", "sm_1");
  EXPECT_NE(error.find("gpu-architecture"), std::string::npos) << error;
}
