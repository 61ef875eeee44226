#include "tools/gpu_check/runner/Parts.h"

#include "runtime/base/Child.h"
#include "tests/conformance/Suite.h"
#include "tools/gpu_check/contracts/Machine.h"
#include "tools/gpu_check/runner/PackedKernels.h"

#include <algorithm>
#include <chrono>
#include <iostream>
#include <limits>
#include <optional>

namespace sluice::gpu_check {

using runtime::Json;

static constexpr std::chrono::seconds kLimit{20}; // per contract
static constexpr int kUnsupported = 4;

void print(const Json &line) { std::cout << line.dump() << std::endl; }

static double secondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

//===- devices ----------------------------------------------------------------------------------------------------===//

/// The device, or the reason why there is none.
int probe(const sluice_backend_run &half) {
  try {
    const cuda::Driver &driver = cuda::Driver::get();
    int version = 0;
    driver.check(driver.version(&version), "cuDriverGetVersion");
    Json devices = Json::array();
    conformance::RunHalf run({"cuda", nullptr, &half, nullptr});
    for (int32_t device = 0; device < run.devices(); ++device) {
      sluice_device_info info = run.info(device);
      int major = 0, minor = 0;
      driver.check(driver.deviceAttribute(&major, cuda::DeviceAttribute::Major, device), "cuDeviceGetAttribute");
      driver.check(driver.deviceAttribute(&minor, cuda::DeviceAttribute::Minor, device), "cuDeviceGetAttribute");
      devices.push_back({{"name", info.name},
                         {"capability", std::to_string(major) + "." + std::to_string(minor)},
                         {"memory_bytes", info.memory_bytes},
                         {"free_bytes", info.free_bytes},
                         {"cores", info.cores},
                         {"clock_hz", info.clock_hz},
                         {"nominal_flops", info.peak_flops},
                         {"nominal_bandwidth", info.memory_bandwidth}});
    }
    print({{"driver", version}, {"devices", devices}});
    return devices.empty() ? kUnsupported : 0;
  } catch (const std::exception &error) {
    print({{"error", error.what()}});
    return kUnsupported;
  }
}

int hold(const sluice_backend_run &half) {
  conformance::RunHalf run({"cuda", nullptr, &half, nullptr});
  run.allocate(1);
  std::cin.ignore(std::numeric_limits<std::streamsize>::max());
  return 0;
}

//===- checks without a compiler ----------------------------------------------------------------------------------===//

int runConformance(const sluice_backend_run &half) {
  conformance::runSuite(
      {"cuda", nullptr, &half, nullptr}, conformance::runHalfTests(), {}, [](const conformance::Outcome &outcome) {
        static constexpr const char *kResults[] = {"passed", "failed", "not tried", "not tried"};
        print({{"name", outcome.test}, {"result", kResults[size_t(outcome.result)]}, {"detail", outcome.detail}});
      });
  return 0;
}

//===- contracts --------------------------------------------------------------------------------------------------===//

/// In a separate process: a lost device is lost for that contract alone.
static Json tryContract(const Contract &contract, const std::string &folder) {
  auto start = std::chrono::steady_clock::now();
  runtime::ChildResult child = runtime::runInChild(
      [&](runtime::ChildReport &report) {
        report.step("the contract");
        try {
          Machine machine(folder);
          contract.check(machine);
          report.say("confirmed", "");
        } catch (const NotTried &why) {
          report.say("not tried", why.what());
        } catch (const Contradicted &why) {
          report.say("contradicted", why.what());
        } catch (const std::exception &why) {
          report.say("failed", why.what());
        }
      },
      kLimit);
  bool said = child.failure.empty() && !child.said.empty();
  return {{"name", contract.name},
          {"result", said ? child.said.front().first : "failed"},
          {"detail", said ? child.said.front().second : child.failure},
          {"seconds", secondsSince(start)}};
}

int runContracts(const PartOptions &options) {
  auto isAsked = [&](const Contract &contract) {
    return options.only.empty() ||
           ("," + options.only + ",").find("," + std::string(contract.name) + ",") != std::string::npos;
  };
  for (const Contract &contract : allContracts())
    if (isAsked(contract))
      print(tryContract(contract, options.folder));
  return 0;
}

int nameContracts() {
  for (const Contract &contract : allContracts())
    print({{"name", contract.name}});
  return 0;
}

//===- kernels ----------------------------------------------------------------------------------------------------===//

/// A unique name of a kernel: "3 conv2d_add_relu".
static std::string nameOf(const Pack &pack, size_t number) {
  return std::to_string(number) + " " + pack.kernels[number].name;
}

namespace {

/// The kernels of a pack in a separate context, created on first use.
class Kernels {
public:
  Kernels(const sluice_backend_run &half, const PartOptions &options, const char *settings)
      : subject{"cuda", nullptr, &half, nullptr}, options(options) {
    subject.settings = settings;
  }

  PackedKernels &get() {
    if (!kernels) {
      half.emplace(subject);
      kernels.emplace(*half, options.folder, options.model, options.bare);
    }
    return *kernels;
  }

private:
  conformance::Subject subject;
  const PartOptions &options;
  std::optional<conformance::RunHalf> half;
  std::optional<PackedKernels> kernels;
};

/// A kernel to check, and the implementation of its product.
struct Trial {
  std::string name;
  size_t kernel;
  Kernels &kernels;
};

} // namespace

static std::vector<Trial> trialsOf(Kernels &given, Kernels &own, const std::string &products) {
  std::vector<Trial> trials;
  PackedKernels &kernels = (products == "own" ? own : given).get();
  for (size_t i = 0; i < kernels.pack().kernels.size(); ++i) {
    trials.push_back({nameOf(kernels.pack(), i), i, products == "own" ? own : given});
    if (products == "both" && kernels.isProduct(i))
      trials.push_back({trials.back().name + ", own product", i, own});
  }
  return trials;
}

static Json checkKernel(const Trial &trial) {
  auto start = std::chrono::steady_clock::now();
  PackedKernels &kernels = trial.kernels.get();
  Json line = {{"name", trial.name}, {"place", kernels.pack().kernels[trial.kernel].place}};
  try {
    KernelResult result = kernels.check(trial.kernel);
    line.update({{"result", "passed"}, {"share", result.largestShare}, {"compared", result.compared}});
  } catch (const std::exception &why) {
    line.update({{"result", "failed"}, {"detail", why.what()}});
  }
  line["seconds"] = secondsSince(start);
  return line;
}

int runKernels(const sluice_backend_run &half, const PartOptions &options) {
  Kernels given(half, options, ""), own(half, options, "products=own");
  std::vector<Trial> trials = trialsOf(given, own, options.products);
  print({{"kernels", trials.size()}});
  size_t first = 0, end = trials.size();
  for (size_t i = 0; i < end; ++i)
    if (trials[i].name == options.after)
      first = i + 1;
  if (options.most > 0)
    end = std::min(end, first + size_t(options.most));
  for (size_t i = first; i < end; ++i) {
    print({{"begins", trials[i].name}});
    print(checkKernel(trials[i]));
  }
  return 0;
}

} // namespace sluice::gpu_check
