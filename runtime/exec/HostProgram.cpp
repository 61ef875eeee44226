#include "runtime/exec/HostProgram.h"

#include <chrono>

namespace sluice::runtime {

HostLaunch::HostLaunch(const Launch &launch, const Plan &plan, const sluice_artifact &artifact,
                       std::span<std::byte *const> arenas) {
  for (const Stage &stage : plan.kernels[launch.kernel].stages)
    stages_.push_back({artifact.stages[stage.function], &stage});
  for (int64_t call : {0, 1})
    for (const Buffer &buffer : launch.buffers)
      buffers_[static_cast<size_t>(call)].push_back(arenas[buffer.slot.arena] + buffer.slot.offsetFor(call));
}

namespace {
struct StageCall {
  sluice_stage_fn function;
  void *const *buffers;
  int64_t rows;
};
} // namespace

static void runTasks(void *context, int64_t begin, int64_t end) {
  const StageCall &call = *static_cast<StageCall *>(context);
  call.function(call.buffers, call.rows, begin, end);
}

void HostLaunch::run(Team &team, int64_t call, int64_t rows) const {
  void *const *buffers = buffers_[static_cast<size_t>(call & 1)].data();
  for (const HostStage &stage : stages_) {
    StageCall tasks{stage.function, buffers, rows};
    team.forEach(stage.stage->tasksFor(rows), runTasks, &tasks);
  }
}

HostProgram::HostProgram(const Entry &entry, const Plan &plan, const sluice_artifact &artifact,
                         std::span<std::byte *const> arenas)
    : entry_(&entry) {
  for (const Launch *launch : entry.launches())
    launches_.emplace_back(*launch, plan, artifact, arenas);
}

void HostProgram::run(Team &team, int64_t call, int64_t rows, std::span<double> times, const Watcher &watcher) const {
  using Clock = std::chrono::steady_clock;
  bool timed = !launches_.empty() && times.size() == launches_.size();
  Clock::time_point start = timed ? Clock::now() : Clock::time_point();
  for (size_t i = 0; i < launches_.size(); ++i) {
    launches_[i].run(team, call, rows);
    if (watcher)
      watcher(*entry_, i);
    if (!timed)
      continue;
    Clock::time_point now = Clock::now();
    times[i] += std::chrono::duration<double>(now - start).count();
    start = now;
  }
}

} // namespace sluice::runtime
