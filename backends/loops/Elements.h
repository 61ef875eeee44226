// Emits single elements of the values in a kernel's body, at the current position in a loop nest. The element of an
// op's result is the formula of the op, applied to elements of the operands, recursively down to values in memory.
//
// The client chooses the loops, the loop variable that numbers the lanes, and the results to store at each index. This
// class decides the rest. An element is emitted once for each index and guard, in the outermost loop that allows it
// (Scopes.h). Reads of windows are guarded by conditions on their index; conditions that always hold for the variables'
// ranges are omitted. Sums are folded in one order (Fold.h).
#pragma once

#include "backends/loops/Formula.h"
#include "backends/loops/Scopes.h"

namespace sluice::loops {

/// A reduction whose fold is cut into chunks of its outermost dimension: one stage folds each chunk into partial
/// results in the workspace, [chunk][element of the op's result], and later stages combine these as defined in Fold.h.
struct SplitFold {
  mlir::Operation *op = nullptr;
  int64_t chunk = 0;     // indices of the outermost reduced dimension (of size > 1) that one chunk holds
  int64_t maxChunks = 0; // at capacity
  bool overRows = false; // whether that dimension is the batch dimension, `?`
  int64_t elements = 0;  // of the op's result, in its layout
  int64_t buffer = 0;    // the workspace
  llvm::SmallVector<int64_t> byteOffsets; // of each carried value's partial results
  llvm::SmallVector<mlir::Type> carried;  // their element types
  // If a chunk would still be large with a single index: equal parts of the next dimension, each a separate chunk.
  int64_t parts = 1;
};

/// The offset of an element of a value with the layout of `type`, in a buffer for `capacity` rows.
mlir::AffineExpr offsetIn(mlir::RankedTensorType type, llvm::ArrayRef<mlir::AffineExpr> index, int64_t capacity);

class Elements {
public:
  Elements(Emitter &emitter, Formulas &formulas, int64_t capacity);

  // Definitions of the body's values.
  void bind(mlir::Value value, Memory memory) { memories[value] = memory; }
  void bind(const SplitFold &split) { splits[split.op] = split; }
  /// `value` is `element` at `index` in the current scope.
  void seed(mlir::Value value, llvm::ArrayRef<mlir::AffineExpr> index, Element element);

  /// The element of a value of the body.
  Element element(mlir::Value value, llvm::ArrayRef<mlir::AffineExpr> index) { return find(value, index).element; }
  /// That element, clamped to 0 .. size - 1, as an index.
  mlir::AffineExpr dataIndex(mlir::Value value, llvm::ArrayRef<mlir::AffineExpr> index, int64_t size);
  /// The partial results of the only fold of `op`, over the chunk numbered `chunk`, for the element of its result at
  /// `index`.
  llvm::SmallVector<Element> partial(mlir::Operation *op, mlir::AffineExpr chunk,
                                     llvm::ArrayRef<mlir::AffineExpr> index);
  /// `then` if all of `nonNegative` are >= 0, else `otherwise`. Reads emitted by `then` access no memory if the
  /// condition fails.
  Element guarded(llvm::ArrayRef<mlir::AffineExpr> nonNegative, llvm::function_ref<Element()> then, Element otherwise);
  Element zero(mlir::Type element);

  /// The result of `offsetIn`, normalized.
  mlir::AffineExpr offsetOf(mlir::RankedTensorType type, llvm::ArrayRef<mlir::AffineExpr> index);
  Element load(const Memory &memory, mlir::AffineExpr offset);
  void store(const Memory &memory, mlir::AffineExpr offset, Element element);
  Element loadToStore(const Memory &memory, mlir::AffineExpr offset);
  /// Stores `value` to `memory` when it is computed for a step of a partial fold, at the index of that step. All steps
  /// of all partial folds together visit each element of the operand once, so this stores the whole operand.
  void storeOnTheWay(mlir::Value value, Memory memory) { onTheWay[value] = {memory, 0}; }
  /// Whether every step stored the value.
  bool storedOnTheWay(mlir::Value value) const { return steps > 0 && onTheWay.lookup(value).stores == steps; }

  Scopes &scopes() { return scopes_; }
  bool hasFailed() const { return failed; }
  /// Whether some fold is in a loop that it does not depend on, so that each trip repeats it.
  bool foldsAgain() const { return foldedAgain; }
  /// Whether there are more lanes than partial results, and a fold goes along them, or across them with too few terms
  /// to keep partial results in memory (Fold.h). The emitted code must then be discarded.
  bool hasTooManyLanes() const { return needsFewerLanes; }
  /// The terms of the longest fold along lanes, at capacity; whether any fold goes across them.
  int64_t termsAlongLanes() const { return foldedAlong; }
  bool foldsAcrossLanes() const { return foldedAcross; }

private:
  friend class Fold;
  /// An element, and the scope in which it was emitted.
  struct Found {
    Element element;
    Scope *home = nullptr;
  };
  /// The state of replaying a formula at one index.
  struct Frame {
    const Formula &formula;
    llvm::SmallVector<mlir::AffineExpr> dims;
    llvm::SmallVector<Found> values;
  };
  struct Guard {
    unsigned id;
    llvm::SmallVector<mlir::AffineExpr> nonNegative;
  };
  struct ChunkRequest {
    mlir::Operation *op;
    mlir::AffineExpr chunk;
    llvm::SmallVector<Element> results;
  };
  struct OnTheWay {
    Memory memory;
    unsigned stores = 0; // emitted so far
  };

