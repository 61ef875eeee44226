// Generates the value of any element of any value in a kernel's region, inside a nest of loops: the pull-style heart of
// the loop generator.
//
// Elements are vectors of `lanes` elements (ui8 is i8), always of the same number, so that every element goes through
// the same instructions wherever it is computed. Where no lane variable is in reach, all lanes hold the same element.
// An element is emitted in the outermost loop whose variables its indices need, once.
//
// Sums are folded in an order that shapes alone fix (see `fold` in Fold.cpp), in two ways that give the same bits.
#pragma once

#include "backends/cpu/compiler/StageFunction.h"
#include "backends/cpu/compiler/loops/LinearIndex.h"
#include "ir/Dialect.h"
#include "ir/build/Lane.h"
#include <deque>
#include <map>

namespace sluice::cpu {

/// A level of loops under construction. Values that belong to it but are found missing from a deeper level are emitted
/// in front of `anchor` of the next level.
struct LoopScope {
  struct Entry {
    mlir::Value value;
    llvm::SmallVector<mlir::AffineExpr> index;
    unsigned guard; // the guard under which it was emitted; 0: none
    llvm::SmallVector<mlir::Value> results;
  };
  LoopScope *parent = nullptr;
  mlir::Operation *anchor = nullptr; // the op in the parent's block that holds this scope
  mlir::Block *block = nullptr;
  unsigned depth = 0;
  mlir::AffineExpr lane; // the variable that numbers the lanes, if this scope brings one
  mlir::Value tail;      // those of its lanes that exist; null: all
  llvm::DenseMap<mlir::Value, llvm::SmallVector<Entry, 1>> found;
  llvm::DenseMap<mlir::AffineExpr, mlir::Value> conditions;
};

/// Where a value lies in memory.
struct Memory {
  int64_t buffer = 0;
  int64_t byteOffset = 0;
  mlir::RankedTensorType type; // with the layout
};

/// A reduction whose fold is cut into chunks of its outermost dimension: one stage folds each chunk into partial
/// results in the workspace, [chunk][element of the op's result], and later stages combine these in order.
struct SplitFold {
  mlir::Operation *op = nullptr;
  int64_t chunk = 0;     // indices of the outermost reduced dimension (of size > 1) that one chunk holds
  int64_t maxChunks = 0; // at capacity
  bool overRows = false; // whether that dimension is `?`
  int64_t elements = 0;  // of the op's result, in its layout
  int64_t buffer = 0;    // the workspace
  llvm::SmallVector<int64_t> byteOffsets; // of each carried value's partial results
  llvm::SmallVector<mlir::Type> carried;  // their element types
};

/// What a fold runs over, and the elements that it carries.
struct FoldShape {
  llvm::SmallVector<int64_t> extents;
  llvm::SmallVector<mlir::Type> carried;
};

/// On loops: how often they run at capacity, for the cost of a nest.
inline constexpr llvm::StringLiteral kTripsAttr = "sluice.trips";

class Evaluator : public ir::ElementBuilder {
public:
  /// Whether values may be emitted in front of the loop around the insertion point, or only at it.
  enum class Surroundings { Used, Ignored };
  Evaluator(mlir::OpBuilder &builder, mlir::Location loc, StageFunction &stage, int64_t lanes, int64_t capacity,
            Surroundings surroundings = Surroundings::Used);

  // What the region's values are.
  void bind(mlir::Value value, Memory memory) { memories[value] = memory; }
  void bind(const SplitFold &split) { splits[split.op] = split; }
  /// `value` is `element` at `index` in the current scope.
  void seed(mlir::Value value, llvm::ArrayRef<mlir::AffineExpr> index, mlir::Value element);

  /// The element of a value of the region.
  mlir::Value element(mlir::Value value, llvm::ArrayRef<mlir::AffineExpr> index);
  /// The partial results of `op`'s fold over the chunk numbered `chunk`, for its result's element at `index`.
  llvm::SmallVector<mlir::Value> partial(mlir::Operation *op, mlir::AffineExpr chunk,
                                         llvm::ArrayRef<mlir::AffineExpr> index);

  /// The folds in the formula of `op`, which must have one.
  llvm::SmallVector<FoldShape> survey(mlir::Operation *op);

