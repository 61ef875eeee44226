// What the run half says where something is not there: a driver, a part of it, a device, code for it. Each case has a process of
// its own, because a driver is loaded once.
#include "runtime/base/Child.h"
#include "sluice/backend/run.h"

#include <cstdlib>
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sluice {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

using Environment = std::vector<std::pair<std::string, std::string>>;

static const sluice_backend_run &runHalf() {
  void *library = dlopen(SLUICE_CUDA_RUN_HALF, RTLD_NOW | RTLD_LOCAL);
  return *reinterpret_cast<sluice_backend_query_fn>(dlsym(library, "sluice_backend_query"))()->run;
}

/// The status of `body` in a process with this environment, and what the context then says.
static std::string whatComesOf(const Environment &environment,
                               const std::function<sluice_status(const sluice_backend_run &, sluice_run *)> &body) {
  auto child = [&](runtime::ChildReport &report) {
    setenv("SLUICE_CUDA_DRIVER", SLUICE_CUDA_EMU_DRIVER, 1);
    for (const auto &[name, value] : environment)
      setenv(name.c_str(), value.c_str(), 1);
    const sluice_backend_run &half = runHalf();
    sluice_run_options options{sizeof(options), nullptr, ""};
    sluice_run *run = nullptr;
    sluice_status status = half.open(&options, &run);
    if (status == SLUICE_OK)
      status = body(half, run);
    report.say("result", std::to_string(int(status)) + ": " + half.last_error(run));
    half.close(run);
  };
  runtime::ChildResult result = runtime::runInChild(child, std::chrono::seconds(60));
  return result.said.empty() ? result.failure : result.said.front().second;
}

static std::string whatOpenSays(const Environment &environment) {
  return whatComesOf(environment, [](const sluice_backend_run &, sluice_run *) { return SLUICE_OK; });
}

/// What loading an image on the first device says.
static std::string whatLoadSays(const std::string &image) {
  return whatComesOf({}, [&](const sluice_backend_run &half, sluice_run *run) {
    sluice_module *module = nullptr;
    return half.module_load(run, 0, image.data(), image.size(), &module);
  });
}

TEST(CudaRunHalf, OpensOnADriver) { EXPECT_EQ(whatOpenSays({}), "0: "); }

TEST(CudaRunHalf, SaysThatThereIsNoDriver) {
  EXPECT_THAT(whatOpenSays({{"SLUICE_CUDA_DRIVER", "libnowhere.so"}}),
              AllOf(StartsWith("4: there is no driver of CUDA devices here"), HasSubstr("libnowhere.so")));
}

TEST(CudaRunHalf, NamesWhatADriverLacks) {
  EXPECT_EQ(whatOpenSays({{"SLUICE_CUDA_DRIVER", "libm.so.6"}}),
            "4: libm.so.6 has no cuInit, which drivers for CUDA 12 have");
}

TEST(CudaRunHalf, RefusesOldDrivers) {
  EXPECT_THAT(whatOpenSays({{"CUDA_EMU_VERSION", "11040"}}), AllOf(StartsWith("4: "), HasSubstr("is for CUDA 11.4")));
}

TEST(CudaRunHalf, SaysThatThereIsNoDevice) {
  EXPECT_THAT(whatOpenSays({{"CUDA_EMU_DEVICES", "0"}}), AllOf(StartsWith("4: "), HasSubstr("CUDA_ERROR_NO_DEVICE")));
}

TEST(CudaRunHalf, RefusesWhatIsNoImage) {
  for (auto [image, why] :
       {std::pair("", "line 1 of a module does not end"),
        {"something\n", "line 1 of a module is not 'sluice cuda 1'"},
        {"sluice cuda 1\nfunction f 1 1 32\nend\n", "line 2 of a module is 'function f 1 1 32'"},
        {"sluice cuda 1\nkernel k -1\nend\n", "line 2 of a module is 'kernel k -1'"},
        {"sluice cuda 1\nkernel k 1 1\nend\n", "line 2 of a module is 'kernel k 1 1'"},
        {"sluice cuda 1\nkernel k 1\nfunction f 1 0\nend\n", "line 3 of a module is 'function f 1 0'"},
        {"sluice cuda 1\ncode sm_90 5\nend\nbyte", "too few bytes"},
        {"sluice cuda 1\nkernel k 1\n", "line 3 of a module does not end"}})
    EXPECT_THAT(whatLoadSays(image), AllOf(StartsWith("3: "), HasSubstr(why))) << image;
}

TEST(CudaRunHalf, NamesTheArchitecturesOfItsCode) {
  EXPECT_EQ(whatLoadSays("sluice cuda 1\nkernel k 1\ncode sm_80 1\ncode sm_100 1\ncode compute_100 1\nend\nabc"),
            "4: cuda:0, Emulated CUDA device, has architecture sm_90, and the code is for sm_80, sm_100, compute_100");
}

TEST(CudaRunHalf, SaysThatADriverRefusesCode) {
  EXPECT_THAT(whatLoadSays("sluice cuda 1\nkernel k 1\ncode sm_90 7\nend\nno code"),
              AllOf(StartsWith("70: cuda:0 refuses its code"), HasSubstr("CUDA_ERROR_INVALID_IMAGE")));
}

} // namespace sluice
