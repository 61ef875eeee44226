// Errors of the run half if something is missing: a driver, a part of it, a device, or code for it. Each case has a
// separate process, because a driver is loaded once.
#include "runtime/base/Child.h"
#include "sluice/backend/run.h"
#include "tests/cuda_emu/Doubles.h"
#include "tests/cuda_emu/HostCompiler.h"

#include <chrono>
#include <cstdlib>
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <thread>
#include <utility>

namespace sluice {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

using Environment = std::vector<std::pair<std::string, std::string>>;

static const sluice_backend_run &runHalf() {
  void *library = dlopen(SLUICE_CUDA_RUN_HALF, RTLD_NOW | RTLD_LOCAL);
  return *reinterpret_cast<sluice_backend_query_fn>(dlsym(library, "sluice_backend_query"))()->run;
}

/// The status of `body` in a process with this environment, and the context's message.
static std::string whatComesOf(const Environment &environment,
                               const std::function<sluice_status(const sluice_backend_run &, sluice_run *)> &body,
                               const char *settings = "") {
  auto child = [&](runtime::ChildReport &report) {
    setenv("SLUICE_CUDA_DRIVER", SLUICE_CUDA_EMU_DRIVER, 1);
    for (const auto &[name, value] : environment)
      setenv(name.c_str(), value.c_str(), 1);
    const sluice_backend_run &half = runHalf();
    sluice_run_options options{sizeof(options), nullptr, settings, nullptr};
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

/// The message of loading an image on the first device.
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

/// The message of a call that waits for work that ends with this status of the driver.
static std::string whatAFaultSays(int status) {
  return whatComesOf({{"CUDA_EMU_FAULT", std::to_string(status)}}, [](const sluice_backend_run &half, sluice_run *run) {
    void *address = nullptr;
    return half.allocate(run, 0, sizeof(int), &address);
  });
}

TEST(CudaRunHalf, SomeFaultsLoseTheDevice) {
  for (int status : {214, 220, 226, 700, 702, 710, 714, 715, 716, 717, 718, 719, 721})
    EXPECT_THAT(whatAFaultSays(status), StartsWith("5: cuda:0: ")) << status;
  for (int status : {213, 215, 217, 701, 703, 704, 705, 708, 709, 711, 712, 713, 720})
    EXPECT_THAT(whatAFaultSays(status), StartsWith("70: cuda:0: ")) << status;
  EXPECT_EQ(whatAFaultSays(214), "5: cuda:0: CUDA_ERROR_ECC_UNCORRECTABLE");
  EXPECT_EQ(whatAFaultSays(705), "70: cuda:0: CUDA_ERROR_PEER_ACCESS_NOT_ENABLED");
}

/// How a number gets from one device to another, by a queue of either: whether the link is said to be direct, and the driver's
/// copies that went directly, and over the host.
static std::string howANumberGetsAcross(const Environment &environment) {
  return whatComesOf(environment, [](const sluice_backend_run &half, sluice_run *run) {
    sluice_peer_link link{sizeof link, 0, 0, 0};
    if (sluice_status status = half.peer_link(run, 0, 1, &link); status != SLUICE_OK)
      return status;
    void *addresses[2] = {};
    for (int32_t device : {0, 1})
      half.allocate(run, device, sizeof(int), &addresses[device]);
    for (int32_t device : {0, 1}) {
      sluice_queue *queue = nullptr;
      half.queue_create(run, device, SLUICE_QUEUE_COPY, "copies", &queue);
      sluice_copy across{sizeof across, 0, 1, addresses[0], addresses[1], sizeof(int), "across"};
      if (sluice_status status = half.copy(queue, &across); status != SLUICE_OK)
        return status;
      half.synchronize_queue(queue);
    }
    // As a status, which is all that comes back.
    return sluice_status(link.direct * 100 + test::cudaCopies("direct") * 10 + test::cudaCopies("staged"));
  });
}

TEST(CudaRunHalf, CopiesGoDirectlyBetweenPeers) {
  EXPECT_EQ(howANumberGetsAcross({}), "120: ");
  EXPECT_EQ(howANumberGetsAcross({{"CUDA_EMU_PEERS", "none"}}), "2: ");
}

/// An image of one product without code, whose result's columns, and matrices, lie `apart`, with extents of p and the batch.
static std::string product(const std::string &type, const std::string &apart, const std::string &behind,
                           const std::string &p = "1 0", const std::string &batch = "1 0") {
  return "sluice cuda 8\nkernel k 4\nproduct " + type + " " + p + " 1 0 1 0 " + batch + " 0 4 0 0 1 1 0 0 2 " + apart +
         " 0 " + behind + "\nend\n";
}

TEST(CudaRunHalf, RefusesWhatIsNoImage) {
  for (
      auto [image, why] : std::vector<std::pair<std::string, std::string>>{
          {"", "line 1 of a module does not end"},
          {"something\n", "line 1 of a module is not 'sluice cuda 8'"},
          {"sluice cuda 8\nfunction f 1 1 32 0 0\nend\n", "line 2 of a module is 'function f 1 1 32 0 0'"},
          {"sluice cuda 8\nkernel k -1\nend\n", "line 2 of a module is 'kernel k -1'"},
          {"sluice cuda 8\nkernel k 1 1\nend\n", "line 2 of a module is 'kernel k 1 1'"},
          {"sluice cuda 8\nkernel k 1\nfunction f 1 0\nend\n", "line 3 of a module is 'function f 1 0'"},
          {"sluice cuda 8\nkernel k 1\nfunction f 1 0 32\nend\n", "line 3 of a module is 'function f 1 0 32'"},
          {"sluice cuda 8\nkernel k 1\nfunction f 1 0 32 0\nend\n", "line 3 of a module is 'function f 1 0 32 0'"},
          {"sluice cuda 8\nkernel k 1\nfunction f 1 0 32 -1 0\nend\n",
           "line 3 of a module is 'function f 1 0 32 -1 0'"},
          {"sluice cuda 8\nkernel k 1\nfunction f 1 0 32 0 4\nend\n", "line 3 of a module is 'function f 1 0 32 0 4'"},
          {"sluice cuda 8\nkernel k 1\nfunction f 4294967296 1 32 0 0\nend\n", "function f 4294967296 1 32 0 0'"},
          {"sluice cuda 8\nkernel k 1\nfunction f 1 9223372036854775807 32 0 0\nend\n",
           "function f 1 9223372036854775807 "},
          {"sluice cuda 8\nkernel k 1\nfunction f 1 0 4294967328 0 0\nend\n", "function f 1 0 4294967328 0 0'"},
          {"sluice cuda 8\nkernel k 1\nfunction f 1 0 32 4294967296 0\nend\n", "function f 1 0 32 4294967296 0'"},
          {"sluice cuda 8\nkernel k 1\nfunction f 99999999999999999999 0 32 0 0\nend\n",
           "function f 99999999999999999999 "},
          {"sluice cuda 8\nkernel k 4\nproduct f32 4611686018427387904 1 1 0 1 0 1 0 0 9223372036854775807 0 0 1 1 0 "
           "0 2 9223372036854775807 0 0 -1 none -1 -1 0 0 4 0\nend\n",
           "line 3 of a module is 'product f32 4611686018427387904 1"},
          {"sluice cuda 8\nkernel k 1\ncode sm_90 9223372036854775807\nend\nbyte", "too few bytes"},
          {"sluice cuda 8\nkernel k 4\nproduct f8 1 0 1 0 1 0 1 0 0 1 0 0 1 1 0 0 2 1 0 0 -1 none -1 -1 0 0 4 0\nend\n",
           "line 3 of a module"},
          {"sluice cuda 8\nkernel k 4\nproduct f32 1 0 1 0 1 0 1 0 0 1 0 0 1 1 0 0 2 1 0 0 3 none -1 -1 0 0 4 0\nend\n",
           "line 3 of a module"},
          {"sluice cuda 8\nkernel k 4\nproduct f32 2 0 1 0 1 0 1 0 0 2 0 0 1 1 0 0 2 1 0 0 -1 none -1 -1 0 0 4 "
           "0\nend\n",
           "line 3 of a module"}, // columns of two lie one apart
          {"sluice cuda 8\nkernel k 4\nproduct f32 1 0 1 1 1 0 1 0 0 1 0 0 1 3 0 1 2 1 0 0 -1 none -1 -1 0 0 4 "
           "0\nend\n",
           "line 3 of a module"}, // the capacity's four three apart
          {"sluice cuda 8\nkernel k 4\nproduct f32 1 0 1 0 1 0 536870912 1 0 1 0 0 1 1 0 0 2 1 0 0 -1 none -1 -1 0 0 4 "
           "0\nend\n",
           "line 3 of a module"}, // more matrices than cublasLt counts
          {"sluice cuda 8\nkernel k 4\nproduct f32 1 0 1 0 1 0 1 0 0 1 0 0 1 1 0 0 2 1 0 0 -1 none -1 -1 0 0 4 "
           "33554433\nend\n",
           "line 3 of a module"}, // more workspace than is ever asked for
          {"sluice cuda 8\nkernel k 4\nproduct f32 1 0 1 0 1 0 1 0 0 1 0 0 1 1 0 0 2 1 0 0 -1 tanh -1 -1 0 0 4 "
           "0\nend\n",
           "line 3 of a module"},
          {"sluice cuda 8\nkernel k 4\nproduct f32 1 0 1 0 1 0 1 0 0 1 0 0 1 1 0 0 2 1 0 0 -1 none -1 -1 0 2 4 "
           "0\nend\n",
           "line 3 of a module"},
          {product("f32", "8 8", "-1 none 2 -1 0 0 4 0"), "line 3 of a module"}, // an input that nothing reads
          {product("f32", "8 8", "-1 gelu_gradient -1 -1 0 0 4 0"), "line 3 of a module"},
          {product("f32", "8 8", "-1 gelu_gradient 3 -1 0 0 4 0"), "line 3 of a module"}, // the workspace
          {product("f32", "8 8", "1 gelu_gradient 2 -1 0 0 4 0"), "line 3 of a module"},
          {product("f64", "8 8", "-1 gelu_gradient 2 -1 0 0 4 0"), "line 3 of a module"},
          {product("f32", "12 8", "-1 gelu_gradient 2 -1 0 0 4 0"), "line 3 of a module"},
          {product("f32", "8 12", "-1 gelu_gradient 2 -1 0 0 4 0"), "line 3 of a module"},
          {product("f32", "8 8", "-1 none -1 -2 0 0 4 0"), "line 3 of a module"},
          {product("f32", "8 8", "-1 none -1 3 0 0 4 0"), "line 3 of a module"}, // the workspace
          {product("f32", "8 8", "-1 none -1 2 2 0 4 0"), "line 3 of a module"},
          {product("f32", "8 8", "-1 none -1 -1 1 0 4 0"), "line 3 of a module"}, // no sums of the second operand
          {product("f32", "8 8", "1 none -1 2 0 0 4 0"), "line 3 of a module"},
          {product("f32", "8 8", "-1 relu -1 2 0 0 4 0"), "line 3 of a module"},
          {product("f64", "8 8", "-1 none -1 2 0 0 4 0"), "line 3 of a module"},
          {product("f32", "8 8", "-1 none -1 2 0 0 4 0", "1 0", "2 0"), "line 3 of a module"}, // a batch
          {product("f32", "8 8", "-1 none -1 2 0 0 4 0", "1 1", "1 0"), "line 3 of a module"}, // of each row
          {"sluice cuda 8\ncode sm_90 5\nend\nbyte", "too few bytes"},
          {"sluice cuda 8\nkernel k 1\n", "line 3 of a module does not end"}})
    EXPECT_THAT(whatLoadSays(image), AllOf(StartsWith("3: "), HasSubstr(why))) << image;
  for (const char *sound : {"-1 gelu_gradient 2 -1 0 0 4 0", "-1 none -1 2 0 0 4 0", "-1 none -1 2 1 0 4 0"})
    EXPECT_THAT(whatLoadSays(product("f32", "8 8", sound)), StartsWith("4: ")) << "it lacks code alone";
}

TEST(CudaRunHalf, NamesTheArchitecturesOfItsCode) {
  EXPECT_EQ(whatLoadSays("sluice cuda 8\nkernel k 1\ncode sm_80 1\ncode sm_100 1\ncode compute_100 1\nend\nabc"),
            "4: cuda:0, Emulated CUDA device, has architecture sm_90, and the code is for sm_80, sm_100, compute_100");
}

TEST(CudaRunHalf, SaysThatADriverRefusesCode) {
  EXPECT_THAT(whatLoadSays("sluice cuda 8\nkernel k 1\ncode sm_90 7\nend\nno code"),
              AllOf(StartsWith("70: cuda:0 refuses its code"), HasSubstr("CUDA_ERROR_INVALID_IMAGE")));
}

TEST(CudaRunHalf, TellsTheArchitectureAndTheAlignment) {
  EXPECT_EQ(whatComesOf({},
                        [](const sluice_backend_run &half, sluice_run *run) {
                          sluice_device_info info{};
                          info.struct_size = sizeof info;
                          sluice_status status = half.device_info(run, 0, &info);
                          bool isRight = info.alignment == 256 && info.compute_major == 9 && info.compute_minor == 0;
                          return status != SLUICE_OK || isRight ? status : SLUICE_INVALID;
                        }),
            "0: ");
}

/// An image with a kernel `one` that takes `arguments`, with blocks of so many threads, and given so many bytes of shared memory.
static std::string imageOf(const std::string &head, const std::string &arguments, const std::string &body, int threads,
                           int sharedBytes = 0) {
  std::string text = head + "extern \"C\" __global__ void one(" + arguments + ") {" + body + "}\n" + R"(
extern "C" void cuda_emu_launch_one(cuda_emu::Dim grid, cuda_emu::Dim block, void *const *arguments) {
  cuda_emu::call(one, grid, block, arguments);
}
extern "C" const unsigned *cuda_emu_sizes_one() { return cuda_emu::argumentSizes(one); }
)";
  std::string log, object = test::compileForHost(text, test::Effort::Least, log);
  if (object.empty())
    return log;
  std::string code = object + "sm_90" + '\0';
  return "sluice cuda 8\nkernel one 1\nfunction one 1 0 " + std::to_string(threads) + " " +
         std::to_string(sharedBytes) + " 0\ncode sm_90 " + std::to_string(code.size()) + "\nend\n" + code;
}

/// One whose blocks need 80 KB of shared memory, and go so many bytes beyond that.
static std::string imageWithSharedBytes(int bytes, int beyond = 0) {
  std::string last = std::to_string((80 << 10) - 1 + beyond) + " - threadIdx.x";
  return imageOf("", "int *to, long long, long long",
                 "SHARED_BYTES(held, 80 << 10); held[" + last + "] = threadIdx.x; to[threadIdx.x] = held[" + last +
                     "];",
                 128, bytes);
}

/// What launching its kernel says, which gives the numbers of its threads.
static std::string whatLaunchSays(const std::string &image) {
  return whatComesOf({}, [&](const sluice_backend_run &half, sluice_run *run) {
    constexpr size_t kThreads = 1024;
    sluice_module *module = nullptr;
    sluice_queue *queue = nullptr;
    void *address = nullptr;
    if (sluice_status status = half.module_load(run, 0, image.data(), image.size(), &module); status != SLUICE_OK)
      return status;
    half.queue_create(run, 0, SLUICE_QUEUE_COMPUTE, "computes", &queue);
    half.allocate(run, 0, kThreads * sizeof(int), &address);
    sluice_call call{sizeof call, 1, 0, 1};
    sluice_launch launch{};
    launch.struct_size = sizeof launch;
    launch.call = &call, launch.addresses = &address, launch.num_buffers = 1;
    launch.module = module, launch.function = launch.name = "one";
    if (sluice_status status = half.launch(queue, &launch); status != SLUICE_OK)
      return status;
    int found[kThreads] = {};
    sluice_copy down{sizeof down, 0, SLUICE_HOST, address, found, sizeof found, "down"};
    half.copy(queue, &down);
    half.synchronize_queue(queue);
    return found[31] == 31 ? SLUICE_OK : SLUICE_INVALID;
  });
}

TEST(CudaRunHalf, GivesFunctionsTheirSharedMemory) {
  EXPECT_THAT(whatLoadSays(imageWithSharedBytes(228 << 10)),
              AllOf(StartsWith("70: cuda:0: shared memory of one"), HasSubstr("CUDA_ERROR_INVALID_VALUE")));
  EXPECT_EQ(whatLaunchSays(imageWithSharedBytes(80 << 10)), "0: ");
  EXPECT_EQ(whatLaunchSays(imageWithSharedBytes(81 << 10, /*beyond=*/1 << 10)), "0: ");
}

// As on a device: what a launch gives has an end, whatever the kernel says that it needs.
TEST(CudaRunHalf, KernelsHaveNoMoreSharedMemoryThanTheyAreGiven) {
  EXPECT_THAT(whatLaunchSays(imageWithSharedBytes((80 << 10) - 1)), HasSubstr("Aborted"));
  EXPECT_THAT(whatLaunchSays(imageWithSharedBytes(80 << 10, /*beyond=*/1)), HasSubstr("Segmentation fault"));
}

TEST(CudaRunHalf, BlocksHaveNoMoreThreadsThanTheirFunctionAllows) {
  auto imageWith = [](int threads) {
    return imageOf("extern \"C\" unsigned cuda_emu_bounds_one() { return 256; }\n", "int *to, long long, long long",
                   "to[threadIdx.x] = threadIdx.x;", threads);
  };
  EXPECT_EQ(whatLaunchSays(imageWith(256)), "0: ");
  EXPECT_EQ(whatLaunchSays(imageWith(512)), "70: cuda:0: kernel one: CUDA_ERROR_INVALID_VALUE");
}

TEST(CudaRunHalf, KernelsTakeFewBytesOfArguments) {
  std::string head = "struct Many { char at[4096 - 8]; };\n";
  auto isRefused = [&](const std::string &arguments) {
    return imageOf(head, arguments, "", 32).find("too many bytes of arguments") != std::string::npos;
  };
  EXPECT_FALSE(isRefused("Many, int *"));
  EXPECT_TRUE(isRefused("Many, int *, char"));
}

/// The two numbers of a kernel's result: a library's product of 2 and 3, or what a function makes in its place, or one more
/// than the product where its activation is left to a function; and what a function makes that follows any of these.
/// `activation` has its name and its input, which is buffer 2, the result, or buffer 3, a zero; or sums of the first operand
/// are left there, of which a function makes 4, and which are then the second number.
static std::string whatAProductLeaves(const char *settings, const std::string &activation = "none -1 -1 0",
                                      const std::string &behaviour = "") {
  static const std::string kText = R"(
extern "C" __global__ void own(float *, float *, float *to, float *, float *, long long, long long) { to[0] = 9; }
extern "C" __global__ void more(float *, float *, float *to, float *, float *, long long, long long) {
  if (threadIdx.x == 0)
    to[0] += 1;
}
extern "C" __global__ void behind(float *, float *, float *to, float *, float *, long long, long long) { to[1] = 5; }
extern "C" __global__ void sums(float *, float *, float *, float *to, float *, long long, long long) { to[0] = 4; }
#define LAUNCHED(name)                                                                                       \
  extern "C" void cuda_emu_launch_##name(cuda_emu::Dim grid, cuda_emu::Dim block, void *const *arguments) {  \
    cuda_emu::call(name, grid, block, arguments);                                                            \
  }                                                                                                          \
  extern "C" const unsigned *cuda_emu_sizes_##name() { return cuda_emu::argumentSizes(name); }
LAUNCHED(own)
LAUNCHED(more)
LAUNCHED(behind)
LAUNCHED(sums)
)";
  bool hasSums = activation == "none -1 3 0";
  std::string log, code = test::compileForHost(kText, test::Effort::Least, log) + "sm_90" + '\0';
  std::string image = "sluice cuda 8\nkernel k 5\nproduct f32 1 0 1 0 1 0 1 0 0 1 0 0 1 1 0 0 2 8 0 0 -1 " +
                      activation + " 0 1 0\nfunction own 1 0 32 0 0\nfunction " +
                      (hasSums ? "sums 1 0 32 0 3" : "more 1 0 32 0 2") + "\nfunction behind 1 0 32 0 1\ncode sm_90 " +
                      std::to_string(code.size()) + "\nend\n" + code;
  auto launchIt = [&](const sluice_backend_run &half, sluice_run *run) {
    sluice_module *module = nullptr;
    sluice_queue *queue = nullptr;
    constexpr size_t kApart = 64; // of buffers, which are aligned
    float numbers[4 * kApart] = {2}, found[2 * kApart] = {};
    numbers[kApart] = 3;
    void *address = nullptr;
    half.allocate(run, 0, sizeof numbers, &address);
    half.queue_create(run, 0, SLUICE_QUEUE_COMPUTE, "computes", &queue);
    sluice_copy up{sizeof up, SLUICE_HOST, 0, numbers, address, sizeof numbers, "up"};
    half.copy(queue, &up);
    if (sluice_status status = half.module_load(run, 0, image.data(), image.size(), &module); status != SLUICE_OK)
      return status;
    auto *first = static_cast<float *>(address);
    void *addresses[] = {first, first + kApart, first + 2 * kApart, first + 3 * kApart, first};
    sluice_call call{sizeof call, 1, 0, 1};
    sluice_launch launch{};
    launch.struct_size = sizeof launch;
    launch.call = &call, launch.addresses = addresses, launch.num_buffers = 5;
    launch.module = module, launch.function = launch.name = "k";
    if (sluice_status status = half.launch(queue, &launch); status != SLUICE_OK)
      return status;
    sluice_copy down{sizeof down, 0, SLUICE_HOST, first + 2 * kApart, found, sizeof found, "down"};
    half.copy(queue, &down);
    half.synchronize_queue(queue);
    // As a status, which is all that comes back.
    return sluice_status(int(found[0]) * 10 + int(found[hasSums ? kApart : 1]));
  };
  return whatComesOf({{"SLUICE_CUBLASLT", SLUICE_CUDA_EMU_DRIVER}, {"CUDA_EMU_BLAS", behaviour}}, launchIt, settings);
}