  // Memory.
  mlir::Value load(const Memory &memory, mlir::AffineExpr offset);
  void store(const Memory &memory, mlir::AffineExpr offset, mlir::Value lanes);
  /// Whether the lanes at `offset` lie side by side.
  bool isContiguous(mlir::AffineExpr offset) const;
  mlir::AffineExpr offsetOf(mlir::RankedTensorType type, llvm::ArrayRef<mlir::AffineExpr> index);
  /// When `value` is computed for a step of a partial fold, at the index of that step, `memory` gets it: as the steps
  /// of all partial folds visit each element of the operand once, all of it.
  void storeOnTheWay(mlir::Value value, Memory memory) { onTheWay[value] = {memory, 0}; }
  /// Whether every step did so.
  bool storedOnTheWay(mlir::Value value) const { return steps > 0 && onTheWay.lookup(value).stores == steps; }

  // Loops. `body` runs with the insertion point in the new scope, and gives the loop's next carried values.
  using Carried = llvm::SmallVector<mlir::Value>;
  using Body = llvm::function_ref<Carried(mlir::Value iv, mlir::ValueRange carried)>;
  Carried loop(mlir::Value begin, mlir::Value end, int64_t step, int64_t trips, mlir::ValueRange carried, Body body);
  /// The body once, where `condition` holds (null: always).
  Carried block(mlir::Value condition, mlir::ValueRange carried, llvm::function_ref<Carried()> body);
  mlir::AffineExpr variable(mlir::Value value, Interval range);
  /// Gives the current scope lanes: a variable that is 0, 1, ... in them. `count`, if any, is the number that exist.
  mlir::AffineExpr laneVariable(mlir::Value count = nullptr);
  /// The same with a number known now.
  mlir::AffineExpr laneVariable(int64_t count);

  mlir::Value constantIndex64(int64_t value);
  mlir::Value indexValue(mlir::AffineExpr expr);
  /// A dimension's run-time size: the rows, or a constant.
  mlir::Value extentValue(int64_t extent);
  mlir::Value rowsValue() { return stage.rows; }
  int64_t capacityOf(int64_t extent) const { return extent == kRows ? capacity : extent; }

  bool hasFailed() const { return failed; }
  /// Whether some fold stands in a loop that it does not depend on.
  bool foldsAgain() const { return foldedAgain; }
  IndexSpace &indexSpace() { return space; }
  mlir::OpBuilder &b() { return *builder_; }

  // ElementBuilder.
  mlir::Value operand(unsigned number, llvm::ArrayRef<mlir::AffineExpr> index) override;
  mlir::Value constant(double value, mlir::Type element) override;
  mlir::Value materialize(mlir::AffineExpr index, mlir::Type element) override;
  mlir::Value guarded(llvm::ArrayRef<mlir::AffineExpr> nonNegative, const std::function<mlir::Value()> &then,
                      mlir::Value otherwise) override;
  using Step = std::function<llvm::SmallVector<mlir::Value>(llvm::ArrayRef<mlir::AffineExpr>, mlir::ValueRange)>;
  using Combine = std::function<llvm::SmallVector<mlir::Value>(mlir::ValueRange, mlir::ValueRange)>;
  llvm::SmallVector<mlir::Value> reduce(llvm::ArrayRef<int64_t> extents, mlir::ValueRange initial, const Step &step,
                                        const Combine &combine) override;
  mlir::Value rows(mlir::Type element) override;

private:
  friend class Fold;
  struct OpFrame {
    mlir::Operation *op;
    llvm::SmallVector<mlir::AffineExpr> index;
    unsigned reductions = 0;
  };
  struct Guard {
    unsigned id;
    llvm::SmallVector<mlir::AffineExpr> nonNegative;
  };
  struct Mask {
    mlir::Value uniform; // an i1; null: true
    mlir::Value lanes;   // null: all
  };
  struct OnTheWay {
    Memory memory;
    unsigned stores = 0;
  };
  /// What a fold's step asks for, seen in a trial run.
  struct Trial {
    llvm::SmallVector<mlir::AffineExpr> used;
    llvm::SmallVector<mlir::AffineExpr> identity; // a description: two folds of one op with equal ones are the same
    llvm::SmallVector<FoldShape> folds;           // the folds in it
  };
  struct ChunkRequest {
    mlir::Operation *op = nullptr;
    mlir::AffineExpr chunk;
    llvm::SmallVector<mlir::Value> results;
  };

