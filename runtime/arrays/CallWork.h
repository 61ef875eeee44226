// Work that calls on arrays have put into the queues of devices, and its errors.
#pragma once

#include "runtime/base/Status.h"
#include "runtime/device/DeviceContext.h"

#include <atomic>
#include <memory>
#include <source_location>
#include <string>

namespace sluice::runtime {

class Stream;

/// The call that work belongs to, for errors: the name of the function and the line of the user.
struct CallSite {
  const char *function = "";
  std::source_location where = {};

  /// "matmul (model.cpp:12)"
  std::string text() const;
};

/// The error of failed work. All later work of its stream, up to the wait that found the error, has the same one.
struct WorkFailure {
  ExitCode code;
  std::string message;
};

/// A position in a stream: the end of one call's work.
class CallWork {
public:
  CallWork(Stream &stream, CallSite site, DeviceEvent event)
      : stream_(&stream), site_(site), event_(std::move(event)) {}
  CallWork(const CallWork &) = delete;
  ~CallWork();

  Stream &stream() const { return *stream_; }
  const CallSite &site() const { return site_; }
  DeviceEvent &event() { return event_; }
  /// Whether a host has waited for it, with or without success.
  bool isDone() const { return isDone_.load(std::memory_order_acquire); }
  /// Ends it; null: without an error.
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
