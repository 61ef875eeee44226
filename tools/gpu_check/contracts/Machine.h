// A CUDA device through its driver alone, for contracts: no code of the backend is involved.
#pragma once

#include "backends/cuda/runtime/Driver.h"

#include <stdexcept>
#include <string>
#include <vector>

namespace sluice::gpu_check {

/// Ends the check of a contract: the driver or the device behaves differently.
class Contradicted : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

/// Ends a check without a verdict.
class NotTried : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

/// Throws Contradicted unless `holds`.
void expect(bool holds, const std::string &what);

/// Makes the first device's primary context current. Resources of a check are released with its process.
class Machine {
public:
  /// With the code of own.image in `folder`.
  explicit Machine(const std::string &folder);

  const cuda::Driver &driver;
  int devices = 0;
  std::string name;
  int major = 0, minor = 0; ///< compute capability
  bool isEmulated() const { return name == "Emulated CUDA device"; }
  /// Iterations of a kernel's loop, for tens of milliseconds on a device.
  int turns() const { return isEmulated() ? 1000 : 20'000'000; }

  /// Throws NotTried if there are fewer.
  void needDevices(int count) const;
  cuda::DriverContext context(int device);
  void makeCurrent(int device) { check(driver.contextSetCurrent(context(device)), "cuCtxSetCurrent"); }

  // For the current device; throws Contradicted on a status other than success.
  void check(int status, const std::string &what) const;
  cuda::DriverStream stream();
  cuda::DriverEvent event(unsigned flags = cuda::kEventWithoutTimes);
  cuda::DeviceAddress allocate(size_t bytes);
  /// A function of the first device's code.
  cuda::DriverFunction function(const char *name);
  /// The code of own.image for an architecture such as "sm_80"; empty if absent.
  std::string codeFor(const std::string &architecture) const;

  void launch(cuda::DriverStream stream, const char *kernel, unsigned blocks, unsigned threads,
              std::vector<void *> arguments);
  void upload(cuda::DriverStream stream, cuda::DeviceAddress to, const void *from, size_t bytes);
  void download(cuda::DriverStream stream, void *to, cuda::DeviceAddress from, size_t bytes);
  void finish(cuda::DriverStream stream) { check(driver.streamSynchronize(stream), "cuStreamSynchronize"); }
  void waitFor(cuda::DriverStream stream, cuda::DriverEvent event);

  template <typename T> std::vector<T> read(cuda::DriverStream stream, cuda::DeviceAddress from, size_t count) {
    std::vector<T> values(count);
    download(stream, values.data(), from, count * sizeof(T));
    finish(stream);
    return values;
  }
  template <typename T> cuda::DeviceAddress place(cuda::DriverStream stream, const std::vector<T> &values) {
    cuda::DeviceAddress address = allocate(values.size() * sizeof(T));
    upload(stream, address, values.data(), values.size() * sizeof(T));
    finish(stream);
    return address;
  }

private:
  int attribute(cuda::DeviceAttribute attribute) const;

  std::string image;
  std::vector<cuda::DriverContext> contexts;
  cuda::DriverModule module = nullptr;
};

/// One assumption of the backend, or of the test double of the driver.
struct Contract {
  const char *name; ///< "memory.aligned"
  void (*check)(Machine &);
};

// A new family is a file in this folder, its function here, and its line in `allContracts`.
std::vector<Contract> blasContracts();
std::vector<Contract> exchangeContracts();
std::vector<Contract> graphContracts();
std::vector<Contract> launchContracts();
std::vector<Contract> languageContracts();
std::vector<Contract> memoryContracts();
std::vector<Contract> moduleContracts();
std::vector<Contract> streamContracts();
std::vector<Contract> tensorContracts();

std::vector<Contract> allContracts();

} // namespace sluice::gpu_check
