#include "tests/backends/sim/SimTest.h"

#include <dlfcn.h>

namespace sluice::test {

const sluice_backend_run &simulator() {
  static const sluice_backend_run *table = []() -> const sluice_backend_run * {
    void *library = dlopen(SLUICE_BINARY_DIR "/lib/sluice/backends/sluice_sim_run.so", RTLD_NOW | RTLD_LOCAL);
    if (!library)
      ADD_FAILURE() << dlerror();
    auto query = reinterpret_cast<sluice_backend_query_fn>(dlsym(library, "sluice_backend_query"));
    return query()->run;
  }();
  return *table;
}

static void runInOrder(void *, int64_t tasks, void (*function)(void *, int64_t, int64_t), void *argument) {
  for (int64_t task = 0; task < tasks; ++task)
    function(argument, task, task + 1);
}

Simulation::Simulation(const std::string &settings, sluice_group *group) {
  static const sluice_run_services services{sizeof(services), nullptr, runInOrder};
  sluice_run_options options{sizeof(options), &services, settings.c_str(), group};
  status = simulator().open(&options, &run);
}

Simulation::~Simulation() {
  for (sluice_queue *queue : queues)
    simulator().queue_destroy(queue);
  for (sluice_event *event : events)
    simulator().event_destroy(event);
  simulator().close(run);
}

void *Simulation::allocate(int32_t device, size_t bytes) {
  void *address = nullptr;
  EXPECT_EQ(simulator().allocate(run, device, bytes, &address), SLUICE_OK) << error();
  return address;
}

sluice_queue *Simulation::queue(int32_t device, const char *name) {
  sluice_queue *queue = nullptr;
  EXPECT_EQ(simulator().queue_create(run, device, SLUICE_QUEUE_COMPUTE, name, &queue), SLUICE_OK) << error();
  return queues.emplace_back(queue);
}

sluice_event *Simulation::event() {
  sluice_event *event = nullptr;
  EXPECT_EQ(simulator().event_create(run, &event), SLUICE_OK) << error();
  return events.emplace_back(event);
}

sluice_event *Simulation::record(sluice_queue *queue) {
  sluice_event *recorded = event();
  EXPECT_EQ(simulator().record(queue, recorded), SLUICE_OK) << error();
  return recorded;
}

void Simulation::wait(sluice_queue *queue, sluice_event *event) {
  EXPECT_EQ(simulator().wait(queue, event), SLUICE_OK) << error();
}

void Simulation::finish(sluice_queue *queue) { EXPECT_EQ(simulator().synchronize_queue(queue), SLUICE_OK) << error(); }

std::pair<double, double> Simulation::times(sluice_queue *queue) {
  std::pair<double, double> times;
  EXPECT_EQ(simulator().event_times(record(queue), &times.first, &times.second), SLUICE_OK) << error();
  return times;
}

sluice_status Simulation::copy(sluice_queue *queue, int32_t fromDevice, const void *from, int32_t toDevice, void *to,
                               size_t bytes) {
  sluice_copy copy{sizeof(copy), fromDevice, toDevice, from, to, bytes, "x, model.cpp:3:1"};
  return simulator().copy(queue, &copy);
}

sluice_status Simulation::launch(sluice_queue *queue, const char *name, sluice_host_stage function,
                                 const std::vector<TestBuffer> &buffers, double flops, double bytes) {
  sluice_launch_stage stage{function, 1};
  sluice_call call{sizeof(call), 1, 0, 1};
  std::vector<void *> addresses;
  std::vector<sluice_buffer> infos;
  for (const TestBuffer &buffer : buffers) {
    addresses.push_back(buffer.address);
    infos.push_back({buffer.bytes, buffer.access});
  }
  sluice_launch launch{};
  launch.struct_size = sizeof(launch);
  launch.name = name;
  launch.addresses = addresses.data();
  launch.buffers = infos.data();
  launch.num_buffers = buffers.size();
  launch.buffer_size = sizeof(sluice_buffer);
  launch.call = &call;
  launch.stages = &stage;
  launch.num_stages = 1;
  launch.stage_size = sizeof(sluice_launch_stage);
  launch.flops = flops;
  launch.bytes = bytes;
  launch.kind = name;
  return simulator().launch(queue, &launch);
}

void increment(void *const *buffers, int64_t, int64_t, int64_t) { ++*static_cast<int32_t *>(buffers[0]); }
void twice(void *const *buffers, int64_t, int64_t, int64_t) { *static_cast<int32_t *>(buffers[0]) *= 2; }
void nothing(void *const *, int64_t, int64_t, int64_t) {}

} // namespace sluice::test
