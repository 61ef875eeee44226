// The IR of the last phases as the plan sees it: queues, arenas, and an entry point's actions with the bytes that they
// touch.
#pragma once

#include "ir/Dialect.h"
#include "ir/Target.h"
#include <optional>

namespace sluice::passes {

/// Names of attributes that the last phases leave.
inline constexpr llvm::StringLiteral kQueueAttr = "queue"; // of kernels and copies: its name
inline constexpr llvm::StringLiteral kBuffersAttr =
    "buffers"; // of kernels and copies: the places of operands, results and workspace
inline constexpr llvm::StringLiteral kEndsAttr =
    "ends"; // of kernels and copies: places and bytes of what nobody reads after them
inline constexpr llvm::StringLiteral kInputsAtAttr = "inputs_at";   // of entry points: places
inline constexpr llvm::StringLiteral kOutputsAtAttr = "outputs_at"; // of entry points: places
inline constexpr llvm::StringLiteral kInputWaitsAttr =
    "input_waits"; // of entry points: pairs (event, calls) for each input
inline constexpr llvm::StringLiteral kTransientBytesAttr = "transient_bytes"; // of entry points: of each device
inline constexpr llvm::StringLiteral kMirrorsAttr = "mirrors";                // of states: places on other devices
inline constexpr llvm::StringLiteral kArenasAttr =
    "sluice.arenas"; // of the module: dictionaries of name, device, bytes

/// The queues of a target: one of the host, and of each accelerator one that computes and one for each direction of
/// copies.
class Queues {
public:
  struct Queue {
    std::string name;
    size_t device;
    bool copies;
  };
  explicit Queues(const ir::Target &target);

  llvm::ArrayRef<Queue> list() const { return queues; }
  unsigned size() const { return unsigned(queues.size()); }
  /// The queue that the op's attribute names; the host's if it has none.
  unsigned of(mlir::Operation *op) const;
  unsigned find(llvm::StringRef name) const;
  /// The name of the device whose queue it is.
  llvm::StringRef deviceOf(unsigned queue) const { return llvm::StringRef(queues[queue].name).split('.').first; }
  /// Where a kernel, or a copy between devices, belongs: copies go into the queue of the accelerator that they enter,
  /// else of the one that they leave.
  llvm::StringRef choose(mlir::Operation *action) const;

private:
  std::vector<Queue> queues;
};

/// Arenas: state, transient and constants of the host, then state and transient of each accelerator.
inline int64_t stateArena(size_t device) { return device == 0 ? 0 : int64_t(2 * device + 1); }
inline int64_t transientArena(size_t device) { return stateArena(device) + 1; }
inline constexpr int64_t kConstantsArena = 2;

/// Where a buffer lies; call number n uses the place at `offset + n % 2 * stride`.
struct BufferPlace {
  int64_t arena = 0, offset = 0, stride = 0;

  static BufferPlace of(mlir::Attribute attribute);
  mlir::Attribute asAttribute(mlir::MLIRContext *context) const;
  int64_t offsetFor(int64_t call) const { return offset + call % 2 * stride; }
};

/// A place, its bytes, and what an action does there.
struct BufferAccess {
  BufferPlace place;
  int64_t bytes = 0;
  bool isWrite = false;
};

/// A kernel, or a copy between devices.
bool isAction(mlir::Operation *op);
/// A copy that the host asks for after the call.
bool isAsked(mlir::Operation *op);
llvm::SmallVector<mlir::Operation *> actionsOf(ir::EntryOp entry);
/// Of a kernel.
int64_t workspaceOf(ir::KernelOp kernel);
/// What an action of a planned module touches: operands, results, workspace.
llvm::SmallVector<BufferAccess> accessesOf(mlir::Operation *action, int64_t capacity);

int64_t capacityOf(mlir::ModuleOp module);
size_t deviceIndex(const ir::Target &target, llvm::StringRef name);

} // namespace sluice::passes
