// Work that calls on arrays have enqueued, and its errors.
#pragma once

#include "runtime/base/Status.h"
#include "runtime/device/DeviceContext.h"

#include <atomic>
#include <memory>
#include <source_location>
#include <string>

namespace sluice::runtime {

class Stream;

/// The call that enqueued the work: function and source line, for errors.
struct CallSite {
  const char *function = "";
  std::source_location where = {};

  /// "matmul (model.cpp:12)"
  std::string text() const;
};

/// The error of failed work. Later work of the stream that was enqueued before the error was found fails with the same
/// error.
struct WorkFailure {
  ExitCode code;
  std::string message;
};

/// The end of one call's work in a stream.
class CallWork {
public:
  CallWork(Stream &stream, CallSite site, DeviceEvent event)
      : stream_(&stream), site_(site), event_(std::move(event)) {}
  CallWork(const CallWork &) = delete;
  ~CallWork();

  Stream &stream() const { return *stream_; }
  const CallSite &site() const { return site_; }
  DeviceEvent &event() { return event_; }
  /// Whether a thread has waited for the work, which may have failed.
  bool isDone() const { return isDone_.load(std::memory_order_acquire); }
  /// Marks the work as done. `failure` is null on success.
  void end(std::shared_ptr<const WorkFailure> failure);
  /// Throws its error, if it is done and has one.
  void checkIfDone() const;

private:
  Stream *stream_;
  CallSite site_;
  DeviceEvent event_;
  std::shared_ptr<const WorkFailure> failure_; ///< set before `isDone_`
  std::atomic<bool> isDone_ = false;
};

} // namespace sluice::runtime
