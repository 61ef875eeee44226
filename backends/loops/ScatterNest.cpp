#include "backends/loops/ScatterNest.h"

#include "backends/loops/SumNest.h"
#include "ir/Layout.h"

namespace sluice::loops {

using namespace mlir;

/// Minimum additions of a part. A part with fewer would mostly read indices of other parts.
static constexpr int64_t kTermsOfPart = 8 << 10;

// A scatter with a single index is an ordinary nest, which compares the index at each place. Halves are not accumulated
// in memory, because each addition would round.
Operation *findScatter(ir::YieldOp yield) {
  auto op = yield.getNumOperands() == 1 ? yield.getOperand(0).getDefiningOp<ir::ScatterAddOp>() : ir::ScatterAddOp();
  bool adds = op && op.getIndex().getType().getRank() > 0 && !ir::isHalf(op.getY().getType().getElementType());
  return adds ? op.getOperation() : nullptr;
}

static int64_t countAtCapacity(ArrayRef<int64_t> shape, int64_t capacity) {
  int64_t count = 1;
  for (int64_t size : shape)
    count *= ShapedType::isDynamic(size) ? capacity : size;
  return count;
}

ScatterNest::ScatterNest(Operation *scatter, Memory y, Formulas &formulas, int64_t capacity, const NestWriter &writer)
    : op(cast<ir::ScatterAddOp>(scatter)), y(y), axis(op.getAxis()), capacity(capacity) {
  const Reduction &sum = *formulas.of(op, 0)->reductions.front();
  addition = std::get<Arithmetic>(sum.combine.steps.back().what).op;
  terms = std::max<int64_t>(1, countAtCapacity(op.getIndex().getType().getShape(), capacity));
  int64_t columns = std::max<int64_t>(1, countAtCapacity(space().getShape(), capacity)), size = op.getSize();
  int64_t tasks = llvm::divideCeil(columns, writer.elementsAtOnce());
  int64_t enough = llvm::divideCeil(writer.wantedTasks(), tasks),
          worthwhile = llvm::divideCeil(terms * columns, kTermsOfPart);
  parts = std::min({enough, worthwhile, size});
  perPart = llvm::divideCeil(size, parts);
  parts = llvm::divideCeil(size, perPart);
}

RankedTensorType ScatterNest::space() const { return columnsOf(y.type, axis); }

namespace {

/// The terms of some columns, during emission.
class Walk {
public:
  Walk(Emitter &emitter, Elements &elements, ir::ScatterAddOp op, Memory y, Operation *addition, int64_t capacity)
      : emitter(emitter), elements(elements), scopes(elements.scopes()), op(op), y(y), addition(addition),
        capacity(capacity) {}

  /// Emits the additions to the places of part number `part`, of `perPart` places; null: all places.
  void emit(ArrayRef<AffineExpr> column, AffineExpr part, int64_t perPart) {
    overIndex([&] {
      AffineExpr place = elements.dataIndex(op.getIndex(), at, int64_t(op.getSize()));
      if (!part)
        return addTerm(column, place);
      AffineExpr fromFirst = place - part * perPart;
      Condition isOfPart = emitter.both(isNonNegative(fromFirst), isNonNegative(perPart - 1 - fromFirst));
      scopes.block(isOfPart, {}, [&] {
        // A separate variable of the block, of at least two values: its users stay in the block.
        at.back() = scopes.variable(last, {0, std::max<int64_t>(1, lastSize - 1)});
        addTerm(column, place);
        return Scopes::Carried();
      });
    });
  }

private:
  Condition isNonNegative(AffineExpr index) { return emitter.isNonNegative(emitter.space().normalize(index)); }

  /// Loops over the dimensions of the index, in its order.
  void overIndex(llvm::function_ref<void()> inside) {
    ArrayRef<int64_t> shape = op.getIndex().getType().getShape();
    if (at.size() == shape.size())
      return inside();
    bool isRows = ShapedType::isDynamic(shape[at.size()]);
    int64_t size = isRows ? capacity : shape[at.size()];
    Count end = isRows ? emitter.rows() : emitter.constant(size);
    scopes.loop(emitter.constant(0), end, 1, size, {}, [&](Count number, ArrayRef<Element>) {
      last = number;
      lastSize = size;
      at.push_back(scopes.variable(number, {0, std::max<int64_t>(0, size - 1)}));
      overIndex(inside);
      at.pop_back();
      return Scopes::Carried();
    });
  }

  void addTerm(ArrayRef<AffineExpr> column, AffineExpr place) {
    int64_t axis = op.getAxis();
    SmallVector<AffineExpr> of(column.take_front(axis)), to(column);
    llvm::append_range(of, at);
    llvm::append_range(of, column.drop_front(axis + 1));
    to[axis] = place;
    // The last tile may be padded; padding stays zero.
    SmallVector<AffineExpr> inside;
    for (auto [dim, size] : llvm::enumerate(y.type.getShape()))
      if (int64_t(dim) != axis && !ShapedType::isDynamic(size))
        inside.push_back(size - 1 - column[dim]);
    Element term = elements.guarded(
        inside, [&] { return elements.element(op.getX(), of); }, elements.zero(y.type.getElementType()));
    AffineExpr offset = elements.offsetOf(y.type, to);
    elements.store(y, offset, emitter.apply(addition, {elements.loadToStore(y, offset), term}));
  }

  Emitter &emitter;
  Elements &elements;
  Scopes &scopes;
  ir::ScatterAddOp op;
  Memory y;
  Operation *addition;
  int64_t capacity;
  SmallVector<AffineExpr> at; // position in the index tensor
  Count last;                 // loop variable of its innermost dimension
  int64_t lastSize = 1;       // size of that dimension
};

} // namespace

void ScatterNest::fill(LoopNest &nest) const {
  nest.folds = true;
  nest.parts = parts;
  nest.bytesPerElement = double(terms * ir::getElementBytes(y.type.getElementType())) * 2 / double(parts);
  nest.body = [*this](Emitter &emitter, Elements &elements, AffineExpr part, ArrayRef<AffineExpr> column) {
    Walk(emitter, elements, op, y, addition, capacity).emit(column, part, perPart);
  };
}

} // namespace sluice::loops
