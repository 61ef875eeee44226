#include "backends/cpu/compiler/loops/LoopKernel.h"

#include "backends/cpu/compiler/loops/LoopNest.h"
#include "backends/loops/LoopKernel.h"
#include "ir/Layout.h"

namespace sluice::cpu {

using namespace mlir;

namespace {

/// Each nest becomes a stage.
class StageWriter : public loops::NestWriter {
public:
  StageWriter(ModuleOp into, const Target &target, int64_t capacity) : into(into), target(target), capacity(capacity) {}

  int64_t lanes() const final { return lanesOf(target); }
  int64_t elementsPerChunk() const final { return 32 << 10; }
  int64_t wantedTasks() const final { return 8; }
  int64_t elementsAtOnce() const final { return kColumns; }
  bool splitsAtBorders() const final { return true; }

  LogicalResult write(const loops::LoopNest &nest) final {
    FailureOr<EmittedNest> emitted = emitLoopNest(nest, into, target, capacity);
    if (failed(emitted))
      return failure();
    stages.push_back(emitted->stage);
    double elements = nest.chunks ? double(nest.chunks->maxChunks) : 1;
    for (int64_t size : nest.space.getShape())
      elements *= double(ShapedType::isDynamic(size) ? capacity : size);
    filled += elements * emitted->lanes;
    weight += elements;
    return success();
  }

  llvm::SmallVector<Stage> stages;
  double filledLanes() const { return weight > 0 ? filled / weight : 1; }

private:
  ModuleOp into;
  const Target &target;
  int64_t capacity;
  double filled = 0, weight = 0;
};

} // namespace

FailureOr<LoweredKernel> lowerLoopKernel(ir::KernelOp kernel, ModuleOp into, StringRef name, const Target &target,
                                         int64_t capacity) {
  StageWriter writer(into, target, capacity);
  FailureOr<int64_t> workspaceBytes = loops::writeLoopKernel(kernel, name, capacity, writer);
  if (failed(workspaceBytes))
    return failure();
  LoweredKernel lowered;
  lowered.stages = std::move(writer.stages);
  lowered.workspaceBytes = *workspaceBytes;
  lowered.lanes = writer.filledLanes();
  return lowered;
}

} // namespace sluice::cpu
