#include "runtime/device/DeviceContext.h"

#include "runtime/base/Child.h"
#include "runtime/base/Status.h"
#include "runtime/base/Text.h"
#include "runtime/device/CrossBackendSync.h"
#include "runtime/device/PooledBackend.h"
#include "runtime/plugins/BackendTables.h"

namespace sluice::runtime {

static void parallelFor(void *context, int64_t tasks, RangeFunction function, void *argument) {
  static_cast<Team *>(context)->forEach(tasks, function, argument);
}

DeviceContext::DeviceContext(PooledBackend &backend, Team &team)
    : backend_(backend.name()), half_(backend.half()), services_{sizeof services_, &team, parallelFor},
      pooled_(&backend) {
  open(backend.settings(), backend.group());
}

DeviceContext::DeviceContext(std::string backend, const sluice_backend_run &half, const std::string &settings,
                             Team &team)
    : backend_(std::move(backend)), half_(wholeRunHalf(half)), services_{sizeof services_, &team, parallelFor} {
  open(settings, nullptr);
}

void DeviceContext::open(const std::string &settings, sluice_group *group) {
  sluice_run_options options{sizeof options, &services_, settings.c_str(), group};
  std::unique_lock lock = lockForks(); // the backend may load the library of its driver
  sluice_status status = half_.open(&options, &run_);
  lock.unlock();
  if (status == SLUICE_OK)
    return;
  std::string reason = run_ ? half_.last_error(run_) : "it gives no reason";
  if (run_)
    half_.close(run_);
  throw Error(exitCodeOf(status), concat("backend ", quote(backend_), " does not open: ", reason));
}

DeviceContext::~DeviceContext() {
  ownMemory_.reset();
  half_.close(run_);
}

MemoryPool &DeviceContext::memory() {
  if (MemoryPool *shared = pooled_ ? pooled_->memory() : nullptr)
    return *shared;
  if (!ownMemory_)
    ownMemory_.emplace(*this, nullptr);
  return *ownMemory_;
}

void DeviceContext::lose() const {
  if (pooled_)
    pooled_->lose();
}

bool DeviceContext::isLost() const { return pooled_ && pooled_->isLost(); }

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
  context_->checkWork(context_->synchronize(get()));
}

bool DeviceEvent::isDone() const {
  if (!areDone(crossed_))
    return false;
  int done = 0;
  context_->checkWork(context_->half().query(get(), &done));
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
  context_->checkWork(context_->half().record(queue_.get(), event.get()));
  event.device_ = device_;
  event.crossed_ = crossed_;
}

void DeviceQueue::wait(const DeviceEvent &event) {
  if (!event)
    return;
  if (&event.context() == context_) {
    context_->checkWork(context_->half().wait(queue_.get(), event.get()));
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
  context_->checkWork(context_->half().synchronize_queue(queue_.get()));
}

void DeviceQueue::copy(const sluice_copy &copy) { context_->checkWork(context_->half().copy(queue_.get(), &copy)); }

void DeviceQueue::launch(const sluice_launch &launch) {
  context_->checkWork(context_->half().launch(queue_.get(), &launch));
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
  context_->checkWork(context_->half().replay(queue_.get(), sequence.get()));
}

DeviceMemory::DeviceMemory(DeviceContext &context, int32_t device, size_t bytes, const std::string &what)
    : pool_(&context.memory()), device_(device), bytes_(bytes) {
  if (bytes > 0)
    block_ = pool_->take(device, bytes, what);
}

DeviceMemory &DeviceMemory::operator=(DeviceMemory &&other) noexcept {
  std::swap(pool_, other.pool_);
  std::swap(device_, other.device_);
  std::swap(block_, other.block_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

DeviceMemory::~DeviceMemory() {
  if (block_.address)
    pool_->give(device_, block_);
}

CopiedHostMemory::CopiedHostMemory(DeviceContext &context, size_t bytes, const std::string &what)
    : pool_(&context.memory()) {
  if (isGivenBy(context))
    block_ = pool_->take(SLUICE_HOST, bytes, what);
  else
    own_.resize(bytes);
}

CopiedHostMemory::~CopiedHostMemory() {
  if (block_.address)
    pool_->give(SLUICE_HOST, block_);
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
