// The handles of a run half in C++, and how a call reaches the object of one.
#pragma once

#include "sluice/backend/adapter/error.h"
#include "sluice/backend/run.h"

namespace sluice::backend {

/// Calls of a run half's class, for the tables of run.h and collectives.h.
template <typename Half> struct Handles {
  using Run = Opened<Half>;
  using Queue = typename Half::Queue;

  /// The target of the handle of a queue, an event, a module, a sequence or a communicator.
  template <typename Object> struct Part {
    Run *run;
    Object object;
  };

  /// The target of a handle of an object of this type.
  template <typename Object, typename Handle> static Part<Object> &part(Handle *handle) noexcept {
    return *reinterpret_cast<Part<Object> *>(handle);
  }

  /// Creates a handle of the object that `make` returns. The object is constructed in place, never moved.
  template <typename Object, typename Handle, typename Make> static void add(Handle **handle, Run &run, Make &&make) {
    *handle = reinterpret_cast<Handle *>(new Part<Object>{&run, make()});
  }

  /// Calls `body` with the run half. The result of the half's `enter`, for example a lock, lives as long as the call.
  template <typename Body> [[gnu::always_inline]] static sluice_status in(Run &run, Body &&body) noexcept {
    return guarded(run.error, [&] {
      if constexpr (requires { run.object->enter(); }) {
        auto entered = run.object->enter();
        body(*run.object);
      } else {
        body(*run.object);
      }
    });
  }

  /// The same for a queue. A failure ends its capture.
  template <typename Body> [[gnu::always_inline]] static sluice_status in(sluice_queue *handle, Body &&body) noexcept {
    Part<Queue> &queue = part<Queue>(handle);
    sluice_status status = in(*queue.run, [&](Half &half) { body(half, queue.object); });
    if constexpr (requires { queue.run->object->abandonCapture(queue.object); })
      if (status != SLUICE_OK)
        unreported([&] { queue.run->object->abandonCapture(queue.object); });
    return status;
  }

  /// Calls `body`, whose errors are not reported.
  template <typename Body> static sluice_status unreported(Body &&body) noexcept {
    LastError error(Half::name);
    return guarded(error, body);
  }

  /// Deletes the object. Before that, calls the run half's `remove` for it, if there is one.
  template <typename Object, typename Handle> static void remove(Handle *handle) noexcept {
    Part<Object> *removed = &part<Object>(handle);
    if constexpr (requires(Half &half) { half.remove(removed->object); })
      in(*removed->run, [&](Half &half) { half.remove(removed->object); });
    delete removed;
  }
};

} // namespace sluice::backend
