#include "runtime/instance/BenchState.h"

#include "runtime/instance/Initialise.h"
#include "runtime/io/Shuffle.h"

#include <algorithm>
#include <cstring>

namespace sluice::runtime {

static constexpr int64_t stepsBetweenResets = 16;

static uint32_t randomWord(int64_t index) { return threefry2x32({0, 0}, {0, static_cast<uint32_t>(index)})[0]; }

template <typename T, typename Make> static void fill(std::byte *data, int64_t count, Make make) {
  for (int64_t i = 0; i < count; ++i) {
    T value = make(randomWord(i));
    std::memcpy(data + i * static_cast<int64_t>(sizeof value), &value, sizeof value);
  }
}

/// The number of elements of an input's memory on the host.
static int64_t elementsToFill(const Plan &plan, const Value &input) {
  return elementsOf(input.rowsDim < 0 ? input.shape : input.shapeFor(plan.roomOf(input), plan.capacity));
}

/// Uses the same values in all replicas.
static void fillSample(std::byte *data, const Value &input, int64_t count) {
  bool isIndex = input.below > 0;
  auto range = static_cast<uint32_t>(std::clamp<int64_t>(input.below, 1, UINT32_MAX));
  switch (input.dtype) {
  case DType::f32:
    return fill<float>(data, count, [](uint32_t word) { return static_cast<float>(word >> 8) * 0x1p-24f; });
  case DType::f16:
    return fill<sluice_f16>(data, count,
                            [](uint32_t word) { return sluice_f16(static_cast<float>(word >> 21) * 0x1p-11f); });
  case DType::bf16:
    return fill<sluice_bf16>(data, count,
                             [](uint32_t word) { return sluice_bf16(static_cast<float>(word >> 24) * 0x1p-8f); });
  case DType::f64:
    return fill<double>(data, count, [](uint32_t word) { return word * 0x1p-32; });
  case DType::i32:
    return fill<int32_t>(data, count, [&](uint32_t word) { return static_cast<int32_t>(isIndex ? word % range : 1); });
  case DType::i64:
    return fill<int64_t>(data, count, [&](uint32_t word) { return static_cast<int64_t>(isIndex ? word % range : 1); });
  case DType::u8:
    return fill<uint8_t>(data, count,
                         [&](uint32_t word) { return static_cast<uint8_t>(isIndex ? word % range : word); });
  case DType::boolean:
    return fill<uint8_t>(data, count, [](uint32_t) { return uint8_t(1); });
  }
}

/// Whether a call changes states: whether a launch writes into an arena that has states.
static bool changesStates(const Plan &plan, const Entry &entry) {
  auto isState = [&](const Buffer &buffer) {
    return buffer.isWritten() && std::any_of(plan.states.begin(), plan.states.end(),
                                             [&](const State &state) { return state.slot.arena == buffer.slot.arena; });
  };
  std::vector<ListedAction> actions = plan.actionsOf(entry, /*microbatches=*/1);
  return std::any_of(actions.begin(), actions.end(), [&](const ListedAction &listed) {
    const Launch *launch = listed.action->launch();
    return launch && std::any_of(launch->buffers.begin(), launch->buffers.end(), isState);
  });
}

/// Whether a call overwrites the memory of `input`.
static bool overwrites(const Plan &plan, const Entry &entry, const Value &input) {
  return std::any_of(entry.actions.begin(), entry.actions.end(),
                     [&](const Action &action) { return plan.writes(action, input.slot, input.bytes); });
}

BenchState::BenchState(Instance &instance, const Entry &entry, uint64_t seed)
    : instance_(instance), entry_(entry), seed_(seed) {
  for (const Value &input : entry.inputs) {
    Bytes &sample = samples_.emplace_back();
    if (!overwrites(instance.plan(), entry, input))
      continue;
    sample.resize(static_cast<size_t>(input.bytes));
    fillSample(sample.data(), input, elementsToFill(instance.plan(), input));
  }
  beginsAgain_ = instance.plan().isHostOnly() && changesStates(instance.plan(), entry);
}

void BenchState::beginAgain() {
  std::vector<std::pair<const State *, Bytes>> settings;
  for (const State &state : instance_.plan().states)
    if (state.kind == StateKind::hyperparameter)
      instance_.getState(state, settings.emplace_back(&state, static_cast<size_t>(state.logicalBytes())).second);
  initialise(instance_, seed_);
  for (const auto &[state, value] : settings)
    instance_.setState(*state, value);
}

void BenchState::prepare(int64_t step) {
  bool isFirst = step < instance_.plan().inFlight; // each call in flight has its own copies of the inputs
  if (beginsAgain_ && step > 0 && step % stepsBetweenResets == 0) {
    beginAgain();
    isFirst = true;
  }
  for (size_t i = 0; i < samples_.size(); ++i)
    for (int64_t replica = 0; replica < instance_.replicasHere(); ++replica) {
      const Value &input = entry_.inputs[i];
      if (!samples_[i].empty())
        std::memcpy(instance_.inputAddress(input, replica), samples_[i].data(), samples_[i].size());
      else if (isFirst)
        fillSample(instance_.inputAddress(input, replica), input, elementsToFill(instance_.plan(), input));
    }
}

} // namespace sluice::runtime