TEST(CudaRunHalf, RunsWhatFollowsALibrarysProduct) {
  EXPECT_THAT(whatAProductLeaves("products=library"), StartsWith("65: "));
  EXPECT_THAT(whatAProductLeaves("products=own"), StartsWith("95: "));
}

TEST(CudaRunHalf, RunsWhatALibraryLeavesOut) {
  const std::string gradient = "gelu_gradient 3 -1 0", overwritten = "gelu_gradient 2 -1 0", sums = "none -1 3 0";
  EXPECT_THAT(whatAProductLeaves("products=library", gradient), StartsWith("35: ")) << "the derivative at 0 is 1/2";
  EXPECT_THAT(whatAProductLeaves("products=library", gradient, "no-input"), StartsWith("75: "));
  EXPECT_THAT(whatAProductLeaves("products=library", gradient, "none"), StartsWith("95: "));
  EXPECT_THAT(whatAProductLeaves("products=own", gradient), StartsWith("95: "));
  for (const char *behaviour : {"", "no-input"})
    EXPECT_THAT(whatAProductLeaves("products=library", overwritten, behaviour), StartsWith("95: ")) << behaviour;
  EXPECT_THAT(whatAProductLeaves("products=library", sums), StartsWith("62: "));
  EXPECT_THAT(whatAProductLeaves("products=library", sums, "no-sums"), StartsWith("64: "));
  EXPECT_THAT(whatAProductLeaves("products=library", sums, "none"), StartsWith("94: "));
  EXPECT_THAT(whatAProductLeaves("products=own", sums), StartsWith("94: "));
}

