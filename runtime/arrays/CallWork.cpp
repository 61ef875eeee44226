#include "runtime/arrays/CallWork.h"

#include "runtime/arrays/Stream.h"
#include "runtime/base/Status.h"
#include "runtime/base/Text.h"

namespace sluice::runtime {

std::string CallSite::text() const {
  std::string file = where.file_name();
  file.erase(0, file.find_last_of('/') + 1);
  return file.empty() ? std::string(function) : concat(function, " (", file, ":", where.line(), ")");
}

CallWork::~CallWork() { stream_->recycle(std::move(event_)); }

void CallWork::end(std::shared_ptr<const WorkFailure> failure) {
  failure_ = std::move(failure);
  isDone_.store(true, std::memory_order_release);
}

void CallWork::checkIfDone() const {
  if (isDone() && failure_)
    throw Error(failure_->code, failure_->message);
}

} // namespace sluice::runtime
