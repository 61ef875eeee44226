// Checks a planned module from its slots, queues and waits alone: every action reads the value in the IR, still intact.
//
// A race detector over one call more than may be in flight. Each queue has a vector clock of the actions that are done.
// Actions advance the clock of their queue; a wait joins it with the clock at the end of the awaited action. Every byte
// records its last writer, the value, and the readers since. It is an error to access bytes whose last writer may still
// run, to write bytes whose readers may still run, and to read bytes that hold another value.
//
// An action of several queues advances the clocks of all of them from their join. Of a loop two iterations are
// simulated, for the same reason as the number of calls.
#include "ir/Layout.h"
#include "passes/Passes.h"
#include "passes/schedule/Events.h"
#include <map>

using namespace mlir;
using namespace sluice::ir;

namespace sluice::passes {

namespace {

/// An action of one call and its time: the turn of its list, its first queue, and its position there over all calls.
struct Moment {
  Operation *op = nullptr;
  unsigned call = 0;
  int64_t turn = 0;
  unsigned queue = 0, place = 0;
};

using Clock = SmallVector<unsigned>;

/// Bytes with one history. The map's key is their first offset; they end at the next key.
struct Bytes {
  std::optional<Moment> writer;
  Value value; // that they hold; null if none of this plan
  int64_t valueTurn = 0;
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
      turns[&entry.getActions()] = call;
      if (failed(writeInputs()) || failed(perform(entry)) || failed(checkOutputs()))
        return failure();
    }
    return success();
  }

private:
  LogicalResult perform(ActionListOp list) {
    for (ActionOp op : actionsOf(list)) {
      auto loop = dyn_cast<LoopOp>(op.getOperation());
      if (failed(loop ? repeat(loop) : isAsked(op) ? readBack(op) : act(op)))
        return failure();
    }
    return success();
  }

  Moment momentOf(Operation *op) { return {op, call, turns.lookup(op->getBlock()), 0, 0}; }

  bool isDone(const Moment &moment, const Clock &clock) const { return clock[moment.queue] > moment.place; }

  void join(Clock &clock, const Clock &other) {
    for (auto [mine, theirs] : llvm::zip_equal(clock, other))
      mine = std::max(mine, theirs);
  }

  /// Joins the clocks of the awaited events.
  void join(Clock &clock, OperandRange events) {
    for (Value event : events) {
      EventSource source = sourceOf(event);
      // Before the first turn all actions are done.
      auto ended = endings.find({source.action, turns.lookup(source.action->getBlock()) - source.turns});
      if (ended != endings.end())
        join(clock, ended->second);
    }
  }

  Moment momentOf(ActionOp op, const Clock &clock) {
    Moment moment = momentOf(op.getOperation());
    moment.queue = queues.of(op).front();
    moment.place = clock[moment.queue];
    return moment;
  }

  /// The clock at the start of an action: all its queues have reached it, and its waits are done.
  Clock begin(ActionOp op) {
    Clock clock = issuer;
    for (unsigned queue : queues.of(op))
      join(clock, clocks[queue]);
    join(clock, op.getAfter());
    return clock;
  }

  /// Advances all queues of an action.
  void end(ActionOp op, Clock clock) {
    for (unsigned queue : queues.of(op))
      ++clock[queue];
    for (unsigned queue : queues.of(op))
      clocks[queue] = clock;
    endings[{op, turns.lookup(op->getBlock())}] = clock;
  }

  LogicalResult act(ActionOp op) {
    Clock clock = begin(op);
    if (failed(touch(momentOf(op, clock), clock)))
      return failure();
    end(op, clock);
    return success();
  }

  LogicalResult repeat(LoopOp loop) {
    Clock clock = begin(loop);
    for (unsigned queue : queues.of(loop))
      clocks[queue] = clock;
    if (failed(checkCondition(loop, clock)))
      return failure();
    ValueRange carried = loop.getFirst();
    for (int64_t i = 0, count = std::min<int64_t>(loop.getCount(), 2); i < count; ++i) {
      if (failed(handOn(loop, carried, loop.getActions().getArguments(), /*begins=*/true)) || failed(perform(loop)))
        return failure();
      carried = loop.getNext().getValues();
    }
    if (failed(handOn(loop, carried, loop.getWritten(), /*begins=*/false)))
      return failure();
    clock = begin(loop);
    end(loop, clock);
    return endBuffers(momentOf(loop, clock), clock);
  }

