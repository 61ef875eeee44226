#include "runtime/runner/verbs/BenchOutputs.h"

#include "runtime/instance/ActionTimes.h"
#include "runtime/instance/BenchState.h"
#include "runtime/runner/report/Means.h"
#include "runtime/runner/verbs/BenchDevices.h"

#include <tuple>
#include <utility>
#include <vector>

namespace sluice::runtime {

static constexpr int64_t leastCallsLookedAt = 8, callsAlone = 21;

/// Seconds until a call returns, and until its work completes, without other work in flight.
static std::pair<double, double> callAlone(Instance &instance, const Entry &entry, int64_t rows) {
  BenchState state(instance, entry);
  std::vector<double> returned, done;
  int64_t before = 2 * instance.plan().inFlight;
  for (int64_t number = 0; number < before + callsAlone; ++number) {
    state.prepare(number);
    instance.synchronize();
    double begin = WorkTimes::now();
    instance.run(entry, rows);
    double end = WorkTimes::now();
    instance.synchronize();
    if (number < before)
      continue;
    returned.push_back(end - begin);
    done.push_back(WorkTimes::now() - begin);
  }
  return {medianOf(returned), medianOf(done)};
}

Json benchOutputs(Instance &instance, const Entry &entry, int64_t rows, double seconds, Processes &processes) {
  auto [returned, done] = callAlone(instance, entry, rows);
  std::vector<std::byte> place;
  auto readScalars = [&] {
    for (const Value &output : entry.outputs)
      if (isScalar(output)) {
        place.resize(static_cast<size_t>(instance.bytesFor(output, rows)));
        instance.getOutput(output, place, rows);
      }
  };
  double unread = callAgainAndAgain(instance, entry, rows, seconds, leastCallsLookedAt, processes);
  double read =
      callAgainAndAgain(instance, entry, rows, seconds, leastCallsLookedAt, processes, {.behindEach = readScalars});
  Means means(instance, entry);
  double kept =
      callAgainAndAgain(instance, entry, rows, seconds, leastCallsLookedAt, processes,
                        {.behindEach = [&] { means.add(rows); }, .behindLast = [&] { std::ignore = means.results(); }});
  return {{"returned_ms", returned * 1e3},
          {"done_ms", done * 1e3},
          {"unread_ms", unread * 1e3},
          {"read_ms", read * 1e3},
          {"kept_ms", kept * 1e3}};
}

} // namespace sluice::runtime
