// `bench`: the time of an entry point, step by step.
#include "runtime/base/Status.h"
#include "runtime/base/Text.h"
#include "runtime/instance/BenchState.h"
#include "runtime/plan/DeviceName.h"
#include "runtime/runner/report/Report.h"
#include "runtime/runner/verbs/BenchDevices.h"
#include "runtime/runner/verbs/BenchOutputs.h"
#include "runtime/runner/verbs/Verbs.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <limits>
#include <sys/resource.h>

namespace sluice::runtime {

using Clock = std::chrono::steady_clock;

static constexpr int warmUpSteps = 3, leastSteps = 5, wantedSteps = 20, mostSteps = 1'000'000;
// Factor on the requested time: a benchmark with fewer than `wantedSteps` steps continues up to this time.
static constexpr double mostTime = 5;

/// Floating-point operations of a call, over all replicas.
static double flopsOf(const Plan &plan, const Entry &entry, int64_t rows) {
  double flops = 0;
  std::vector<const Entry *> parts = plan.partsOf(entry);
  std::vector<int64_t> timesOfPart = plan.timesOf(entry, plan.microbatchesFor(entry, rows));
  for (int64_t replica = 0; replica < plan.replicas; ++replica)
    for (size_t i = 0; i < parts.size(); ++i)
      for (auto [action, times] : parts[i]->allActions())
        if (const Launch *launch = action->launch()) { // the microbatches together have the replica's rows
          const Cost &cost = plan.kernels[launch->kernel].cost;
          flops += static_cast<double>(times) * (cost.flops * static_cast<double>(timesOfPart[i]) +
                                                 cost.flopsFor(shareOf(plan, rows, replica).rows) - cost.flops);
        }
  return flops;
}

/// Seconds of each step; inputs are set outside the measured time. Measures until `seconds` have passed and there are
/// 20 steps. If 20 steps take longer than `mostTime` times `seconds`, 5 suffice. The clock of the first process
/// decides.
static std::vector<double> timeSteps(Instance &instance, const Entry &entry, int64_t rows, const Options &options,
                                     Processes &processes) {
  double seconds = options.seconds;
  uint64_t seed = options.seed.value_or(0);
  BenchState state(instance, entry, seed);
  std::vector<double> times;
  Clock::time_point begin = Clock::now();
  for (int i = 0; i < mostSteps; ++i) {
    state.prepare(i);
    Clock::time_point start = Clock::now();
    instance.run(entry, rows);
    Clock::time_point end = Clock::now();
    if (i == warmUpSteps)
      begin = start;
    if (i >= warmUpSteps)
      times.push_back(std::chrono::duration<double>(end - start).count());
    double passed = std::chrono::duration<double>(end - begin).count();
    bool enough = passed >= (times.size() >= wantedSteps ? seconds : mostTime * seconds);
    if (times.size() >= leastSteps && processes.decide(enough))
      break;
  }
  return times;
}

static double quantile(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  return values[std::min(values.size() - 1, static_cast<size_t>(share * static_cast<double>(values.size())))];
}

static int64_t residentBytes() {
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<int64_t>(usage.ru_maxrss) * 1024;
}

static const Entry &entryToMeasure(const Instance &instance, const Options &options) {
  if (!options.entry.empty())
    return instance.entry(options.entry);
  for (const char *name : {"train_step", "predict"})
    if (const Entry *entry = instance.plan().findEntry(name))
      return *entry;
  if (instance.plan().entries.empty())
    failInvalid("the model has no entry point");
  return instance.plan().entries.front();
}

static void printKernels(const Json &result) {
  const Json &machine = result["machine"];
  std::string reads;
  for (const Json &point : machine["bandwidth"])
    reads += concat(reads.empty() ? "" : ", ", bytesText(point["bytes"].get<uint64_t>()), " ",
                    fixedText(point["gbps"].get<double>(), 0));
  printLine(concat("machine: ", fixedText(machine["peak_gflops"].get<double>(), 0), " GFLOP/s (",
                   machine["vector"].get<std::string>(), "); GB/s when reading ", reads));
  char line[256];
  std::snprintf(line, sizeof line, "%-36s %9s %9s %8s %9s %-7s %6s", "kernel", "ms", "GFLOP/s", "GB/s", "bound ms",
                "by", "share");
  printLine(line);
  for (const Json &kernel : result["kernels"]) {
    std::snprintf(line, sizeof line, "%-36s %9.4f %9.2f %8.2f %9.4f %-7s %5.0f%%",
                  kernel["name"].get<std::string>().c_str(), kernel["ms"].get<double>(), kernel["gflops"].get<double>(),
                  kernel["gbps"].get<double>(), kernel["bound"].get<double>(),
                  kernel["bound_by"].get<std::string>().c_str(), 100 * kernel["share"].get<double>());
    printLine(line);
  }
}

/// A device of a replica here, as users spell it: "cpu", "sim:1".
static std::string spellingOf(const Instance &instance, int64_t replica, size_t device) {
  const Device &known = instance.plan().devices[device];
  return device == 0 ? known.name : concat(known.backend, ":", instance.executor(replica).devices().ordinal(device));
}

/// The planned peak memory of an entry point, on each device of the replicas here.
static Json peaksJson(const Instance &instance, const Entry &entry) {
  Json peaks = Json::array();
  for (int64_t replica = 0; replica < instance.replicasHere(); ++replica)
    for (size_t device = 0; device < instance.plan().devices.size(); ++device) {
      peaks.push_back({{"device", spellingOf(instance, replica, device)},
                       {"name", shownDevice(instance.plan().devices[device].name)},
                       {"bytes", entry.peakBytes[device]}});
      if (instance.replicas() > 1)
        peaks.back()["replica"] = instance.numberOfReplica(replica);
    }
  return peaks;
}

/// "sim:0.in"
static std::string queueText(const Instance &instance, size_t queue) {
  const Queue &known = instance.plan().queues[queue];
  return spellingOf(instance, 0, known.device) + known.name.substr(instance.plan().devices[known.device].name.size());
}

/// The work of the last call, in milliseconds from the start of its first piece of work.
static Json lastCallJson(const DeviceTimes &times, const Instance &instance, const Entry &entry, int64_t rows) {
  const Plan &plan = instance.plan();
  LastCall last = lastCallOf(plan, entry, plan.microbatchesFor(entry, rows), times.work, times.isHostClock);
  Json work = Json::array();
  for (auto [time, action] : last.work) {
    const Copy *copy = action->copy();
    work.push_back({{"name", copy ? copy->value : time->work.name},
                    {"queue", queueText(instance, time->work.queue)},
                    {"start_ms", (time->start - last.begin) * 1e3},
                    {"end_ms", (time->end - last.begin) * 1e3}});
  }
  return work;
}

static Json scheduleJson(const DeviceTimes &times, const Instance &instance, const Entry &entry, int64_t rows) {
  return {{"clock", times.isHostClock ? "host" : "devices"},
          {"measured_ms", times.steadySeconds * 1e3},
          {"predicted_ms", times.predictedSeconds * 1e3},
          {"serial_ms", times.serialSeconds * 1e3},
          {"work", lastCallJson(times, instance, entry, rows)}};
}

/// The predicted and measured times of a call's collectives, in milliseconds.
static Json communicationJson(const DeviceTimes &times) {
  Json list = Json::array();
  double predicted = 0, measured = 0;
  for (const CollectiveTime &time : times.collectives) {
    const CollectiveForecast &its = time.predicted;
    predicted += its.seconds();
    measured += time.measured.end - time.measured.start;
    list.push_back({{"name", its.collective->name},
                    {"kind", Collective::kindNames[static_cast<size_t>(its.collective->kind)]},
                    {"bytes", its.bytes},
                    {"ready_ms", its.ready * 1e3},
                    {"start_ms", its.start * 1e3},
                    {"end_ms", its.end * 1e3},
                    {"exposed_ms", its.exposed * 1e3},
                    {"measured_start_ms", time.measured.start * 1e3},
                    {"measured_end_ms", time.measured.end * 1e3}});
  }
  return {{"ms", predicted * 1e3},
          {"exposed_ms", times.exposedSeconds * 1e3},
          {"measured_ms", measured * 1e3},
          {"measured_exposed_ms", times.measuredExposedSeconds * 1e3},
          {"collectives", list}};
}

static void printCommunication(const Json &communication) {
  auto number = [](const Json &value) { return fixedText(value.get<double>(), 4); };
  printLine(concat("communication, predicted: ", number(communication["ms"]), " ms a call, ",
                   number(communication["exposed_ms"]),
                   " ms of it exposed; measured: ", number(communication["measured_ms"]), " ms, ",
                   number(communication["measured_exposed_ms"]), " ms of it exposed"));
  for (const Json &item : communication["collectives"])
    printLine(concat("  ", item["kind"].get<std::string>(), " of ", item["bytes"].get<int64_t>(), " B ready at ",
                     number(item["ready_ms"]), ", predicted from ", number(item["start_ms"]), " to ",
                     number(item["end_ms"]), " ms, measured from ", number(item["measured_start_ms"]), " to ",
                     number(item["measured_end_ms"]), " ms  ", item["name"].get<std::string>()));
}

static void printPeaks(const Json &peaks) {
  for (const Json &peak : peaks) {
    std::string device = peak["device"].get<std::string>(), name = peak["name"].get<std::string>();
    printLine(concat("planned peak of ", name, name == device ? "" : concat(" (", device, ")"),
                     peak.contains("replica") ? concat(", replica ", peak["replica"].get<int64_t>()) : "", ": ",
                     bytesText(peak["bytes"].get<uint64_t>())));
  }
}

static void printResult(const Json &result) {
  auto number = [](const Json &value) { return value.get<double>(); };
  auto count = [](const Json &value) { return value.get<int64_t>(); };
  std::string cut;
  if (result.contains("microbatches"))
    cut = concat(" in ", microbatchesText(count(result["microbatches"]), count(result["microbatch_rows"])));
  printLine(concat(result["entry"].get<std::string>(), ", ", count(result["rows"]), " rows", cut, ", ",
                   count(result["threads"]), " threads, ", count(result["steps"]), " steps"));
  printLine(concat("median ", fixedText(number(result["median_ms"]), 3), " ms, p90 ",
                   fixedText(number(result["p90_ms"]), 3), " ms, ", rateText(number(result["steps_per_s"])),
                   " steps/s, ", rateText(number(result[rateKey])), " rows/s"));
  bool hasOnePeak = result["peaks"].size() == 1;
  std::string peak =
      hasOnePeak ? concat(", planned peak ", bytesText(result["peak_bytes"].get<uint64_t>())) : std::string();
  printLine(concat(fixedText(number(result["gflops"]), 2), " GFLOP/s", peak, ", resident ",
                   bytesText(result["rss_bytes"].get<uint64_t>())));
  if (!hasOnePeak)
    printPeaks(result["peaks"]);
  if (result.contains("sequences"))
    printLine(concat("untimed, by the host's clock: ", fixedText(number(result["untimed_ms"]), 4), " ms a call, ",
                     count(result["sequences"]["kept"]), " sequences kept, replayed ",
                     count(result["sequences"]["replays"]), " times"));
  if (result.contains("outputs")) {
    const Json &outputs = result["outputs"];
    auto ms = [&](const char *name) { return concat(fixedText(number(outputs[name]), 4), " ms"); };
    printLine(concat("a call alone returns in ", ms("returned_ms"), " and is done in ", ms("done_ms"),
                     "; among others ", ms("unread_ms"), ", ", ms("read_ms"), " with its scalars read, ", ms("kept_ms"),
                     " with them kept"));
  }
  if (result.contains("schedule")) {
    const Json &schedule = result["schedule"];
    printLine(concat("schedule, by the ", schedule["clock"] == "host" ? "host's" : "devices'",
                     " clock: ", fixedText(number(schedule["measured_ms"]), 4), " ms a call, predicted ",
                     fixedText(number(schedule["predicted_ms"]), 4), " ms, one after the other ",
                     fixedText(number(schedule["serial_ms"]), 4), " ms"));
  }
  if (result.contains("communication"))
    printCommunication(result["communication"]);
  if (result.contains("kernels"))
    printKernels(result);
}

static void checkKernels(const Instance &instance) {
  if (!instance.plan().isHostOnly())
    failUnsupported("--kernels measures kernels of the host alone, and this model has other devices");
  if (instance.replicas() > 1)
    failUnsupported(
        concat("--kernels measures kernels that run alone, and this model has ", instance.replicas(), " replicas"));
}

/// The figures that every model has.
static Json resultOf(const std::vector<double> &times, const Instance &instance, const Entry &entry, int64_t rows) {
  double median = quantile(times, 0.5);
  Json result;
  result["entry"] = entry.name;
  result["rows"] = rows;
  result["replicas"] = instance.replicas();
  if (!entry.parts.empty()) {
    result["microbatches"] = instance.plan().microbatchesFor(entry, rows);
    RowShare share = shareOf(instance.plan(), rows, 0);
    result["microbatch_rows"] = microbatchOf(instance.plan(), share, /*replica=*/0, /*number=*/0).rows;
  }
  result["threads"] = instance.threads();
  result["steps"] = times.size();
  result["median_ms"] = median * 1e3;
  result["p90_ms"] = quantile(times, 0.9) * 1e3;
  result["steps_per_s"] = 1 / median;
  result[rateKey] = static_cast<double>(rows) / median;
  result["gflops"] = flopsOf(instance.plan(), entry, rows) / median * 1e-9;
  result["peak_bytes"] = entry.peakBytes.front();
  result["peaks"] = peaksJson(instance, entry);
  result["rss_bytes"] = residentBytes();
  return result;
}

int runBench(const Options &options, Processes &processes) {
  Instance instance = startInstance(options, processes.group());
  const Entry &entry = entryToMeasure(instance, options);
  int64_t rows = batchRows(options, instance.plan());
  beginStates(instance, options, options.seed.value_or(0), checkSettings(instance.plan(), options.settings));
  bool hasDevices = !instance.plan().isHostOnly();
  if (options.kernels)
    checkKernels(instance);
  processes.agree({{"the entry point", entry.name}, {"the number of rows", std::to_string(rows)}}, instance);
  startTrace(instance, options);
  std::vector<double> times;
  DeviceTimes devices;
  Json outputs;
  instance.team().enter([&] {
    if (hasDevices)
      devices = benchDevices(instance, entry, rows, options.seconds, processes);
    times = hasDevices ? devices.steps : timeSteps(instance, entry, rows, options, processes);
    if (options.benchesOutputs)
      outputs = benchOutputs(instance, entry, rows, options.seconds, processes);
  });
  if (!hasDevices)
    devices.work = instance.times().take();
  Json result = resultOf(times, instance, entry, rows);
  if (options.kernels)
    result.update(benchKernels(instance, entry, rows, options.seconds));
  if (options.benchesOutputs)
    result["outputs"] = outputs;
  if (hasDevices) {
    result["schedule"] = scheduleJson(devices, instance, entry, rows);
    if (!devices.collectives.empty())
      result["communication"] = communicationJson(devices);
    result["untimed_ms"] = devices.untimedSeconds * 1e3;
    result["sequences"] = sequencesJson(instance.replayCount());
  }
  if (processes.isFirst())
    options.json ? printLine(result.dump()) : printResult(result);
  finishRun(instance, options, devices.work);
  return 0;
}

} // namespace sluice::runtime
