// Of the driver, its contexts and the code that it loads.
#include "tools/gpu_check/contracts/Machine.h"

#include <optional>

namespace sluice::gpu_check {

using namespace cuda;

static constexpr int kInvalidContext = 201, kNoBinary = 209, kNotFound = 500;

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

/// Others in the process share the context, and none ends while one is left.
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

/// The status of loading the code for an architecture, or nothing where there is none.
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

std::vector<Contract> moduleContracts() {
  return {{"device.attributes", attributes},
          {"context.is_needed", callsNeedAContext},
          {"context.is_shared", primaryContextIsShared},
          {"error.names", errorsHaveNames},
          {"module.rubbish_is_refused", rubbishIsNoCode},
          {"module.absent_function", absentFunctions},
          {"module.older_minor_runs", olderMinorRuns},
          {"module.other_major_does_not", otherMajorDoesNot}};
}

} // namespace sluice::gpu_check