/// How many products the double of cublasLt has done for the contexts of `groups`, null for one that has none, once each has loaded
/// a product whose algorithms are timed.
static std::string productsOfLoading(const std::string &image, const std::vector<bool> &areOfGroup) {
  auto load = [&](const sluice_backend_run &half, sluice_run *) {
    sluice_group *group = nullptr;
    half.group_create(&group);
    sluice_status status = SLUICE_OK;
    for (bool isOfGroup : areOfGroup) {
      sluice_run_options options{sizeof(options), nullptr, "", isOfGroup ? group : nullptr};
      sluice_run *run = nullptr;
      sluice_module *module = nullptr;
      half.open(&options, &run);
      status = half.module_load(run, 0, image.data(), image.size(), &module);
      if (status != SLUICE_OK)
        return status;
      half.module_unload(module);
      half.close(run);
    }
    half.group_destroy(group);
    void *library = dlopen(SLUICE_CUDA_EMU_DRIVER, RTLD_NOW | RTLD_LOCAL);
    return sluice_status(reinterpret_cast<int (*)()>(dlsym(library, "cuda_emu_products"))()); // all that comes back
  };
  return whatComesOf({{"SLUICE_CUBLASLT", SLUICE_CUDA_EMU_DRIVER}}, load);
}

TEST(CudaRunHalf, TimesAlgorithmsOnceInAGroup) {
  std::string log, code = test::compileForHost("", test::Effort::Least, log) + "sm_90" + '\0';
  auto image = [&](const std::string &isTimed) {
    return "sluice cuda 8\nkernel k 4\nproduct f32 1 0 1 0 1 0 1 0 0 1 0 0 1 1 0 0 2 1 0 0 -1 none -1 -1 0 " + isTimed +
           " 1 65536\ncode sm_90 " + std::to_string(code.size()) + "\nend\n" + code;
  };
  // Two algorithms, four times each.
  EXPECT_EQ(productsOfLoading(image("1"), {true}), "8: ");
  EXPECT_EQ(productsOfLoading(image("1"), {true, true, true}), "8: ");
  EXPECT_EQ(productsOfLoading(image("1"), {true, false, true, false}), "24: ");
  EXPECT_EQ(productsOfLoading(image("0"), {true, false}), "0: ");
}

