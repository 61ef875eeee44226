#include "runtime/runner/report/TraceFile.h"

#include "runtime/base/Json.h"
#include "runtime/base/Text.h"
#include "runtime/plan/DeviceName.h"

#include <algorithm>

namespace sluice::runtime {

// Separate processes in the trace, because work timed by different clocks would otherwise appear concurrent.
static constexpr int hostClock = 1, deviceClock = 2;

static int processOf(const WorkTime &time) { return time.isHostClock ? hostClock : deviceClock; }

static Json metadata(const char *kind, int process, size_t track, const std::string &name) {
  return {{"name", kind}, {"ph", "M"}, {"pid", process}, {"tid", track}, {"args", {{"name", name}}}};
}

/// The actions of a plan's entry points, by number.
using Actions = std::vector<std::vector<ListedAction>>;

static Json eventOf(const Plan &plan, const Actions &actions, const WorkTime &time, double begin) {
  const Work &work = time.work;
  const Action *action = work.action ? actions[work.entry][*work.action].action : nullptr;
  const Launch *launch = action ? action->launch() : nullptr;
  Json arguments;
  if (action)
    arguments = {{"entry", plan.entries[work.entry].name}, {"call", work.call}};
  if (launch)
    arguments["source"] = launch->source;
  if (action && !action->copies().empty())
    arguments["reason"] = action->copies().front().reason;
  const Collective *collective = action ? action->collective() : nullptr;
  if (!launch)
    arguments["bytes"] = work.bytes;
  std::string_view kind = collective ? Collective::kindNames[static_cast<size_t>(collective->kind)] : "copy";
  std::string name = launch ? work.name : concat(kind, " ", work.name, ", ", work.bytes, " B");
  return {{"name", name},
          {"cat", launch       ? "kernel"
                  : collective ? "collective"
                               : "copy"},
          {"ph", "X"},
          {"pid", processOf(time)},
          {"tid", work.queue},
          {"ts", (time.start - begin) * 1e6},
          {"dur", std::max(time.end - time.start, 0.0) * 1e6},
          {"args", arguments}};
}

std::string traceText(const Plan &plan, const std::vector<WorkTime> &times) {
  Json events = Json::array();
  Actions actions;
  for (const Entry &entry : plan.entries)
    actions.push_back(entry.allActions());
  for (int process : {hostClock, deviceClock}) {
    std::vector<const WorkTime *> work;
    for (const WorkTime &time : times)
      if (processOf(time) == process)
        work.push_back(&time);
    if (work.empty())
      continue;
    // The addresses keep works with equal starts in their recorded order, because all are in one vector.
    std::sort(work.begin(), work.end(),
              [](const WorkTime *a, const WorkTime *b) { return std::pair(a->start, a) < std::pair(b->start, b); });
    events.push_back(
        metadata("process_name", process, 0,
                 concat(plan.model, process == hostClock ? ", by the host's clock" : ", by the devices' clock")));
    for (size_t queue = 0; queue < plan.queues.size(); ++queue)
      events.push_back(metadata("thread_name", process, queue, shownDevice(plan.queues[queue].name)));
    for (const WorkTime *time : work)
      events.push_back(eventOf(plan, actions, *time, work.front()->start));
  }
  Json trace;
  trace["displayTimeUnit"] = "ns";
  trace["traceEvents"] = std::move(events);
  return trace.dump(-1, ' ', false, Json::error_handler_t::replace);
}

} // namespace sluice::runtime