  /// The host reads the condition after all waits of the loop.
  LogicalResult checkCondition(LoopOp loop, const Clock &clock) {
    auto action = cast<ActionOp>(loop.getOperation());
    std::optional<BufferAccess> condition = conditionOf(action, capacity);
    return condition ? check(momentOf(loop, clock), *condition, clock, condition->value) : success();
  }

  /// Checks that the buffers of the loop-carried values hold `from`. From now on they count as `to`. `begins`: the next
  /// iteration begins.
  LogicalResult handOn(LoopOp loop, ValueRange from, ValueRange to, bool begins) {
    Clock everything(queues.size(), ~0u); // no access here: only the values are checked
    SmallVector<BufferAccess> places;
    for (auto [slot, value] : llvm::zip(loop.getSlotsAttr().getAsRange<SlotAttr>(), from))
      places.push_back(
          {slot, getBufferBytes(cast<RankedTensorType>(value.getType()), capacity), /*isWrite=*/false, value});
    for (const BufferAccess &place : places)
      if (failed(check(momentOf(loop), place, everything, place.value)))
        return failure();
    turns[&loop.getActions()] += begins;
    for (auto [place, value] : llvm::zip(places, to))
      forEach(place, [&, value = value](Bytes &held) { setValue(held, value); });
    return success();
  }

  void setValue(Bytes &bytes, Value value) const {
    bytes.value = value;
    bytes.valueTurn = value ? turns.lookup(value.getParentBlock()) : 0;
  }

  LogicalResult readBack(ActionOp op) {
    for (const BufferAccess &access : accessesIn(op))
      if (!access.isWrite && failed(check(momentOf(op), access, begin(op), access.value)))
        return failure();
    return success();
  }

  /// The call's results are complete when all actions are done.
  LogicalResult checkOutputs() {
    Clock everything(queues.size(), ~0u);
    ReturnOp results = entry.getReturn();
    for (auto [slot, value] : llvm::zip_equal(results.getSlotsAttr().getAsRange<SlotAttr>(), results.getValues())) {
      auto action = value.getDefiningOp<ActionOp>();
      if (action && isAsked(action))
        continue;
      int64_t bytes = getBufferBytes(cast<RankedTensorType>(value.getType()), capacity);
      if (failed(check(momentOf(entry.getReturn()), {slot, bytes, /*isWrite=*/false, value}, everything, value)))
        return failure();
    }
    return success();
  }

  /// The host writes the inputs of this call, in any order.
  LogicalResult writeInputs() {
    Clock written = issuer;
    for (auto receive : entry.getActions().getOps<ReceiveOp>()) {
      Clock clock = queues.size() > 1 ? issuer : clocks[0]; // without accelerators the host has finished the last call
      join(clock, receive.getAfter());
      join(written, clock);
      BufferAccess access = accessOf(receive, capacity);
      if (failed(check(momentOf(receive), access, clock, Value())))
        return failure();
      forEach(access, [&](Bytes &bytes) {
        bytes = {};
        setValue(bytes, access.value);
      });
    }
    issuer = written;
    return success();
  }

  /// Determined once, because every action is visited in several calls.
  ArrayRef<BufferAccess> accessesIn(ActionOp op) {
    SmallVector<BufferAccess> &known = accessesByAction[op];
    if (known.empty())
      known = accessesOf(op, capacity);
    return known;
  }

  LogicalResult touch(const Moment &moment, const Clock &clock) {
    ArrayRef<BufferAccess> accesses = accessesIn(cast<ActionOp>(moment.op));
    for (const BufferAccess &access : accesses)
      if (failed(check(moment, access, clock, access.isWrite ? Value() : access.value)) ||
          failed(checkOverlap(moment, accesses, access)))
        return failure();
    for (const BufferAccess &access : accesses)
      forEach(access, [&](Bytes &bytes) {
        if (!access.isWrite)
          return bytes.readers.push_back(moment);
        bytes = {moment, Value(), 0, {}};
        setValue(bytes, access.value);
      });
    return endBuffers(moment, clock);
  }

