#include "runtime/plan/CopyForecast.h"

#include <algorithm>
#include <utility>

namespace sluice::runtime {

/// Accelerators of two backends cannot access each other's memory: their copies go through the host.
void CopyForecast::add(const Copy &copy, int64_t rows, int64_t times) {
  size_t from = plan_.deviceOf(copy.from), to = plan_.deviceOf(copy.to);
  CopyCount moved{times, times * copy.bytesFor(rows)};
  bool isDirect = from == 0 || to == 0 || plan_.devices[from].backend == plan_.devices[to].backend;
  if (isDirect) {
    counts_[{from, to, copy.reason}] += moved;
    return;
  }
  counts_[{from, 0, copy.reason}] += moved;
  counts_[{0, to, copy.reason}] += moved;
}

namespace {

/// The byte ranges that the actions of an entry write.
class WrittenBytes {
public:
  explicit WrittenBytes(const Entry &entry) {
    for (const Action &action : entry.actions)
      for (const Buffer &buffer : action.buffers())
        if (buffer.isWritten())
          ranges_[buffer.slot.arena].push_back({buffer.slot.offset, buffer.slot.offset + buffer.bytes});
    for (auto &[arena, list] : ranges_) {
      std::sort(list.begin(), list.end());
      int64_t end = 0;
      for (Range &range : list)
        range.end = end = std::max(end, range.end);
    }
  }

  /// Whether the state at `state` is written, alone or as part of a larger range.
  bool contain(const Slot &state) const {
    auto list = ranges_.find(state.arena);
    if (list == ranges_.end())
      return false;
    auto behind = std::upper_bound(list->second.begin(), list->second.end(), Range{state.offset, INT64_MAX});
    return behind != list->second.begin() && std::prev(behind)->end > state.offset;
  }

private:
  /// `end` is the largest end of this range and all ranges before it.
  struct Range {
    int64_t begin, end;
    auto operator<=>(const Range &) const = default;
  };
  std::map<size_t, std::vector<Range>> ranges_; ///< by arena, sorted by `begin`
};

} // namespace

CopyForecast::CopyForecast(const Plan &plan) : plan_(plan), calls_(plan.entries.size()) {
  for (const State &state : plan.states)
    for (const Slot &mirror : state.mirrors)
      mirrors_.push_back({state.slot, mirror});
  for (const Entry &entry : plan.entries) {
    Calls &calls = callsOf(entry);
    for (auto [action, times] : entry.allActions())
      for (const Copy &copy : action->copies())
        if (copy.when != Copy::When::asked)
          calls.copies.push_back({&copy, times});
    WrittenBytes written(entry);
    for (size_t i = 0; i < mirrors_.size(); ++i)
      if (written.contain(mirrors_[i].state))
        calls.written.push_back(i);
    for (const State &state : plan.states)
      for (size_t source : state.sources)
        if (written.contain(plan.states[source].slot))
          calls.derivations.push_back(state.derivation);
  }
}

void CopyForecast::makeStale(const Slot &state) {
  for (Mirror &mirror : mirrors_)
    mirror.stale |= mirror.state == state;
  for (const State &derived : plan_.states)
    for (size_t source : derived.sources)
      calls_[derived.derivation].stale |= plan_.states[source].slot == state;
}

void CopyForecast::call(const Entry &entry, int64_t rows) {
  for (size_t derivation : entry.derivations)
    if (std::exchange(calls_[derivation].stale, false))
      countCall(calls_[derivation], /*rows=*/1);
  countCall(callsOf(entry), rows);
}

void CopyForecast::countCall(Calls &calls, int64_t rows) {
  for (const CopyOfCall &its : calls.copies) {
    const Slot &filled = its.copy->to;
    if (its.copy->when == Copy::When::stale) {
      auto mirror =
          std::find_if(mirrors_.begin(), mirrors_.end(), [&](const Mirror &item) { return item.mirror == filled; });
      if (!mirror->stale)
        continue;
      mirror->stale = false;
      ++mirrorsRefreshed_;
    }
    add(*its.copy, rows, its.times);
  }
  for (size_t mirror : calls.written)
    mirrors_[mirror].stale = true;
  for (size_t derivation : calls.derivations)
    calls_[derivation].stale = true;
  ++calls.kept;
}

void CopyForecast::write(const State &state) {
  if (size_t device = plan_.deviceOf(state.slot))
    counts_[{0, device, setReason}].add(state.bytes);
  makeStale(state.slot);
}

void CopyForecast::read(const State &state) {
  if (size_t device = plan_.deviceOf(state.slot))
    counts_[{device, 0, readReason}].add(state.bytes);
}

static const Copy *askedCopy(const Entry &entry, const Value &output) {
  for (const Action &action : entry.actions) // loops contain none
    if (action.isAsked() && action.copy()->to == output.slot)
      return action.copy();
  return nullptr;
}

void CopyForecast::read(const Entry &entry, const Value &output, int64_t rows) {
  if (const Copy *copy = askedCopy(entry, output))
    add(*copy, rows);
}

void CopyForecast::keep(const Entry &entry, const std::vector<const Value *> &outputs) {
  Calls &calls = callsOf(entry);
  calls.kept = 0;
  calls.keptOutputs.clear();
  for (const Value *output : outputs)
    if (const Copy *copy = askedCopy(entry, *output))
      ++calls.keptOutputs[plan_.deviceOf(copy->from)];
}

void CopyForecast::bring(const Entry &entry) {
  Calls &calls = callsOf(entry);
  for (auto [device, outputs] : calls.keptOutputs)
    if (calls.kept > 0)
      counts_[{device, 0, logReason}].add(calls.kept * outputs * static_cast<int64_t>(sizeof(double)));
  calls.kept = 0;
}

/// The number of writes of a state per call. The parts of a call read the values that earlier parts wrote.
static int64_t writesOf(const std::vector<WrittenBytes> &parts, const std::vector<int64_t> &times, const Slot &state) {
  int64_t writes = 0;
  for (size_t i = 0; i < parts.size(); ++i)
    if (parts[i].contain(state))
      writes = std::max(writes, times[i]);
  return writes;
}

std::vector<CopyOfCall> copiesPerCall(const Plan &plan, const Entry &entry, int64_t microbatches) {
  std::vector<CopyOfCall> copies;
  std::vector<const Entry *> parts = plan.partsOf(entry);
  std::vector<int64_t> timesOfPart = plan.timesOf(entry, microbatches);
  std::vector<WrittenBytes> written;
  for (const Entry *part : parts)
    written.emplace_back(*part);
  for (size_t i = 0; i < parts.size(); ++i)
    for (auto [action, times] : parts[i]->allActions())
      for (const Copy &copy : action->copies()) {
        int64_t due = copy.when == Copy::When::step ? timesOfPart[i]
                      : copy.when == Copy::When::stale
                          ? std::min(timesOfPart[i], writesOf(written, timesOfPart, copy.from))
                          : 0;
        if (due > 0)
          copies.push_back({&copy, times, due});
      }
  return copies;
}

} // namespace sluice::runtime
