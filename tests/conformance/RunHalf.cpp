#include "tests/conformance/RunHalf.h"

#include "runtime/plugins/BackendTables.h"

#include <algorithm>
#include <cstdlib>

namespace sluice::conformance {

Bytes pattern(size_t bytes, unsigned seed) {
  Bytes data(bytes);
  uint32_t state = seed * 2654435761u + 1;
  for (unsigned char &byte : data) {
    state = state * 1664525u + 1013904223u;
    byte = static_cast<unsigned char>(state >> 24);
  }
  return data;
}

sluice_launch launchOf(const char *name, const sluice_call &call) {
  sluice_launch launch{};
  launch.struct_size = sizeof(launch);
  launch.name = name;
  launch.kind = "conformance";
  launch.call = &call;
  launch.buffer_size = sizeof(Larger<sluice_buffer>);
  launch.stage_size = sizeof(Larger<sluice_launch_stage>);
  return launch;
}

/// Runs the tasks one by one and the last one first: their order must not matter.
static void runBackwards(void *, int64_t tasks, void (*function)(void *, int64_t, int64_t), void *argument) {
  for (int64_t task = tasks; task-- > 0;)
    function(argument, task, task + 1);
}

static const sluice_run_services kServices{sizeof(kServices), nullptr, runBackwards};

RunHalf::RunHalf(const Subject &subject, int32_t devices, sluice_group *group) : patience_(subject.patience) {
  if (!subject.run)
    throw Skipped("there is no run half");
  table_ = runtime::wholeRunHalf(*subject.run);
  sluice_run_options options{sizeof(options), &kServices, subject.settings.c_str(), group};
  check(table_.open(&options, &run_), "open");
  check(table_.device_count(run_, &devices_), "device_count");
  if (devices_ < devices)
    throw Skipped("there are " + std::to_string(devices_) + " devices, and the test needs " + std::to_string(devices));
}

RunHalf::~RunHalf() {
  for (sluice_queue *queue : queues_)
    table_.queue_destroy(queue);
  for (sluice_event *event : events_)
    table_.event_destroy(event);
  for (auto [device, address] : memory_)
    device == SLUICE_HOST ? std::free(address) : static_cast<void>(table_.release(run_, device, address));
  table_.close(run_);
}

std::string RunHalf::lastError() const {
  const char *text = run_ ? table_.last_error(run_) : nullptr;
  return text ? text : "";
}

void RunHalf::check(sluice_status status, const std::string &what) const {
  if (status != SLUICE_OK)
    throw Failed(what + " ended with status " + std::to_string(status) + ": " + lastError());
}

void *RunHalf::allocate(size_t bytes, int32_t device) {
  void *address = nullptr;
  if (device == SLUICE_HOST)
    address = std::calloc(bytes, 1);
  else
    check(table_.allocate(run_, device, bytes, &address), "allocate");
  memory_.emplace_back(device, address);
  return address;
}

void RunHalf::release(void *address, int32_t device) {
  std::erase(memory_, std::pair(device, address));
  check(table_.release(run_, device, address), "release");
}

sluice_queue *RunHalf::queue(int32_t device, sluice_queue_kind kind) {
  sluice_queue *queue = nullptr;
  check(table_.queue_create(run_, device, kind, "conformance", &queue), "queue_create");
  return queues_.emplace_back(queue);
}

sluice_event *RunHalf::event() {
  sluice_event *event = nullptr;
  check(table_.event_create(run_, &event), "event_create");
  return events_.emplace_back(event);
}

sluice_event *RunHalf::record(sluice_queue *queue) {
  sluice_event *recorded = event();
  check(table_.record(queue, recorded), "record");
  return recorded;
}

void RunHalf::noteTimes(sluice_queue *queue) {
  if (!table_.event_times)
    throw Skipped("it does not tell times");
  if (table_.note_times)
    check(table_.note_times(queue, 1), "note_times");
}

std::pair<double, double> RunHalf::times(sluice_event *event) const {
  double start = 0, end = 0;
  check(table_.event_times(event, &start, &end), "event_times");
  return {start, end};
}

void RunHalf::wait(sluice_queue *queue, sluice_event *event) { check(table_.wait(queue, event), "wait"); }
void RunHalf::finish(sluice_queue *queue) { check(table_.synchronize_queue(queue), "synchronize_queue"); }

sluice_device_info RunHalf::info(int32_t device) const {
  sluice_device_info info{};
  info.struct_size = sizeof(info);
  check(table_.device_info(run_, device, &info), "device_info");
  return info;
}

void RunHalf::copy(sluice_queue *queue, const sluice_copy &copy) { check(table_.copy(queue, &copy), "copy"); }

void RunHalf::upload(sluice_queue *queue, const Bytes &from, void *to, int32_t device) {
  copy(queue, {sizeof(sluice_copy), SLUICE_HOST, device, from.data(), to, from.size(), "up"});
}

void RunHalf::download(sluice_queue *queue, const void *from, Bytes &to, int32_t device) {
  copy(queue, {sizeof(sluice_copy), device, SLUICE_HOST, from, to.data(), to.size(), "down"});
}

Sequence RunHalf::capture(sluice_queue *queue, const std::function<void()> &put) {
  sluice_sequence *sequence = nullptr;
  check(table_.capture_begin(queue), "capture_begin");
  put();
  check(table_.capture_end(queue, &sequence), "capture_end");
  return {sequence, table_.sequence_destroy};
}

void RunHalf::replay(sluice_queue *queue, const Sequence &sequence) {
  check(table_.replay(queue, sequence.get()), "replay");
}

Bytes RunHalf::read(const void *from, size_t bytes, int32_t device) {
  Bytes data(bytes);
  sluice_queue *queue = this->queue(device);
  download(queue, from, data, device);
  finish(queue);
  return data;
}

} // namespace sluice::conformance
