#include "tools/gpu_check/contracts/Machine.h"

#include "backends/cuda/runtime/ModuleImage.h"
#include "tools/gpu_check/Pack.h"

#include <cstdlib>

namespace sluice::gpu_check {

using namespace cuda;

void expect(bool holds, const std::string &what) {
  if (!holds)
    throw Contradicted(what);
}

Machine::Machine(const std::string &folder) : driver(Driver::get()), image(readFile(folder + "/own.image")) {
  check(driver.deviceCount(&devices), "cuDeviceGetCount");
  contexts.resize(size_t(devices));
  char text[256] = "";
  check(driver.deviceName(text, sizeof text, 0), "cuDeviceGetName");
  name = text;
  major = attribute(DeviceAttribute::Major);
  minor = attribute(DeviceAttribute::Minor);
  makeCurrent(0);
}

void Machine::check(int status, const std::string &what) const {
  expect(status == 0, what + " gives " + driver.textOf(status));
}

int Machine::attribute(DeviceAttribute attribute) const {
  int value = 0;
  check(driver.deviceAttribute(&value, attribute, 0), "cuDeviceGetAttribute");
  return value;
}

void Machine::needDevices(int count) const {
  if (devices < count)
    throw NotTried("there are " + std::to_string(devices) + " devices, and it needs " + std::to_string(count));
}

DriverContext Machine::context(int device) {
  int number = 0;
  DriverContext &context = contexts.at(size_t(device));
  if (!context) {
    check(driver.deviceGet(&number, device), "cuDeviceGet");
    check(driver.contextRetain(&context, number), "cuDevicePrimaryCtxRetain");
  }
  return context;
}

DriverStream Machine::stream() {
  DriverStream stream = nullptr;
  check(driver.streamCreate(&stream, kStreamNonBlocking), "cuStreamCreate");
  return stream;
}

DriverEvent Machine::event(unsigned flags) {
  DriverEvent event = nullptr;
  check(driver.eventCreate(&event, flags), "cuEventCreate");
  return event;
}

DeviceAddress Machine::allocate(size_t bytes) {
  DeviceAddress address = 0;
  check(driver.allocate(&address, bytes), "cuMemAlloc of " + std::to_string(bytes) + " bytes");
  return address;
}

std::string Machine::codeFor(const std::string &architecture) const {
  for (const ImageCode &code : readModuleImage(image).codes)
    if (code.architecture == architecture)
      return std::string(code.bytes);
  return "";
}

DriverFunction Machine::function(const char *name) {
  for (int version = 10 * major + minor; !module && version >= 10 * major; --version)
    if (std::string code = codeFor("sm_" + std::to_string(version)); !code.empty())
      check(driver.moduleLoad(&module, code.data()), "cuModuleLoadData");
  if (!module)
    throw NotTried("there is no code for this device, which is of compute capability " + std::to_string(major) + "." +
                   std::to_string(minor));
  DriverFunction function = nullptr;
  check(driver.moduleFunction(&function, module, name), "cuModuleGetFunction of " + std::string(name));
  return function;
}

void Machine::launch(DriverStream stream, const char *kernel, unsigned blocks, unsigned threads,
                     std::vector<void *> arguments) {
  check(driver.launch(function(kernel), blocks, 1, 1, threads, 1, 1, 0, stream, arguments.data(), nullptr),
        "cuLaunchKernel of " + std::string(kernel));
}

void Machine::upload(DriverStream stream, DeviceAddress to, const void *from, size_t bytes) {
  check(driver.copyUp(to, from, bytes, stream), "cuMemcpyHtoDAsync");
}

void Machine::download(DriverStream stream, void *to, DeviceAddress from, size_t bytes) {
  check(driver.copyDown(to, from, bytes, stream), "cuMemcpyDtoHAsync");
}

void Machine::waitFor(DriverStream stream, DriverEvent event) {
  check(driver.streamWait(stream, event, 0), "cuStreamWaitEvent");
}

std::vector<Contract> allContracts() {
  std::vector<Contract> all;
  for (const auto &family : {moduleContracts, memoryContracts, streamContracts, graphContracts, launchContracts,
                             languageContracts, tensorContracts, blasContracts, exchangeContracts}) {
    std::vector<Contract> its = family();
    all.insert(all.end(), its.begin(), its.end());
  }
  return all;
}

} // namespace sluice::gpu_check
