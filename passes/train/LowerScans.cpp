// Converts scans to loops. Carried values and stacks become loop-carried; each step writes its part of the stacks.
//
//   %last, %ys = sluice.scan 5 steps (%h = %h0, %x = %xs along 1) stack 1 {...; sluice.step %n stack %n}
//     ==>  %r:3 = sluice.loop "scan" 5 times (%i = 0, %h = %h0, %s = zeros) {
//            %x = sluice.gather %xs, %i; ...; %t = sluice.dynamic_update_slice %s, %n, %i
//            sluice.next %i + 1, %n, %t
//          }
#include "ir/build/Node.h"
#include "mlir/IR/IRMapping.h"
#include "passes/Passes.h"
#include "passes/place/InheritDevice.h"

using namespace mlir;
using namespace sluice::ir;

namespace sluice::passes {

namespace {

class ScanLowering {
public:
  explicit ScanLowering(ScanOp scan) : scan(scan), before(scan), inner(scan.getContext()) {}

  void run() {
    Location loc = scan.getLoc();
    SmallVector<Value> first{firstPlace()};
    llvm::append_range(first, scan.getFirst());
    for (auto [stack, value] : llvm::zip_equal(scan.getStacks(), scan.getStep().getStacked())) {
      InheritDevice devices(before, getDevice(value.getType()), pinOf(value));
      first.push_back(full(before, loc, 0.0, cast<RankedTensorType>(stack.getType())));
    }
    auto loop =
        before.create<LoopOp>(loc, TypeRange(ValueRange(first)), "scan", scan.getCount(), first,
                              /*condition=*/Value(), /*after=*/ValueRange(), /*on=*/ArrayAttr(), /*slots=*/ArrayAttr(),
                              /*last_uses=*/ArrayAttr());
    Block *body = inner.createBlock(&loop.getBody());
    for (Value value : first)
      body->addArgument(value.getType(), loc);
    buildStep(body->getArguments());
    scan->replaceAllUsesWith(loop.getResults().drop_front());
    scan.erase();
  }

private:
  /// The index of the first step's slices, computed on the device of the slices, or of the carried values if no slice
  /// has a device.
  Value firstPlace() {
    StringAttr device, pin;
    for (Value operand : llvm::reverse(scan->getOperands()))
      if (!device && !pin) {
        device = getDevice(operand.getType());
        pin = pinOf(operand);
      }
    InheritDevice devices(before, device, pin);
    return full(before, scan.getLoc(), scan.getReverse() ? double(scan.getCount()) - 1 : 0.0,
                RankedTensorType::get({}, before.getI32Type()));
  }

  void buildStep(ValueRange arguments) {
    Value place = arguments.front();
    IRMapping mapping;
    ValueRange carried = arguments.slice(1, scan.getFirst().size());
    ValueRange stacks = arguments.drop_front(1 + carried.size());
    mapping.map(scan.getCarried(), carried);
    for (auto [x, dim, slice] : llvm::zip_equal(scan.getXs(), scan.getDims(), scan.getSlices())) {
      InheritDevice devices(inner, getDevice(x.getType()), pinOf(x));
      mapping.map(slice, sliceAt(Node(inner, scan.getLoc(), x), place, dim));
    }
    for (Operation &op : scan.getStepBlock().without_terminator())
      inner.clone(op, mapping);
    SmallVector<Value> next{nextPlace(place)};
    for (Value value : scan.getStep().getNext())
      next.push_back(mapping.lookupOrDefault(value));
    for (auto [stack, value, dim] : llvm::zip_equal(stacks, scan.getStep().getStacked(), scan.getStackDims())) {
      Node slice(inner, scan.getLoc(), mapping.lookupOrDefault(value));
      InheritDevice devices(inner, getDevice(value.getType()), pinOf(slice));
      next.push_back(withSliceAt(Node(inner, scan.getLoc(), stack), slice, place, dim));
    }
    inner.create<NextOp>(scan.getLoc(), next);
  }

  Value nextPlace(Value place) {
    InheritDevice devices(inner, getDevice(place.getType()), pinOf(place));
    Node here(inner, scan.getLoc(), place);
    return scan.getReverse() ? here - 1.0 : here + 1.0;
  }

  ScanOp scan;
  OpBuilder before, inner;
};

} // namespace

void lowerScans(ModuleOp module) {
  SmallVector<ScanOp> scans; // inner scans first
  module.walk([&](ScanOp scan) { scans.push_back(scan); });
  for (ScanOp scan : scans)
    ScanLowering(scan).run();
}

} // namespace sluice::passes
