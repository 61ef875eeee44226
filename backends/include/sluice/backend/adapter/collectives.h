// collectivesTable<Half>: the collectives of a run half that has the type `Communicator`. Of the run half it needs
//
//   sluice_unique_id uniqueId();
//   void beginExchanges();
//   void endExchanges();
//
// and of a Communicator, which need not be movable:
//
//   static constexpr const char *order;
//   Communicator(Half &half, const sluice_communicator_options &options);
//   void exchange(Queue &queue, const sluice_exchange &exchange);
//   void check();   throws the error that ended it
//   void abort();   from any thread; its own errors are not reported
//   void leave();   before it is deleted
//
// Optional: `count(int32_t kind)`, which returns a struct with `exchanges` and `bytes`; `static constexpr const char
// *noTreeSums`.
#pragma once

#include "sluice/backend/adapter/handles.h"
#include "sluice/backend/collectives.h"

namespace sluice::backend {

template <typename Half> class CollectivesCalls {
public:
  static constexpr sluice_backend_collectives table() {
    sluice_backend_collectives table{};
    table.struct_size = sizeof table;
    table.unique_id = uniqueId;
    table.init = init;
    table.exchange = exchange;
    table.begin = begin;
    table.end = end;
    table.error = error;
    table.abort = abort;
    table.destroy = destroy;
    table.order = Communicator::order;
    if constexpr (requires { &Communicator::count; })
      table.counts = counts;
    if constexpr (requires { Communicator::noTreeSums; })
      table.no_tree_sums = Communicator::noTreeSums;
    return table;
  }

private:
  using Calls = Handles<Half>;
  using Run = typename Calls::Run;
  using Communicator = typename Half::Communicator;

  static auto &of(sluice_communicator *communicator) { return Calls::template part<Communicator>(communicator); }

  static sluice_status uniqueId(sluice_run *run, sluice_unique_id *id) noexcept {
    return Calls::in(Run::of(run), [&](Half &half) { *id = half.uniqueId(); });
  }
  static sluice_status init(sluice_run *run, const sluice_communicator_options *options,
                            sluice_communicator **communicator) noexcept {
    return Calls::in(Run::of(run), [&](Half &half) {
      Calls::template add<Communicator>(communicator, Run::of(run), [&] { return Communicator(half, *options); });
    });
  }
  static sluice_status exchange(sluice_communicator *communicator, sluice_queue *queue,
                                const sluice_exchange *exchange) noexcept {
    return Calls::in(queue, [&](Half &, auto &its) { of(communicator).object.exchange(its, *exchange); });
  }
  static sluice_status begin(sluice_run *run) noexcept {
    return Calls::in(Run::of(run), [](Half &half) { half.beginExchanges(); });
  }
  static sluice_status end(sluice_run *run) noexcept {
    return Calls::in(Run::of(run), [](Half &half) { half.endExchanges(); });
  }
  static sluice_status error(sluice_communicator *communicator) noexcept {
    return Calls::in(*of(communicator).run, [&](Half &) { of(communicator).object.check(); });
  }
  /// Does not store last_error, which belongs to the thread that may be in another call.
  static void abort(sluice_communicator *communicator) noexcept {
    Calls::unreported([&] { of(communicator).object.abort(); });
  }
  static void destroy(sluice_communicator *communicator) noexcept {
    Calls::in(*of(communicator).run, [&](Half &) { of(communicator).object.leave(); });
    delete &of(communicator);
  }
  static sluice_status counts(sluice_communicator *communicator, int32_t kind, int64_t *exchanges,
                              int64_t *bytes) noexcept {
    return Calls::in(*of(communicator).run, [&](Half &) {
      auto count = of(communicator).object.count(kind);
      *exchanges = count.exchanges;
      *bytes = count.bytes;
    });
  }
};

template <typename Half> inline constexpr sluice_backend_collectives collectivesTable = CollectivesCalls<Half>::table();

} // namespace sluice::backend