/// What `call` does to a capture of a first queue, and whether that queue works again when the capture has ended.
static std::string whatEndsACapture(const std::function<void(const sluice_backend_run &, sluice_run *)> &call) {
  return whatComesOf({}, [&](const sluice_backend_run &half, sluice_run *run) {
    sluice_queue *queue = nullptr;
    sluice_sequence *sequence = nullptr;
    half.queue_create(run, 0, SLUICE_QUEUE_COMPUTE, "captures", &queue);
    half.capture_begin(queue);
    call(half, run);
    sluice_status status = half.capture_end(queue, &sequence);
    if (status == SLUICE_OK)
      half.sequence_destroy(sequence);
    else if (half.capture_begin(queue) != SLUICE_OK || half.capture_end(queue, &sequence) != SLUICE_OK)
      return SLUICE_INVALID; // the queue still captures
    return status;
  });
}

TEST(CudaRunHalf, ACaptureIsSpoiltByCallsThatDisturbIt) {
  EXPECT_EQ(whatEndsACapture([](const sluice_backend_run &, sluice_run *) {}), "0: ");
  EXPECT_THAT(whatEndsACapture([](const sluice_backend_run &half, sluice_run *run) {
                void *address = nullptr;
                EXPECT_NE(half.allocate(run, 0, 64, &address), SLUICE_OK);
              }),
              AllOf(StartsWith("70: "), HasSubstr("CUDA_ERROR_STREAM_CAPTURE_INVALIDATED")));
}

