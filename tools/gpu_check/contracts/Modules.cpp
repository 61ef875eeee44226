// The driver, its contexts and the code that it loads.
#include "tools/gpu_check/contracts/Machine.h"

#include <optional>

namespace sluice::gpu_check {

using namespace cuda;

static constexpr int kInvalidContext = 201, kNoBinary = 209, kInvalidPtx = 218, kUnsupportedPtx = 222, kNotFound = 500,
                     kPeerAccessAlreadyEnabled = 704;

static void attributes(Machine &machine) {
  for (auto [attribute, what] : {std::pair(DeviceAttribute::ClockKilohertz, "clock"),
                                 {DeviceAttribute::Multiprocessors, "number of multiprocessors"},
                                 {DeviceAttribute::MemoryClockKilohertz, "clock of its memory"},
                                 {DeviceAttribute::MemoryBusBits, "width of its memory"},
                                 {DeviceAttribute::Major, "compute capability"}}) {
    int value = 0;
    machine.check(machine.driver.deviceAttribute(&value, attribute, 0), "cuDeviceGetAttribute");
    expect(value > 0, std::string("the device does not tell its ") + what);
  }
}

static void callsNeedAContext(Machine &machine) {
  machine.check(machine.driver.contextSetCurrent(nullptr), "cuCtxSetCurrent of none");
  DeviceAddress address = 0;
  int status = machine.driver.allocate(&address, 64);
  expect(status == kInvalidContext, "without a context memory gives " + machine.driver.textOf(status));
  DriverStream stream = nullptr;
  expect(machine.driver.streamCreate(&stream, kStreamNonBlocking) == kInvalidContext,
         "a stream is created without a context");
}

/// Other users in the process share the context, which ends with the last.
static void primaryContextIsShared(Machine &machine) {
  DriverContext again = nullptr;
  int number = 0;
  machine.check(machine.driver.deviceGet(&number, 0), "cuDeviceGet");
  machine.check(machine.driver.contextRetain(&again, number), "cuDevicePrimaryCtxRetain");
  expect(again == machine.context(0), "a device has two primary contexts");
  DeviceAddress address = machine.allocate(64);
  machine.check(machine.driver.contextRelease(number), "cuDevicePrimaryCtxRelease");
  machine.check(machine.driver.release(address), "cuMemFree after the context was released by another");
}

/// As if another library of the process had enabled it first: copies still work.
static void peerAccessIsEnabledOnce(Machine &machine) {
  machine.needDevices(2);
  int can = 0;
  machine.check(machine.driver.canAccessPeer(&can, 0, 1), "cuDeviceCanAccessPeer");
  if (!can)
    throw NotTried("no link leads from the first device to the second");
  DriverContext peer = machine.context(1);
  machine.makeCurrent(1);
  DeviceAddress there = machine.place(machine.stream(), std::vector<int>{5});
  machine.makeCurrent(0);
  machine.check(machine.driver.enablePeerAccess(peer, 0), "cuCtxEnablePeerAccess");
  int status = machine.driver.enablePeerAccess(peer, 0);
  expect(status == kPeerAccessAlreadyEnabled, "enabling it again gives " + machine.driver.textOf(status));
  DriverStream stream = machine.stream();
  DeviceAddress here = machine.allocate(sizeof(int));
  machine.check(machine.driver.copyAcross(here, machine.context(0), there, peer, sizeof(int), stream),
                "cuMemcpyPeerAsync");
  expect(machine.read<int>(stream, here, 1)[0] == 5, "a copy between devices is wrong");
}

static void errorsHaveNames(Machine &machine) {
  expect(machine.driver.textOf(2) == "CUDA_ERROR_OUT_OF_MEMORY", "2 is " + machine.driver.textOf(2));
  expect(machine.driver.textOf(1) == "CUDA_ERROR_INVALID_VALUE", "1 is " + machine.driver.textOf(1));
  machine.driver.textOf(123456);
}

static void rubbishIsNoCode(Machine &machine) {
  DriverModule module = nullptr;
  expect(machine.driver.moduleLoad(&module, "this is no code") != 0, "rubbish is loaded as code");
}

static void absentFunctions(Machine &machine) {
  machine.function("store");
  DriverModule module = nullptr;
  std::string code;
  for (int version = 10 * machine.major + machine.minor; code.empty(); --version)
    code = machine.codeFor("sm_" + std::to_string(version));
  machine.check(machine.driver.moduleLoad(&module, code.data()), "cuModuleLoadData of the same code again");
  DriverFunction function = nullptr;
  int status = machine.driver.moduleFunction(&function, module, "nobody_has_this_function");
  expect(status == kNotFound, "a function that is not there gives " + machine.driver.textOf(status));
  machine.check(machine.driver.moduleUnload(module), "cuModuleUnload");
}

/// The status of loading the code for an architecture; none if there is no code.
static std::optional<int> load(Machine &machine, int version) {
  std::string code = machine.codeFor("sm_" + std::to_string(version));
  if (code.empty())
    return std::nullopt;
  DriverModule module = nullptr;
  return machine.driver.moduleLoad(&module, code.data());
}

static void olderMinorRuns(Machine &machine) {
  std::optional<int> status;
  for (int minor = 0; minor < machine.minor && !status; ++minor)
    status = load(machine, 10 * machine.major + minor);
  if (!status)
    throw NotTried("there is no code for an older device of this major version");
  machine.check(*status, "cuModuleLoadData of code for an older device of this major version");
}

static void otherMajorDoesNot(Machine &machine) {
  bool tried = false;
  for (int major : {8, 9, 10}) {
    std::optional<int> status = major == machine.major ? std::nullopt : load(machine, 10 * major);
    tried |= status.has_value();
    expect(!status || *status == kNoBinary,
           "code for sm_" + std::to_string(10 * major) + " gives " + machine.driver.textOf(status.value_or(0)));
  }
  if (!tried)
    throw NotTried("there is code for this device's major version alone");
}

/// PTX of a kernel that does nothing.
static int loadPtx(Machine &machine, const std::string &version, const std::string &target) {
  std::string text = ".version " + version + "\n.target " + target + "\n.address_size 64\n" +
                     ".visible .entry nothing()\n{\n  ret;\n}\n";
  DriverModule module = nullptr;
  return machine.driver.moduleLoad(&module, text.c_str());
}

static void laterPtxIsRefused(Machine &machine) {
  int status = loadPtx(machine, "99.0", "sm_80");
  expect(status == kUnsupportedPtx, "PTX of a version that is none yet gives " + machine.driver.textOf(status));
}

static void ptxForNewerDevicesIsRefused(Machine &machine) {
  constexpr int kNewest = 121;
  if (10 * machine.major + machine.minor >= kNewest)
    throw NotTried("this device is as new as what PTX may be made for");
  int status = loadPtx(machine, "9.0", "sm_" + std::to_string(kNewest));
  expect(status == kInvalidPtx, "PTX for a newer device gives " + machine.driver.textOf(status));
}

static void ptxRuns(Machine &machine) {
  std::string code = machine.codeFor("compute_80");
  if (code.empty())
    throw NotTried("there is no PTX");
  DriverModule module = nullptr;
  DriverFunction function = nullptr;
  machine.check(machine.driver.moduleLoad(&module, code.data()), "cuModuleLoadData of PTX");
  machine.check(machine.driver.moduleFunction(&function, module, "store"), "cuModuleGetFunction of PTX");
  DriverStream stream = machine.stream();
  DeviceAddress to = machine.place(stream, std::vector<int>{0});
  int value = 7;
  void *arguments[] = {&to, &value};
  machine.check(machine.driver.launch(function, 1, 1, 1, 1, 1, 1, 0, stream, arguments, nullptr), "cuLaunchKernel");
  expect(machine.read<int>(stream, to, 1)[0] == 7, "a kernel that came as PTX does nothing");
}

std::vector<Contract> moduleContracts() {
  return {{"device.attributes", attributes},
          {"context.is_needed", callsNeedAContext},
          {"context.is_shared", primaryContextIsShared},
          {"context.peer_access_twice", peerAccessIsEnabledOnce},
          {"error.names", errorsHaveNames},
          {"module.rubbish_is_refused", rubbishIsNoCode},
          {"module.absent_function", absentFunctions},
          {"module.older_minor_runs", olderMinorRuns},
          {"module.other_major_does_not", otherMajorDoesNot},
          {"module.ptx_runs", ptxRuns},
          {"module.later_ptx_is_refused", laterPtxIsRefused},
          {"module.ptx_for_newer_devices_is_refused", ptxForNewerDevicesIsRefused}};
}

} // namespace sluice::gpu_check
