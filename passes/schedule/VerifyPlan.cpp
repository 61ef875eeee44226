// Checks a planned module from its slots, queues and waits alone: whatever an action reads is what the IR says, still
// there.
//
// A race detector over one call more than may be in flight. Each queue has a clock of what it knows to be done; actions move it on, waits join
// it with the clock that the awaited action ended with. Every byte remembers who wrote it last, for which value, and
// who has read it since. It is an error to touch bytes whose last writer, or to write bytes whose readers, may still be
// at work; and to read bytes that hold another value.
#include "ir/Layout.h"
#include "passes/Passes.h"
#include "passes/schedule/Events.h"
#include <map>

using namespace mlir;
using namespace sluice::ir;

namespace sluice::passes {

namespace {

/// An action of one call, and when: its queue and its place there, over all calls.
struct Moment {
  Operation *op = nullptr;
  unsigned call = 0, queue = 0, place = 0;
};

using Clock = SmallVector<unsigned>;

/// Bytes with one history; the map's key is where they begin, and they end where the next begin.
struct Bytes {
  std::optional<Moment> writer;
  const void *value = nullptr; // what they hold; null if nothing of this plan
  unsigned valueCall = 0;
  SmallVector<Moment, 2> readers;
};

class EntryVerifier {
public:
  EntryVerifier(EntryOp entry, const Queues &queues)
      : entry(entry), queues(queues), capacity(getCapacity(entry->getParentOfType<ModuleOp>())),
        inFlight(getCallsInFlight(entry->getParentOfType<ModuleOp>())), clocks(queues.size(), Clock(queues.size(), 0)),
        issuer(queues.size(), 0) {}

  LogicalResult run() {
    for (call = 0; call <= unsigned(inFlight); ++call) {
      if (failed(writeInputs()))
        return failure();
      for (ActionOp op : actionsOf(entry))
        if (failed(isAsked(op) ? readBack(op) : act(op)))
          return failure();
      if (failed(checkOutputs()))
        return failure();
    }
    return success();
  }

private:
  bool isDone(const Moment &moment, const Clock &clock) const { return clock[moment.queue] > moment.place; }

  void join(Clock &clock, const Clock &other) {
    for (auto [mine, theirs] : llvm::zip_equal(clock, other))
      mine = std::max(mine, theirs);
  }

  /// Adds what waiting for these events tells.
  void join(Clock &clock, OperandRange events) {
    for (Value event : events) {
      EventSource source = sourceOf(event);
      auto ended = endings.find({source.action, call - source.calls}); // before the first call everything is done
      if (ended != endings.end())
        join(clock, ended->second);
    }
  }

  LogicalResult act(ActionOp op) {
    unsigned queue = queues.of(op);
    Clock &clock = clocks[queue];
    join(clock, issuer);
    join(clock, op.getAfter());
    Moment moment{op, call, queue, clock[queue]};
    if (failed(touch(moment, clock)))
      return failure();
    ++clock[queue];
    endings[{op, call}] = clock;
    return success();
  }

  LogicalResult readBack(ActionOp op) {
    Clock clock = clocks[queues.of(op)];
    join(clock, issuer);
    join(clock, op.getAfter());
    for (const BufferAccess &access : accessesOf(op, capacity))
      if (!access.isWrite && failed(check({op, call, queues.of(op), 0}, access, clock, access.value)))
        return failure();
    return success();
  }

  /// What the call returns is there when all is done.
  LogicalResult checkOutputs() {
    Clock everything(queues.size(), ~0u);
    ReturnOp results = entry.getReturn();
    for (auto [slot, value] : llvm::zip_equal(results.getSlotsAttr().getAsRange<SlotAttr>(), results.getValues())) {
      auto action = value.getDefiningOp<ActionOp>();
      if (action && isAsked(action))
        continue;
      int64_t bytes = getBufferBytes(cast<RankedTensorType>(value.getType()), capacity);
      if (failed(check({entry, call, 0, 0}, {slot, bytes, /*isWrite=*/false, value}, everything, value)))
        return failure();
    }
    return success();
  }

  /// The host writes the inputs of this call, in any order.
  LogicalResult writeInputs() {
    Clock written = issuer;
    for (auto receive : entry.getBody().front().getOps<ReceiveOp>()) {
      Clock clock = queues.size() > 1 ? issuer : clocks[0]; // without accelerators the host has finished the last call
      join(clock, receive.getAfter());
      join(written, clock);
      BufferAccess access = accessOf(receive, capacity);
      if (failed(check({receive, call, 0, 0}, access, clock, Value())))
        return failure();
      forEach(access, [&](Bytes &bytes) { bytes = {std::nullopt, access.value.getAsOpaquePointer(), call, {}}; });
    }
    issuer = written;
    return success();
  }