/// A deadline is told of while the stream has not come to its work, and the work goes on.
TEST(CudaRunHalf, DeadlinesPass) {
  EXPECT_EQ(whatComesOf({},
                        [](const sluice_backend_run &half, sluice_run *run) {
                          sluice_queue *queue = nullptr;
                          sluice_event *event = nullptr;
                          void *address = nullptr;
                          int sent = 12345, found = 0;
                          half.allocate(run, 0, sizeof sent, &address);
                          half.queue_create(run, 0, SLUICE_QUEUE_COPY, "copies", &queue);
                          half.event_create(run, &event);
                          sluice_copy up{sizeof up, SLUICE_HOST, 0, &sent, address, sizeof sent, "up"};
                          sluice_copy down{sizeof down, 0, SLUICE_HOST, address, &found, sizeof found, "down"};
                          half.copy(queue, &up);
                          half.copy(queue, &down);
                          half.record(queue, event);
                          if (half.synchronize_until(event, 0) != SLUICE_DEADLINE || found != 0)
                            return SLUICE_INVALID;
                          sluice_status status = half.synchronize_until(event, 60);
                          return found == sent ? status : SLUICE_INVALID;
                        }),
            "0: cuda: work was not done within 0.000000 s");
}

namespace {
/// A queue that copies a number to the first device.
class Copies {
public:
  Copies(const sluice_backend_run &half, sluice_run *run) : half(half), run(run) {
    check(half.allocate(run, 0, sizeof number, &address));
    check(half.queue_create(run, 0, SLUICE_QUEUE_COPY, "copies", &queue));
  }
  ~Copies() {
    half.queue_destroy(queue);
    forget();
  }

