// Checks a planned module from its places, queues and waits alone: whatever an action reads is what the IR says, still
// there.
//
// A race detector over three calls. Each queue has a clock of what it knows to be done; actions move it on, waits join
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
      : entry(entry), queues(queues), events(entry), capacity(capacityOf(entry->getParentOfType<ModuleOp>())),
        clocks(queues.size(), Clock(queues.size(), 0)), issuer(queues.size(), 0) {}

  LogicalResult run() {
    for (call = 0; call < 3; ++call) {
      if (failed(writeInputs()))
        return failure();
      for (Operation *op : actionsOf(entry))
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

  /// Adds what waiting for `wait` tells.
  void join(Clock &clock, const EventWait &wait) {
    if (wait.calls > int64_t(call))
      return;
    auto ended = endings.find({wait.action, call - unsigned(wait.calls)});
    if (ended != endings.end())
      join(clock, ended->second);
  }

  LogicalResult act(Operation *op) {
    unsigned queue = queues.of(op);
    Clock &clock = clocks[queue];
    join(clock, issuer);
    for (const EventWait &wait : events.waitsOf(op))
      join(clock, wait);
    Moment moment{op, call, queue, clock[queue]};
    if (failed(touch(moment, clock)))
      return failure();
    ++clock[queue];
    endings[{op, call}] = clock;
    return success();
  }

  LogicalResult readBack(Operation *op) {
    Clock clock = clocks[queues.of(op)];
    join(clock, issuer);
    for (const EventWait &wait : events.waitsOf(op))
      join(clock, wait);
    BufferAccess source = accessesOf(op, capacity)[0];
    return check({op, call, queues.of(op), 0}, source, clock, op->getOperand(0));
  }

  /// What the call returns is there when all is done.
  LogicalResult checkOutputs() {
    Clock everything(queues.size(), ~0u);
    auto places = entry->getAttrOfType<ArrayAttr>(kOutputsAtAttr);
    for (auto [place, value] : llvm::zip_equal(places, entry.getBody().front().getTerminator()->getOperands())) {
      BufferAccess access{BufferPlace::of(place), getBufferBytes(cast<RankedTensorType>(value.getType()), capacity),
                          /*isWrite=*/false};
      bool isThere = value.getDefiningOp() && isAsked(value.getDefiningOp());
      if (!isThere && failed(check({entry, call, 0, 0}, access, everything, value)))
        return failure();
    }
    return success();
  }

  /// The host writes the inputs of this call, in any order.
  LogicalResult writeInputs() {
    Clock written = issuer;
    auto places = entry->getAttrOfType<ArrayAttr>(kInputsAtAttr);
    auto waits = entry->getAttrOfType<ArrayAttr>(kInputWaitsAttr);
    for (BlockArgument input : entry.getBody().getArguments()) {
      Clock clock = waits ? issuer : clocks[0]; // without accelerators the host has finished the last call
      if (waits)
        for (EventWait wait : events.decode(cast<DenseI64ArrayAttr>(waits[input.getArgNumber()])))
          join(clock, wait);
      join(written, clock);
      BufferAccess access{BufferPlace::of(places[input.getArgNumber()]),
                          getBufferBytes(cast<RankedTensorType>(input.getType()), capacity), /*isWrite=*/true};
      Moment host{entry, call, 0, 0};
      if (failed(check(host, access, clock, Value())))
        return failure();
      forEach(access, [&](Bytes &bytes) { bytes = {std::nullopt, input.getAsOpaquePointer(), call, {}}; });
    }
    issuer = written;
    return success();
  }

  LogicalResult touch(const Moment &moment, const Clock &clock) {
    SmallVector<BufferAccess> accesses = accessesOf(moment.op, capacity);
    unsigned operands = moment.op->getNumOperands(), results = moment.op->getNumResults();
    for (auto [i, access] : llvm::enumerate(accesses)) {
      if (failed(check(moment, access, clock, i < operands ? moment.op->getOperand(i) : Value())) ||
          failed(checkOverlap(moment, accesses, i)))
        return failure();
    }
    for (auto [i, access] : llvm::enumerate(accesses)) {
      const void *value =
          i >= operands && i < operands + results ? moment.op->getResult(i - operands).getAsOpaquePointer() : nullptr;
      bool isWrite = access.isWrite;
      forEach(access, [&](Bytes &bytes) {
        if (isWrite)
          bytes = {moment, value, call, {}};
        else
          bytes.readers.push_back(moment);
      });
    }
    return endBuffers(moment, clock);
  }

  /// Behind an action the buffers that it ends hold nothing.
  LogicalResult endBuffers(const Moment &moment, Clock clock) {
    auto ends = moment.op->getAttrOfType<ArrayAttr>(kEndsAttr);
    if (!ends)
      return success();
    ++clock[moment.queue];
    for (Attribute end : ends) {
      ArrayRef<int64_t> numbers = cast<DenseI64ArrayAttr>(end).asArrayRef();
      BufferAccess access{{numbers[0], numbers[1], numbers[3]}, numbers[2], /*isWrite=*/true};
      if (failed(check(moment, access, clock, Value())))
        return failure();
      forEach(access, [&](Bytes &bytes) { bytes = {moment, nullptr, call, {}}; });
    }
    return success();
  }

  /// What an action writes may lie where it reads only if it updates a state in place.
  LogicalResult checkOverlap(const Moment &moment, ArrayRef<BufferAccess> accesses, unsigned written) {
    const BufferAccess &write = accesses[written];
    if (!write.isWrite)
      return success();
    for (auto [i, other] : llvm::enumerate(accesses)) {
      int64_t begin = other.place.offsetFor(call), writeBegin = write.place.offsetFor(call);
      bool overlaps = i != written && other.place.arena == write.place.arena && begin < writeBegin + write.bytes &&
                      writeBegin < begin + other.bytes;
      bool isUpdate =
          i < moment.op->getNumOperands() && moment.op->getOperand(i).getDefiningOp<GetOp>() && begin == writeBegin;
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
    if (auto kernel = dyn_cast<KernelOp>(op))
      return "kernel '" + kernel.getName().str() + "'";
    if (isa<CopyOp>(op))
      return "the copy in " + op->getAttrOfType<StringAttr>(kQueueAttr).str();
    return "the host";
  }

  bool report(const Moment &moment, const BufferAccess &access, const Moment &other, StringRef what) {
    InFlightDiagnostic diagnostic = moment.op->emitOpError("(")
                                    << nameOf(moment.op) << ") " << (access.isWrite ? "writes" : "reads") << " arena "
                                    << access.place.arena << " from byte " << access.place.offsetFor(call) << ", and "
                                    << nameOf(other.op);
    if (other.call != call)
      diagnostic << " of " << (call - other.call) << " calls before";
    diagnostic << " " << what;
    return true;
  }

  /// Calls `body` for the pieces that make up the access, cutting them at its ends.
  void forEach(const BufferAccess &access, llvm::function_ref<void(Bytes &)> body) {
    std::map<int64_t, Bytes> &arena = arenas[access.place.arena];
    arena.try_emplace(INT64_MIN);
    auto cut = [&](int64_t offset) {
      auto next = arena.upper_bound(offset);
      auto piece = std::prev(next);
      return piece->first == offset ? piece : arena.emplace_hint(next, offset, piece->second);
    };
    int64_t begin = access.place.offsetFor(call);
    auto first = cut(begin), last = cut(begin + access.bytes);
    for (auto piece = first; piece != last; ++piece)
      body(piece->second);
  }

  EntryOp entry;
  const Queues &queues;
  EventReader events;
  int64_t capacity;
  unsigned call = 0;
  SmallVector<Clock> clocks; // of each queue
  Clock issuer;              // of the host, which issues all actions
  std::map<std::pair<Operation *, unsigned>, Clock> endings;
  std::map<int64_t, std::map<int64_t, Bytes>> arenas;
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
