#include "tools/compiler/placement/costs/MeasureLinks.h"

#include "ir/Dialect.h"
#include "runtime/device/DeviceContext.h"
#include "runtime/device/WorkTimes.h"
#include "runtime/instance/ActionTimes.h"
#include "tools/compiler/Diagnostics.h"
#include "tools/compiler/LoadedModel.h"
#include <array>
#include <optional>

using sluice::runtime::DeviceContext;

namespace sluice::compiler {

static constexpr std::array<size_t, 3> kSizes = {64, size_t(1) << 22, size_t(1) << 25};

namespace {

class LinkTiming {
public:
  LinkTiming(const ir::TargetDevice &from, const ir::TargetDevice &to, DeviceContext &context)
      : context(context), hasClock(context.takesHostQueues() && context.tellsTimes()), fromDevice(ordinalOf(from)),
        toDevice(ordinalOf(to)),
        queue(context, fromDevice == SLUICE_HOST ? toDevice : fromDevice, SLUICE_QUEUE_COPY, "link"),
        host(context, kSizes.back(), "memory to measure a link with") {
    if (fromDevice != SLUICE_HOST)
      source.emplace(context, fromDevice, kSizes.back(), "a buffer to measure a link with");
    if (toDevice != SLUICE_HOST)
      target.emplace(context, toDevice, kSizes.back(), "a buffer to measure a link with");
    if (hasClock)
      queue.noteTimes(true);
  }

  /// The median of several copies.
  double seconds(size_t bytes) {
    constexpr int kCopies = 7;
    std::vector<double> times;
    for (int i = 0; i < kCopies; ++i)
      times.push_back(copyOnce(bytes));
    return runtime::medianOf(times);
  }

private:
  static int32_t ordinalOf(const ir::TargetDevice &device) {
    return device.name == ir::kHostDevice ? SLUICE_HOST : int32_t(device.ordinal);
  }

  double copyOnce(size_t bytes) {
    sluice_copy copy{sizeof(copy),
                     fromDevice,
                     toDevice,
                     source ? source->data() : host.data(),
                     target ? target->data() : host.data(),
                     bytes,
                     "measuring a link"};
    double start = runtime::WorkTimes::now();
    queue.copy(copy);
    runtime::DeviceEvent event(context);
    queue.record(event);
    event.synchronize();
    if (!hasClock)
      return runtime::WorkTimes::now() - start;
    auto [begin, end] = event.times();
    return end - begin;
  }

  DeviceContext &context;
  bool hasClock; // that also times the host
  int32_t fromDevice, toDevice;
  runtime::DeviceQueue queue;
  runtime::CopiedHostMemory host;
  std::optional<runtime::DeviceMemory> source, target;
};

} // namespace

LinkCalibration timeLink(const ir::TargetDevice &from, const ir::TargetDevice &to, DeviceContext &context) {
  LinkCalibration link;
  link.from = from.spelling();
  link.to = to.spelling();
  LinkTiming timing(from, to, context);
  double small = timing.seconds(kSizes[0]), middle = timing.seconds(kSizes[1]), large = timing.seconds(kSizes[2]);
  link.bytesPerSecond = double(kSizes[2] - kSizes[1]) / std::max(large - middle, 1e-9);
  link.latency = std::max(small - double(kSizes[0]) / link.bytesPerSecond, 0.0);
  return link;
}

llvm::Expected<LinkCalibration> measureLink(const ir::TargetDevice &from, const ir::TargetDevice &to,
                                            const std::vector<runtime::BackendFile> &backends,
                                            const MeasureRequest &request) {
  LinkCalibration link;
  const std::string &backend = to.name == ir::kHostDevice ? from.backend : to.backend;
  auto file = llvm::find_if(backends, [&](const runtime::BackendFile &known) {
    return known.accepted() && known.hasRun && known.name == backend;
  });
  if (file == backends.end())
    return makeError(ExitCode::Unsupported,
                     "there is no run half of the backend '" + backend + "' to measure links with");
  auto setting = request.settings.find(backend);
  auto given = request.runHalves.find(backend);
  llvm::Error error = guardRuntime([&] {
    runtime::Team team(1);
    const sluice_backend_run &half =
        given == request.runHalves.end() ? *runtime::loadBackend(file->path).run : *given->second;
    DeviceContext context(backend, half, setting == request.settings.end() ? "" : setting->second, team);
    link = timeLink(from, to, context);
    return llvm::Error::success();
  });
  if (error)
    return std::move(error);
  return link;
}

} // namespace sluice::compiler