  /// The first that was no success.
  sluice_status status() const { return failed; }
  void noteTimes(bool on) { check(half.note_times(queue, on)); }
  /// Lets go of the events so far.
  void forget() {
    for (sluice_event *event : std::exchange(events, {}))
      half.event_destroy(event);
  }

  /// Copies, and waits for an event behind that.
  sluice_event *copy() {
    sluice_copy up{sizeof up, SLUICE_HOST, 0, &number, address, sizeof number, "up"};
    sluice_event *&event = events.emplace_back();
    check(half.event_create(run, &event));
    check(half.copy(queue, &up));
    check(half.record(queue, event));
    check(half.synchronize(event));
    return event;
  }

  /// Copies; an error if the times of that are not between readings of the host's clock.
  void copyInTime() {
    constexpr double kApart = 1e-3;
    double before = hostSeconds(), start = 0, end = 0;
    sluice_event *event = copy();
    double after = hostSeconds();
    check(half.event_times(event, &start, &end));
    check(before - kApart < start && start < end && end < after + kApart ? SLUICE_OK : SLUICE_INVALID);
  }

private:
  static double hostSeconds() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
  }
  void check(sluice_status its) { failed = failed == SLUICE_OK ? its : failed; }

  const sluice_backend_run &half;
  sluice_run *run;
  int number = 12345;
  void *address = nullptr;
  sluice_queue *queue = nullptr;
  std::vector<sluice_event *> events;
  sluice_status failed = SLUICE_OK;
};

} // namespace