  // Scopes.
  LoopScope *scopeOf(mlir::AffineExpr expr);
  LoopScope *scopeOf(mlir::Value value);
  LoopScope *scopeOfAll(llvm::ArrayRef<mlir::AffineExpr> exprs);
  LoopScope *guardScope();
  LoopScope *laneScope() const;
  LoopScope *push(mlir::Operation *anchor, mlir::Block *block);
  /// Runs `emit` with the insertion point in `target`, in front of what leads to the current scope.
  template <typename F> auto inScope(LoopScope *target, F emit);
  void noteFold(LoopScope *in, llvm::ArrayRef<mlir::AffineExpr> used);
  const LoopScope::Entry *lookup(LoopScope *in, mlir::Value value, llvm::ArrayRef<mlir::AffineExpr> index);
  bool isActive(unsigned guard) const;

  mlir::Value compute(mlir::Value value, llvm::ArrayRef<mlir::AffineExpr> index);
  mlir::Value computeConstant(ir::ConstantOp op, llvm::ArrayRef<mlir::AffineExpr> index);
  mlir::Value fail(mlir::Operation *op, const llvm::Twine &message, mlir::Type type);
  void storeIfAsked(mlir::Value value, llvm::ArrayRef<mlir::AffineExpr> index, mlir::Value element);
  mlir::Value condition(mlir::AffineExpr nonNegative);
  Mask maskOf(llvm::ArrayRef<mlir::AffineExpr> nonNegative);
  Mask guardMask();
  mlir::Value toLanes(Mask mask, bool withTail);
  mlir::Value dummy(mlir::Type element);
  mlir::AffineExpr trialVariable(unsigned position, int64_t extent);

  bool usesLane(mlir::AffineExpr expr) const;
  mlir::Value uniformValue(const LinearIndex &index);
  mlir::Value laneValue(const LinearIndex &index, mlir::Type element);
  mlir::Value loadAt(mlir::Type element, mlir::Value base, mlir::AffineExpr offset);
  mlir::Value address(const Memory &memory);

  mlir::VectorType vectorOf(mlir::Type element) const { return mlir::VectorType::get({lanes}, element); }
  mlir::Value splat(mlir::Value scalar);
  mlir::Value allLanes();

  StageFunction &stage;
  int64_t lanes, capacity;
  IndexSpace space;
  std::deque<LoopScope> scopes;
  LoopScope *scope;
  llvm::DenseMap<mlir::Block *, LoopScope *> scopeOfBlock;
  struct Variable {
    LoopScope *scope;
    mlir::Value value; // null: the lane's number
  };
  llvm::SmallVector<Variable> variables;
  llvm::DenseMap<mlir::Value, Memory> memories;
  llvm::DenseMap<mlir::Operation *, SplitFold> splits;
  llvm::DenseMap<mlir::Value, OnTheWay> onTheWay;
  llvm::SmallVector<OpFrame> frames;
  llvm::SmallVector<Guard> guards;
  unsigned nextGuard = 1;
  std::map<std::pair<unsigned, int64_t>, mlir::AffineExpr> trialVariables;
  Trial *trial = nullptr;
  ChunkRequest *request = nullptr;
  llvm::SmallVector<mlir::AffineExpr> stepIndex; // of the partial fold's step being emitted: kept and folded dimensions
  unsigned steps = 0;                            // of partial folds
  bool failed = false, foldedAgain = false;
};

template <typename F> auto Evaluator::inScope(LoopScope *target, F emit) {
  if (target == scope)
    return emit();
  LoopScope *child = scope;
  while (child->parent != target)
    child = child->parent;
  mlir::OpBuilder::InsertionGuard guard(*builder_);
  builder_->setInsertionPoint(child->anchor);
  LoopScope *outer = std::exchange(scope, target);
  auto result = emit();
  scope = outer;
  return result;
}

/// The element type as memory holds it: i8 for ui8 and i1.
mlir::Type getMemoryElement(mlir::Type element);

} // namespace sluice::cpu