  /// After an action, the buffers in its `last_uses` hold no value.
  LogicalResult endBuffers(const Moment &moment, Clock clock) {
    ArrayAttr lastUses = cast<ActionOp>(moment.op).getLastUsesAttr();
    if (!lastUses)
      return success();
    ++clock[moment.queue];
    for (auto use : lastUses.getAsRange<BufferAttr>()) {
      BufferAccess access{use.getSlot(), use.getBytes(), /*isWrite=*/true, Value()};
      if (failed(check(moment, access, clock, Value())))
        return failure();
      forEach(access, [&](Bytes &bytes) { bytes = {moment, Value(), 0, {}}; });
    }
    return success();
  }

  /// The results of an action may overlap its operands only for updates in place: of a state, a loop-carried value, or
  /// a collective's value.
  LogicalResult checkOverlap(const Moment &moment, ArrayRef<BufferAccess> accesses, const BufferAccess &write) {
    if (!write.isWrite)
      return success();
    for (const BufferAccess &other : accesses) {
      int64_t begin = other.slot.offsetFor(call, inFlight), writeBegin = write.slot.offsetFor(call, inFlight);
      bool overlaps = &other != &write && other.slot.getArena() == write.slot.getArena() &&
                      begin < writeBegin + write.bytes && writeBegin < begin + other.bytes;
      bool isUpdate =
          !other.isWrite && begin == writeBegin && (isa<CommunicateOp>(moment.op) || isUpdated(other.value));
      if (overlaps && !isUpdate)
        return moment.op->emitOpError("(") << nameOf(moment.op) << ") writes over another of its own buffers";
    }
    return success();
  }

  static bool isUpdated(Value value) {
    auto argument = dyn_cast<BlockArgument>(value);
    return argument ? isa<LoopOp>(argument.getOwner()->getParentOp()) : isa<GetOp>(value.getDefiningOp());
  }

  /// Whether bytes hold the value that a reader of `value` expects. For a state that is its value before the call, from
  /// any producer.
  bool holds(const Bytes &bytes, Value value) const {
    if (value.getDefiningOp<GetOp>())
      return !bytes.writer || bytes.writer->call < call;
    return bytes.value == value && bytes.valueTurn == turns.lookup(value.getParentBlock());
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
    else if (other.op && other.turn != turns.lookup(other.op->getBlock()))
      diagnostic << " of the iteration before";
    diagnostic << " " << what;
    return true;
  }

  /// Calls `body` for each piece of the access; splits pieces at its ends.
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
  DenseMap<Block *, int64_t> turns; // by list: number of earlier turns
  SmallVector<Clock> clocks;        // by queue
  Clock issuer;                     // of the host, which issues all actions
  DenseMap<std::pair<Operation *, int64_t>, Clock> endings;
  DenseMap<Operation *, SmallVector<BufferAccess>> accessesByAction;
  DenseMap<StringAttr, std::map<int64_t, Bytes>> arenas;
};

} // namespace

/// A result of which only a part is written must be in the place of the operand that it updates.
static WalkResult verifyInPlace(LaunchOp launch, const SymbolTable &symbols) {
  ArrayRef<Attribute> slots = launch.getSlotsAttr().getValue();
  auto callee = symbols.lookup<FunctionOp>(launch.getFunctionAttr().getAttr());
  for (auto [number, value] : llvm::enumerate(callee.getBody().front().getTerminator()->getOperands())) {
    auto update = value.getDefiningOp<UpdateOp>();
    if (!update || !update.isInPlace())
      continue;
    auto old = dyn_cast<BlockArgument>(update->getOperand(0));
    if (!old || slots[old.getArgNumber()] != slots[launch.getRead().size() + number])
      return launch.emitOpError("writes a part in place of what lies elsewhere");
  }
  return WalkResult::advance();
}

LogicalResult verifyPlan(ModuleOp module, const Target &target) {
  SymbolTable symbols(module);
  if (module.walk([&](LaunchOp launch) { return verifyInPlace(launch, symbols); }).wasInterrupted())
    return failure();
  Queues queues(target);
  for (auto entry : module.getOps<EntryOp>())
    if (failed(EntryVerifier(entry, queues).run()))
      return failure();
  return success();
}

} // namespace sluice::passes