/// The device's clock runs away from the host's, by a hundredth.
TEST(CudaRunHalf, TellsTimesByTheHostsClock) {
  EXPECT_EQ(whatComesOf({{"CUDA_EMU_HASTE", "0.01"}},
                        [](const sluice_backend_run &half, sluice_run *run) {
                          Copies copies(half, run);
                          copies.noteTimes(true);
                          copies.copyInTime();
                          std::this_thread::sleep_for(std::chrono::milliseconds(1300));
                          copies.copyInTime();
                          copies.noteTimes(false);
                          copies.forget();
                          std::this_thread::sleep_for(std::chrono::milliseconds(300));
                          copies.noteTimes(true);
                          copies.copyInTime();
                          return copies.status();
                        }),
            "0: ");
}

/// Of which the runtime makes waits of the host.
TEST(CudaRunHalf, SaysThatStreamsDoNotWaitForSignals) {
  EXPECT_EQ(whatComesOf({{"CUDA_EMU_NUMBERLESS", "1"}},
                        [](const sluice_backend_run &half, sluice_run *run) {
                          sluice_queue *queue = nullptr;
                          void *place = nullptr;
                          half.queue_create(run, 0, SLUICE_QUEUE_COPY, "waits", &queue);
                          half.host_allocate(run, sizeof(uint64_t), &place);
                          sluice_status status = half.wait_for_signal(queue, static_cast<uint64_t *>(place), 1);
                          half.queue_destroy(queue);
                          return status;
                        }),
            "4: cuda:0: its streams do not wait for numbers in memory");
}

/// What a driver refuses that has no events with times.
static std::string whatTimelessDriversSay(bool notesTimes) {
  return whatComesOf({{"CUDA_EMU_TIMELESS", "1"}}, [&](const sluice_backend_run &half, sluice_run *run) {
    Copies copies(half, run);
    if (notesTimes)
      copies.noteTimes(true);
    copies.copy();
    return copies.status();
  });
}

TEST(CudaRunHalf, HasNoEventsWithTimesUnlessTheyAreNoted) {
  EXPECT_EQ(whatTimelessDriversSay(/*notesTimes=*/false), "0: ");
  EXPECT_THAT(whatTimelessDriversSay(/*notesTimes=*/true), StartsWith("70: "));
}

} // namespace sluice