  LogicalResult touch(const Moment &moment, const Clock &clock) {
    auto action = cast<ActionOp>(moment.op);
    SmallVector<BufferAccess> accesses = accessesOf(action, capacity);
    for (const BufferAccess &access : accesses)
      if (failed(check(moment, access, clock, access.isWrite ? Value() : access.value)) ||
          failed(checkOverlap(moment, accesses, access)))
        return failure();
    for (const BufferAccess &access : accesses)
      forEach(access, [&](Bytes &bytes) {
        if (access.isWrite)
          bytes = {moment, access.value.getAsOpaquePointer(), call, {}};
        else
          bytes.readers.push_back(moment);
      });
    return endBuffers(moment, clock);
  }

  /// Behind an action the buffers that it ends hold nothing.
  LogicalResult endBuffers(const Moment &moment, Clock clock) {
    ArrayAttr ends = cast<ActionOp>(moment.op).getEndsAttr();
    if (!ends)
      return success();
    ++clock[moment.queue];
    for (auto end : ends.getAsRange<BufferAttr>()) {
      BufferAccess access{end.getSlot(), end.getBytes(), /*isWrite=*/true, Value()};
      if (failed(check(moment, access, clock, Value())))
        return failure();
      forEach(access, [&](Bytes &bytes) { bytes = {moment, nullptr, call, {}}; });
    }
    return success();
  }

  /// What an action writes may lie where it reads only if it updates a state in place.
  LogicalResult checkOverlap(const Moment &moment, ArrayRef<BufferAccess> accesses, const BufferAccess &write) {
    if (!write.isWrite)
      return success();
    for (const BufferAccess &other : accesses) {
      int64_t begin = other.slot.offsetFor(call, inFlight), writeBegin = write.slot.offsetFor(call, inFlight);
      bool overlaps = &other != &write && other.slot.getArena() == write.slot.getArena() &&
                      begin < writeBegin + write.bytes && writeBegin < begin + other.bytes;
      bool isUpdate = !other.isWrite && other.value.getDefiningOp<GetOp>() && begin == writeBegin;
      if (overlaps && !isUpdate)
        return moment.op->emitOpError("(") << nameOf(moment.op) << ") writes over another of its own buffers";
    }
    return success();
  }

  /// Whether bytes hold what a reader of `value` expects: a state its value before the call, whoever computed that.
  bool holds(const Bytes &bytes, Value value) const {
    if (value.getDefiningOp<GetOp>())
      return !bytes.writer || bytes.writer->call < call;
    return bytes.value == value.getAsOpaquePointer() && bytes.valueCall == call;
  }

  LogicalResult check(const Moment &moment, const BufferAccess &access, const Clock &clock, Value expected) {
    bool failing = false;
    forEach(access, [&](Bytes &bytes) {
      if (failing)
        return;
      if (bytes.writer && !isDone(*bytes.writer, clock))
        failing = report(moment, access, *bytes.writer, "may still write them");
      else if (expected && !holds(bytes, expected))
        failing = report(moment, access, bytes.writer.value_or(moment), "has left another value there");
      else if (access.isWrite)
        for (const Moment &reader : bytes.readers)
          if (!failing && !isDone(reader, clock))
            failing = report(moment, access, reader, "may still read them");
    });
    return failure(failing);
  }

  static std::string nameOf(Operation *op) {
    auto action = dyn_cast<ActionOp>(op);
    return action ? action.describe() : "the host";
  }

  bool report(const Moment &moment, const BufferAccess &access, const Moment &other, StringRef what) {
    InFlightDiagnostic diagnostic = moment.op->emitOpError("(")
                                    << nameOf(moment.op) << ") " << (access.isWrite ? "writes" : "reads") << " "
                                    << access.slot.getArena().getValue() << " from byte "
                                    << access.slot.offsetFor(call, inFlight) << ", and " << nameOf(other.op);
    if (other.call != call)
      diagnostic << " of " << (call - other.call) << " calls before";
    diagnostic << " " << what;
    return true;
  }

  /// Calls `body` for the pieces that make up the access, cutting them at its ends.
  void forEach(const BufferAccess &access, llvm::function_ref<void(Bytes &)> body) {
    std::map<int64_t, Bytes> &arena = arenas[access.slot.getArena()];
    arena.try_emplace(INT64_MIN);
    auto cut = [&](int64_t offset) {
      auto next = arena.upper_bound(offset);
      auto piece = std::prev(next);
      return piece->first == offset ? piece : arena.emplace_hint(next, offset, piece->second);
    };
    int64_t begin = access.slot.offsetFor(call, inFlight);
    auto first = cut(begin), last = cut(begin + access.bytes);
    for (auto piece = first; piece != last; ++piece)
      body(piece->second);
  }

  EntryOp entry;
  const Queues &queues;
  int64_t capacity, inFlight;
  unsigned call = 0;
  SmallVector<Clock> clocks; // of each queue
  Clock issuer;              // of the host, which issues all actions
  std::map<std::pair<Operation *, int64_t>, Clock> endings;
  DenseMap<StringAttr, std::map<int64_t, Bytes>> arenas;
};

} // namespace

LogicalResult verifyPlan(ModuleOp module, const Target &target) {
  Queues queues(target);
  for (auto entry : module.getOps<EntryOp>())
    if (failed(EntryVerifier(entry, queues).run()))
      return failure();
  return success();
}

} // namespace sluice::passes
