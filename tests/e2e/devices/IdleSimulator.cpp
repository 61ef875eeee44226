#include "tests/e2e/devices/IdleSimulator.h"

#include "runtime/plugins/BackendLoader.h"
#include "tools/compiler/Installation.h"
#include <vector>

namespace sluice::test {

static const sluice_backend_run &simulator() {
  static const sluice_backend_run &half = runtime::findRunHalf("sim", {compiler::findBackendFolder()});
  return half;
}

static sluice_status launchNothing(sluice_queue *queue, const sluice_launch *launch) {
  std::vector<sluice_launch_stage> stages;
  for (size_t i = 0; i < launch->num_stages; ++i)
    stages.push_back(*sluice_launch_stage_at(launch, i));
  for (sluice_launch_stage &stage : stages)
    stage.function = [](void *const *, int64_t, int64_t, int64_t) {};
  sluice_launch idle = *launch;
  idle.stages = stages.data();
  return simulator().launch(queue, &idle);
}

const sluice_backend_run &idleSimulator() {
  static const sluice_backend_run half = [] {
    sluice_backend_run idle = simulator();
    idle.launch = launchNothing;
    return idle;
  }();
  return half;
}

} // namespace sluice::test
