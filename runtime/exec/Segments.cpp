#include "runtime/exec/Segments.h"

#include "runtime/exec/DeviceStep.h"

#include <algorithm>
#include <map>

namespace sluice::runtime {

/// Maximum number of sequences per segment: `leastKept`, or `keptOfEachCopy` for each call in flight if that is more.
/// This is enough for a few row counts, such as those of full batches and of the last batches. Microbatches of a call
/// with the same row count share a sequence.
static constexpr size_t leastKept = 8, keptOfEachCopy = 4;

static bool canBeCaptured(const DeviceStep &step, const Plan &plan) {
  const std::vector<size_t> &queues = step.action->queues;
  bool isOwn = plan.queues[queues.front()].device != 0 && step.queue->context().captures();
  auto endsThere = [&](const DeviceStep::LastUse &end) { return end.queue == step.queue; };
  return isOwn && step.launch && std::all_of(step.lastUses.begin(), step.lastUses.end(), endsThere);
}

using Run = std::vector<size_t>;

/// The steps as runs, in the order of their first steps. A run of several steps becomes a segment.
static std::vector<Run> findRuns(const std::vector<DeviceStep> &steps, const std::vector<size_t> &called,
                                 const Plan &plan, const std::function<bool(size_t)> &isCut) {
  std::vector<Run> runs;
  std::map<size_t, size_t> open; // by queue, the run that may still grow
  for (size_t number : called) {
    const DeviceStep &step = steps[number];
    bool isCaptured = canBeCaptured(step, plan);
    if (!isCaptured || step.hasWaits)
      for (size_t queue : step.action->queues)
        open.erase(queue);
    auto [run, isNew] = open.try_emplace(step.action->queues.front(), runs.size());
    if (isNew)
      runs.emplace_back();
    runs[run->second].push_back(number);
    if (!isCaptured || step.hasEvents || isCut(number))
      open.erase(run);
  }
  return runs;
}

SegmentedSteps findSegments(const std::vector<DeviceStep> &steps, const std::vector<size_t> &called, const Plan &plan,
                            const std::function<bool(size_t)> &isCut) {
  SegmentedSteps segmented;
  size_t most = std::max(leastKept, keptOfEachCopy * static_cast<size_t>(plan.inFlight));
  for (Run &run : findRuns(steps, called, plan, isCut)) {
    SegmentedSteps::Place &place = segmented.order.emplace_back();
    place.step = run.front();
    if (run.size() == 1)
      continue;
    place.segment = segmented.segments.size();
    segmented.segments.push_back({std::move(run), SequenceCache(*steps[place.step].queue, most)});
  }
  return segmented;
}

} // namespace sluice::runtime
