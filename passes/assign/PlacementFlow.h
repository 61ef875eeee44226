// The values that an entry point reads and produces, from which the schedule of a placement follows.
#pragma once

#include "passes/analysis/CostModel.h"
#include "passes/analysis/FusionGroups.h"
#include "passes/backend/DeviceBackends.h"

namespace sluice::passes {

/// Groups are numbered as in the placement graph; values and states have their own numbers.
struct PlacementFlow {
  struct Reader {
    uint32_t group;
    int position; ///< in the program, of the reader's first op
  };
  /// A state's new value.
  struct Update {
    uint32_t state;
    int position;
    bool mayBeInPlace; ///< its launch reads the old value, if at all, only at the same position
  };
  struct Value {
    static constexpr uint32_t kInput = ~0u;

    uint32_t producer = kInput;      ///< group of a launch or state
    int64_t bytes = 0;               ///< of its memory slot
    double moved = 0;                ///< bytes of a copy
    int position = -1;               ///< of its producer; -1: input
    std::optional<uint32_t> state;   ///< of which it is the old value
    std::vector<Reader> readers;     ///< launches, each once
    std::vector<Update> updates;     ///< states that take it as their new value
    std::vector<int> outputs;        ///< numbers of the outputs with this value
    std::vector<double> copySeconds; ///< by device, of a launch that copies it for an update or output
  };
  struct State {
    uint32_t group;
    int64_t bytes;                 ///< of its memory slot
    std::optional<uint32_t> value; ///< the old value, if it is read
    bool isWritten = false;
  };
  /// Empty for groups that are not launches.
  struct Launch {
    int position = 0;                      ///< of its first op
    std::vector<uint32_t> inputs, outputs; ///< values
  };

  std::vector<Value> values;
  std::vector<State> states;
  std::vector<Launch> launches; ///< by group
  std::vector<uint32_t> inputs; ///< values that the host writes
};

/// The inputs of a flow: the fusion groups of launches, by group and null for others, and the groups of states.
struct FlowSource {
  ir::EntryOp entry;
  std::vector<const FusionGroup *> launches;
  const llvm::DenseMap<mlir::Operation *, uint32_t> &states;
  const DeviceBackends *backends;
  const CostModel *costs;
  int64_t capacity;
};

/// The flow of an entry point of a module in phase `train`. Values computed from constants alone are omitted, because
/// each launch computes them.
PlacementFlow buildPlacementFlow(const FlowSource &source);

} // namespace sluice::passes