  Found find(mlir::Value value, llvm::ArrayRef<mlir::AffineExpr> index);
  Scope *scopeFor(mlir::Value value, llvm::ArrayRef<mlir::AffineExpr> index);
  bool isComputedFrom(mlir::Value value, mlir::Value seed);
  Found compute(mlir::Value value, llvm::ArrayRef<mlir::AffineExpr> index);
  Found computeConstant(ir::ConstantOp op, llvm::ArrayRef<mlir::AffineExpr> index);
  Found fail(mlir::Operation *op, mlir::Type type);
  Found here(Element element) { return {element, scopes_.current()}; }
  Found constant(mlir::TypedAttr number) { return {emitter.constant(number), scopes_.outermost()}; }
  const Scope::Entry *lookup(Scope *in, const void *key, llvm::ArrayRef<mlir::AffineExpr> index);
  void remember(Scope *in, const void *key, llvm::ArrayRef<mlir::AffineExpr> index, llvm::ArrayRef<Element> elements,
                Scope *home);
  llvm::SmallVector<mlir::AffineExpr> normalize(llvm::ArrayRef<mlir::AffineExpr> index);
  void storeIfAsked(mlir::Value value, llvm::ArrayRef<mlir::AffineExpr> index, Element element);

  // Following a formula.
  Frame frameOf(const Formula &formula, llvm::ArrayRef<mlir::AffineExpr> index);
  llvm::SmallVector<Element> follow(Frame &frame, const Steps &steps);
  void follow(Frame &frame, const Step &step, const Number &what);
  void follow(Frame &frame, const Step &step, const Arithmetic &what);
  void follow(Frame &frame, const Step &step, const Call &what);
  void follow(Frame &frame, const Step &step, const Read &what);
  void follow(Frame &frame, const Step &step, const DataIndex &what);
  void follow(Frame &frame, const Step &step, const IndexValue &what);
  void follow(Frame &frame, const Step &step, const RowCount &what);
  void follow(Frame &frame, const Step &step, const Guarded &what);
  void follow(Frame &frame, const Step &step, const Reduction &what);
  std::pair<llvm::SmallVector<Element>, Scope *> together(const Frame &frame, llvm::ArrayRef<ValueNumber> numbers);
  void setValues(Frame &frame, llvm::ArrayRef<ValueNumber> numbers, llvm::ArrayRef<Element> elements);
  static mlir::AffineExpr place(const Frame &frame, mlir::AffineExpr index);
  static llvm::SmallVector<mlir::AffineExpr> place(const Frame &frame, llvm::ArrayRef<mlir::AffineExpr> index);

  // Guards.
  Found guardedIn(llvm::ArrayRef<mlir::AffineExpr> nonNegative, llvm::function_ref<Found()> then, Found otherwise);
  Scope *guardScope();
  bool isActive(unsigned guard) const;
  unsigned activeGuard() const { return guards.empty() ? 0 : guards.back().id; }
  Condition condition(mlir::AffineExpr nonNegative);
  Condition allOf(llvm::ArrayRef<mlir::AffineExpr> nonNegative, Condition before = {});
  /// The conjunction of all guards; null if there are none.
  Condition guardCondition();

  Emitter &emitter;
  Formulas &formulas;
  int64_t capacity;
  Scopes scopes_;
  llvm::DenseMap<mlir::Value, Memory> memories;
  llvm::DenseMap<std::pair<mlir::Value, mlir::Value>, bool> computedFrom; // known results of isComputedFrom
  llvm::DenseMap<mlir::Operation *, SplitFold> splits;
  llvm::DenseMap<mlir::Value, OnTheWay> onTheWay;
  llvm::SmallVector<Guard> guards;
  unsigned nextGuard = 1;
  ChunkRequest *request = nullptr;
  // index of the current step of the partial fold: in the kept dimensions, then in the folded ones
  llvm::SmallVector<mlir::AffineExpr> stepIndex;
  unsigned steps = 0; // of partial folds
  bool failed = false, foldedAgain = false, needsFewerLanes = false, foldedAcross = false;
  int64_t foldedAlong = 0;
};

} // namespace sluice::loops
