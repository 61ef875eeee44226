#include "tools/compiler/placement/costs/Costs.h"

#include "ir/Dialect.h"
#include "tools/compiler/Backends.h"
#include "tools/compiler/Diagnostics.h"
#include "tools/compiler/placement/costs/Calibration.h"
#include "tools/compiler/placement/costs/DescribedCosts.h"

using sluice::runtime::BackendDevice;
using sluice::runtime::BackendFile;

namespace sluice::compiler {

namespace {

class CostAssembly {
public:
  CostAssembly(const ir::Target &target, const passes::PlacementRequest &request, const CompileOptions &options)
      : target(target), request(request), options(options),
        files(target.accelerators() > 0 ? tryBackends() : std::vector<BackendFile>()) {}

  llvm::Expected<passes::TargetCosts> run() {
    if (llvm::Error error = checkNames())
      return std::move(error);
    std::string clock = clockOf(target, files);
    costs.hostRunsHere = clock == ir::kHostDevice;
    for (const ir::TargetDevice &device : target.devices())
      describe(device);
    auto calibration = readCalibration();
    if (!calibration)
      return calibration.takeError();
    if (const ClockCalibration *measured = calibration->find(clock))
      for (const ir::TargetDevice &device : target.devices())
        apply(*measured, device);
    for (const passes::GivenLink &given : request.links)
      apply(given);
    costs.uncertainty = hasMeasured() ? kOfMeasurements : kOfFigures;
    return std::move(costs);
  }

private:
  static constexpr double kOfMeasurements = 0.02, kOfFigures = 0.0025;

  bool hasMeasured() const {
    const passes::CostModel &model = costs.model;
    auto isMeasured = [&](const ir::TargetDevice &device) {
      return model.device(device.name).source == passes::CostSource::Measured ||
             llvm::any_of(target.devices(), [&](const ir::TargetDevice &other) {
               return model.link(device.name, other.name).source == passes::CostSource::Measured;
             });
    };
    return llvm::any_of(target.devices(), isMeasured);
  }

  const ir::TargetDevice *find(llvm::StringRef spelling) const {
    for (const ir::TargetDevice &device : target.devices())
      for (int64_t replica = 0; replica < std::max<int64_t>(target.replicas(), 1); ++replica)
        if (device.spelling(replica) == spelling || device.name == spelling)
          return &device;
    return nullptr;
  }

  llvm::Error checkNames() const {
    auto check = [&](llvm::StringRef name, llvm::StringRef what) -> llvm::Error {
      if (find(name))
        return llvm::Error::success();
      return makeError(ExitCode::Unsupported,
                       what + " is given for '" + name + "', which is no device of the target " + target.str());
    };
    for (const auto &[device, bytes] : request.caps)
      if (llvm::Error error = check(device, "a memory cap"))
        return error;
    for (const passes::GivenLink &link : request.links) {
      if (link.isBetweenReplicas() && target.replicas() == 1)
        return makeError(ExitCode::Usage,
                         "--link replicas=SPEED applies to replicas, and there is one; leave out this link");
      if (link.isBetweenReplicas())
        continue;
      if (llvm::Error error = check(link.device, "a link"))
        return error;
      if (find(link.device)->name == ir::kHostDevice)
        return makeError(ExitCode::Usage, "a link is between the host and an accelerator, not from cpu to cpu");
    }
    return llvm::Error::success();
  }

  /// Both directions between the host and a device, and those between accelerators through the host.
  template <typename Set> void setLinks(const ir::TargetDevice &device, Set set) {
    for (const ir::TargetDevice &other : target.devices())
      if (&other != &device) {
        set(costs.model.link(device.name, other.name));
        set(costs.model.link(other.name, device.name));
      }
  }

  /// Between the devices of replicas for this device.
  passes::LinkCosts &replicaLink(const ir::TargetDevice &device) { return costs.model.link(device.name, device.name); }

  void apply(const passes::GivenLink &given) {
    auto set = [&](passes::LinkCosts &link) {
      link.bytesPerSecond = given.bytesPerSecond;
      link.latency = given.latency.value_or(link.latency);
      link.source = passes::CostSource::Given;
    };
    if (!given.isBetweenReplicas())
      return setLinks(*find(given.device), set);
    for (const ir::TargetDevice &device : target.devices())
      set(replicaLink(device));
  }

  void describe(const ir::TargetDevice &device) {
    auto given = request.caps.find(device.spelling());
    if (given == request.caps.end())
      given = request.caps.find(device.name);
    std::optional<int64_t> &cap = costs.memoryCaps.emplace_back();
    if (given != request.caps.end())
      cap = given->second;
    BackendDevice host;
    const BackendDevice *known = findDevice(files, device);
    if (device.name == ir::kHostDevice)
      known = &(host = describeHost());
    costs.model.device(device.name) = describedCosts(device, known, options);
    if (!known)
      return;
    if (!cap && device.name != ir::kHostDevice && known->memoryBytes > 0)
      cap = known->memoryBytes;
    if (known->linkBandwidth > 0) {
      auto set = [&](passes::LinkCosts &link) {
        link = {known->linkBandwidth, known->linkLatency, passes::CostSource::Description};
      };
      setLinks(device, set);
      set(replicaLink(device));
    }
  }

  void apply(const ClockCalibration &measured, const ir::TargetDevice &device) {
    if (const DeviceCalibration *rates = measured.findDevice(device))
      costs.model.device(device.name) = measuredCosts(*rates, costs.model.device(device.name));
    for (const ir::TargetDevice &other : target.devices())
      if (const LinkCalibration *link = measured.findLink(device, other))
        costs.model.link(device.name, other.name) = {link->bytesPerSecond, link->latency, passes::CostSource::Measured};
  }

  const ir::Target &target;
  const passes::PlacementRequest &request;
  const CompileOptions &options;
  std::vector<BackendFile> files;
  passes::TargetCosts costs;
};

} // namespace

llvm::Expected<passes::TargetCosts> costsOf(const ir::Target &target, const passes::PlacementRequest &request,
                                            const CompileOptions &options) {
  return CostAssembly(target, request, options).run();
}

} // namespace sluice::compiler
