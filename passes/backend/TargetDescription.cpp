#include "passes/backend/TargetDescription.h"

#include "passes/Obstacle.h"
#include "passes/driver/OptionValues.h"

namespace sluice::passes {

static std::vector<PublishedPeak> peaksOf(const sluice_target_info &info) {
  std::vector<PublishedPeak> peaks;
  for (size_t number = 0; info.peaks && number < info.num_peaks; ++number) {
    const sluice_peak &its = *sluice_target_peak_at(&info, number);
    peaks.push_back(
        {its.architecture, its.compute_major, its.compute_minor, its.kind_ending, its.flops, its.memory_bandwidth});
  }
  return peaks;
}

llvm::Expected<TargetDescription> describeTarget(const sluice_backend_compile &backend,
                                                 const sluice_backend_compile &host, const CompileOptions &options) {
  std::string settings = settingsOf(options, backend.name);
  const std::string &cpu = options.target_cpu;
  sluice_compile_services services{sizeof(services), &host};
  sluice_target_options its{sizeof(its), cpu.c_str(), 0, &services, settings.c_str(), nullptr, mathOf(options)};
  sluice_session *session = nullptr;
  sluice_target_info info{};
  info.struct_size = sizeof(info);
  sluice_status status = backend.begin(&its, &session);
  if (status == SLUICE_OK)
    status = backend.describe(session, &info);
  TargetDescription description;
  std::string reason;
  if (status == SLUICE_OK)
    description = {info.device_type, info.cpu, info.vector_bits, info.instructions ? info.instructions : "",
                   peaksOf(info)};
  else
    reason = session ? backend.last_error(session) : "no reason reported";
  if (session)
    backend.end(session);
  if (status == SLUICE_OK)
    return description;
  return refuse(status == SLUICE_USAGE ? Obstacle::Usage : Obstacle::Unsupported,
                llvm::Twine("backend '") + backend.name + "' refuses the target '" + cpu +
                    (settings.empty() ? "" : "' with '" + settings) + "': " + reason);
}

} // namespace sluice::passes
