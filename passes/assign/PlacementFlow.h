// What an entry point reads and makes, value by value: what the schedule of a placement follows from.
#pragma once

#include "passes/analysis/CostModel.h"
#include "passes/analysis/FusionGroups.h"
#include "passes/backend/DeviceBackends.h"

namespace sluice::passes {

/// Numbers of groups are those of the placement graph; values and states have numbers of their own.
struct PlacementFlow {
  struct Reader {
    uint32_t group;
    int position; ///< in the program, of the first op of the group that reads
  };
  /// A state's new value.
  struct Update {
    uint32_t state;
    int position;
    bool mayBeInPlace; ///< its launch reads the old value, if at all, only for the element in its own place
  };
  struct Value {
    static constexpr uint32_t kInput = ~0u;

    uint32_t producer = kInput;      ///< the group of a launch or state
    int64_t bytes = 0;               ///< of its memory slot
    double moved = 0;                ///< bytes of a copy
    int position = -1;               ///< of the op that makes it; -1: of an input
    std::optional<uint32_t> state;   ///< whose old value it is
    std::vector<Reader> readers;     ///< launches, each once
    std::vector<Update> updates;     ///< states whose new value it is
    std::vector<int> outputs;        ///< the numbers of the outputs that it is
    std::vector<double> copySeconds; ///< by device, of a launch that copies it, where it is an update or output
  };
  struct State {
    uint32_t group;
    int64_t bytes;                 ///< of its memory slot
    std::optional<uint32_t> value; ///< the old one, if it is read
    bool isWritten = false;
  };
  /// Empty of groups that are no launches.
  struct Launch {
    int position = 0;                      ///< of its first op
    std::vector<uint32_t> inputs, outputs; ///< values
  };

  std::vector<Value> values;
  std::vector<State> states;
  std::vector<Launch> launches; ///< by group
  std::vector<uint32_t> inputs; ///< values: all that the host writes
};

/// What a flow is made from: the launches' fusion groups, by group and null of others, and the groups of states.
struct FlowSource {
  ir::EntryOp entry;
  std::vector<const FusionGroup *> launches;
  const llvm::DenseMap<mlir::Operation *, uint32_t> &states;
  const DeviceBackends *backends;
  const CostModel *costs;
  int64_t capacity;
};

/// The flow of an entry point of a module in phase `train`. What is made anywhere, of constants alone, is left out: it
/// is made in the launches that read it.
PlacementFlow buildPlacementFlow(const FlowSource &source);

} // namespace sluice::passes
