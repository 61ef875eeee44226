#include "runtime/device/DeviceContext.h"

#include "runtime/base/Status.h"
#include "runtime/base/Text.h"
#include "runtime/device/CrossBackendSync.h"
#include "runtime/plugins/BackendTables.h"

namespace sluice::runtime {

static void parallelFor(void *context, int64_t tasks, RangeFunction function, void *argument) {
  static_cast<Team *>(context)->forEach(tasks, function, argument);
}

DeviceContext::DeviceContext(std::string backend, const sluice_backend_run &half, const std::string &settings,
                             Team &team, sluice_group *group)
    : backend_(std::move(backend)), half_(wholeRunHalf(half)), services_{sizeof services_, &team, parallelFor} {
  sluice_run_options options{sizeof options, &services_, settings.c_str(), group};
  sluice_status status = half_.open(&options, &run_);
  if (status == SLUICE_OK)
    return;
  std::string reason = run_ ? half_.last_error(run_) : "it gives no reason";
  if (run_)
    half_.close(run_);
  throw Error(exitCodeOf(status), concat("backend ", quote(backend_), " does not open: ", reason));
}

DeviceContext::~DeviceContext() { half_.close(run_); }

void DeviceContext::fail(sluice_status status, const std::string &what) const {
  throw Error(exitCodeOf(status), concat(what, ": ", half_.last_error(run_)));
}

int32_t DeviceContext::deviceCount() const {
  int32_t count = 0;
  check(half_.device_count(run_, &count), concat("the devices of ", backend_));
  return count;
}

sluice_device_info DeviceContext::deviceInfo(int32_t device) const {
  sluice_device_info info{};
  info.struct_size = sizeof info;
  check(half_.device_info(run_, device, &info), concat(backend_, ":", device));
  return info;
}

std::vector<sluice_copy_count> DeviceContext::copyCounts() const {
  std::vector<sluice_copy_count> counts;
  size_t count = 0, size = sizeof(sluice_copy_count);
  if (!half_.copy_counts)
    return counts;
  check(half_.copy_counts(run_, nullptr, size, 0, &count), concat("the copies of ", backend_));
  counts.resize(count);
  check(half_.copy_counts(run_, counts.data(), size, counts.size(), &count), concat("the copies of ", backend_));
  return counts;
}

DeviceEvent::DeviceEvent(DeviceContext &context) : context_(&context), event_(nullptr, context.half().event_destroy) {
  sluice_event *event = nullptr;
  context.check(context.half().event_create(context.get(), &event), concat("an event of ", context.backend()));
  event_.reset(event);
}

void DeviceEvent::synchronize() const {
  finish(crossed_);
  context_->check(context_->synchronize(get()), context_->backend());
}

bool DeviceEvent::isDone() const {
  if (!areDone(crossed_))
    return false;
  int done = 0;
  context_->check(context_->half().query(get(), &done), context_->backend());
  return done != 0;
}

std::pair<double, double> DeviceEvent::times() const {
  double start = 0, end = 0;
  context_->check(context_->half().event_times(get(), &start, &end), concat("a time of ", context_->backend()));
  return {start, end};
}

DeviceQueue::DeviceQueue(DeviceContext &context, int32_t device, sluice_queue_kind kind, const std::string &name)
    : context_(&context), device_(device), queue_(nullptr, context.half().queue_destroy) {
  sluice_queue *queue = nullptr;
  context.check(context.half().queue_create(context.get(), device, kind, name.c_str(), &queue),
                concat("the queue ", quote(name)));
  queue_.reset(queue);
}

void DeviceQueue::noteTimes(bool on) {
  if (context_->half().note_times)
    context_->check(context_->half().note_times(queue_.get(), on), context_->backend());
}

void DeviceQueue::record(DeviceEvent &event) {
  context_->check(context_->half().record(queue_.get(), event.get()), context_->backend());
  event.device_ = device_;
  event.crossed_ = crossed_;
}

void DeviceQueue::wait(const DeviceEvent &event) {
  if (!event)
    return;
  if (&event.context() == context_) {
    context_->check(context_->half().wait(queue_.get(), event.get()), context_->backend());
    comeAfter(event.crossed());
  } else if (!context_->crossBackendSync() || !context_->crossBackendSync()->cross(event, *this)) {
    event.synchronize();
  }
}

void DeviceQueue::comeAfter(const CrossedPaths &crossed) { join(crossed_, crossed); }

void DeviceQueue::synchronize() {
  finish(crossed_);
  if (context_->patience() > 0) {
    DeviceEvent end(*context_);
    record(end);
    return end.synchronize();
  }
  context_->check(context_->half().synchronize_queue(queue_.get()), context_->backend());
}

void DeviceQueue::copy(const sluice_copy &copy) {
  context_->check(context_->half().copy(queue_.get(), &copy), context_->backend());
}

void DeviceQueue::launch(const sluice_launch &launch) {
  context_->check(context_->half().launch(queue_.get(), &launch), context_->backend());
}

void DeviceQueue::discard(void *address, size_t bytes) {
  context_->check(context_->half().discard(queue_.get(), address, bytes), context_->backend());
}

void DeviceQueue::beginCapture() { context_->check(context_->half().capture_begin(queue_.get()), context_->backend()); }

DeviceSequence DeviceQueue::endCapture() {
  sluice_sequence *sequence = nullptr;
  context_->check(context_->half().capture_end(queue_.get(), &sequence), context_->backend());
  return DeviceSequence(*context_, sequence);
}

void DeviceQueue::abandonCapture() noexcept {
  sluice_sequence *sequence = nullptr;
  if (context_->half().capture_end(queue_.get(), &sequence) == SLUICE_OK)
    context_->half().sequence_destroy(sequence);
}

void DeviceQueue::replay(const DeviceSequence &sequence) {
  context_->check(context_->half().replay(queue_.get(), sequence.get()), context_->backend());
}

DeviceMemory::DeviceMemory(DeviceContext &context, int32_t device, size_t bytes, const std::string &what)
    : context_(&context), device_(device), bytes_(bytes) {
  if (bytes == 0)
    return;
  sluice_status status = context.half().allocate(context.get(), device, bytes, &address_);
  if (status == SLUICE_EXHAUSTED)
    failExhausted(
        concat("out of memory: ", what, " needs ", bytes, " bytes: ", context.half().last_error(context.get())));
  context.check(status, what);
}

DeviceMemory &DeviceMemory::operator=(DeviceMemory &&other) noexcept {
  std::swap(context_, other.context_);
  std::swap(device_, other.device_);
  std::swap(address_, other.address_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

DeviceMemory::~DeviceMemory() {
  if (address_)
    context_->half().release(context_->get(), device_, address_);
}

CopiedHostMemory::CopiedHostMemory(DeviceContext &context, size_t bytes, const std::string &what) : context_(&context) {
  if (isGivenBy(context))
    context.check(context.half().host_allocate(context.get(), bytes, &address_), what);
  else
    own_.resize(bytes);
}

CopiedHostMemory::~CopiedHostMemory() {
  if (address_)
    context_->half().host_release(context_->get(), address_);
}

DeviceModule::DeviceModule(DeviceContext &context, int32_t device, const sluice_code_section &code)
    : module_(nullptr, context.half().module_unload) {
  if (!context.half().module_load || !context.half().module_unload)
    failUnsupported(concat("backend ", quote(context.backend()), " loads no modules"));
  sluice_module *module = nullptr;
  context.check(context.half().module_load(context.get(), device, code.data, code.bytes, &module),
                concat("a module for ", context.backend(), ":", device));
  module_.reset(module);
}

} // namespace sluice::runtime
