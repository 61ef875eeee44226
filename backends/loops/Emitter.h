// The interface through which loop nests are emitted. Each client of `backends/loops` implements it once: the CPU
// backend for vectors of MLIR, the CUDA backend for the text of a thread.
//
// The meaning of an op (Formula.h), the required elements, their conditions and loops, and the order of sums
// (Elements.h, Fold.h) are decided before the emitter is called. An emitter emits one loop, one load or one addition at
// a time, and returns a handle to it. Handles are opaque to callers: a handle is an SSA value of vectors, for example,
// or the name of a variable in generated text.
//
// Elements come in groups of `lanes()`, which the same statements compute together: the lanes of a vector, the threads
// of a warp, or a single element. Inside of a loop that numbers its lanes, each lane has a separate element; elsewhere
// all lanes have the same element. Arithmetic arrives as single ops of the dialects arith and math on scalars (floats,
// i1, and i8, i32 and i64 as in `ir::Lane`), to be emitted for every lane: a vector op, or `a + b` of each thread.
//
// On a GPU the lanes are the threads of a warp, or some adjacent elements of each thread. An element is a variable of
// every thread, `rotate` a shuffle, and a condition of the lanes a branch around a load. From the index expression, the
// emitter chooses how to compute the index and how to load: a vector, a gather, or one load for all lanes.
#pragma once

#include "backends/loops/LinearIndex.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallVector.h"
#include <optional>

namespace sluice::loops {

using Condition = Handle<struct ConditionTag>; // a boolean, per lane or for all lanes
using LaneArray = Handle<struct LaneArrayTag>; // memory private to a lane

/// The location of a value: the kernel's buffer of this number, from this byte on.
struct Memory {
  int64_t buffer = 0;
  int64_t byteOffset = 0;
  mlir::RankedTensorType type; // with the layout
};

/// The lanes at the point of emission.
struct Lanes {
  mlir::AffineExpr variable; // 0, 1, ... in the lanes; null: all lanes have the same element
  Condition exists;          // true in the active lanes; null: all lanes are active
};

enum class CountOp { Add, Sub, Mul, Div, CeilDiv, Rem, Min, Max };

class Emitter {
public:
  virtual ~Emitter() = default;

  /// A power of two.
  virtual int64_t lanes() const = 0;
  /// The number of partial results of a fold, which determines the order of sums, see Fold.h. A power of two, at most
  /// `lanes()`.
  virtual int64_t partials() const { return lanes(); }
  /// If lanes are threads with private registers, the number of adjacent lanes of a thread; 0 otherwise. A fold along
  /// lanes has a partial result in each lane, which may be more than `partials()`. A fold across lanes has `partials()`
  /// in each lane.
  virtual int64_t lanesOfThread() const { return 0; }
  /// The variables of index expressions; the value of a count is the emitter's handle.
  IndexSpace &space() { return space_; }
  const IndexSpace &space() const { return space_; }

  // Positions. Loops and blocks nest, and `end` closes the innermost. Statements are emitted at the end of the
  // innermost open loop or block. `enter` selects an outer one: until `leave`, statements are emitted there, before the
  // loop or block that is open inside of it. Depth 0 is outside of all loops, also of those that were open at the
  // start. Loops opened after `enter` are closed before `leave`.
  struct Inside {
    Count variable;
    llvm::SmallVector<Element> carried;
  };
  /// `for (variable = begin; variable < end; variable += step)`, `trips` times at capacity. `carried` are the
  /// loop-carried values.
  virtual Inside beginLoop(Count begin, Count end, int64_t step, int64_t trips, llvm::ArrayRef<Element> carried) = 0;
  /// A block executed if `condition` holds, which is the same for all lanes (null: always); otherwise its results are
  /// `carried`.
  virtual void beginBlock(Condition condition, llvm::ArrayRef<Element> carried) = 0;
  /// Closes the loop or block and returns its results; `next` are its next carried values.
  virtual llvm::SmallVector<Element> end(llvm::ArrayRef<Element> next) = 0;
  /// The number of open loops; the emitter may be created inside of some.
  virtual unsigned depth() const = 0;
  virtual void enter(unsigned depth) = 0;
  virtual void leave() = 0;

  // Counts: 64-bit integers, the same in all lanes. Only differences may be negative.
  virtual Count constant(int64_t value) = 0;
  virtual Count rows() = 0;
  virtual Count arithmetic(CountOp op, Count a, Count b) = 0;
  /// The value of an expression without lane variables.
  virtual Count count(mlir::AffineExpr index) = 0;
  /// The value of an i32 or i64 that is the same in all lanes; it may be negative.
  virtual Count count(Element integer) = 0;

  // Elements.
  virtual Element constant(mlir::TypedAttr number) = 0;
  /// The value of an index expression in integer type `type`.
  virtual Element index(mlir::AffineExpr index, mlir::Type type) = 0;
  /// The number of rows in `type`, a float or an integer.
  virtual Element rows(mlir::Type type) = 0;
  /// `op`, of arith or math and on scalars, applied to `operands`. The only ops on f16 and bf16 are `truncf` from f32,
  /// and `extf`. The emitter chooses the representation between them.
  virtual Element apply(mlir::Operation *op, llvm::ArrayRef<Element> operands) = 0;

  /// The results of `body`, which emits statements for its arguments, as a function call on `operands`, all of one
  /// type. There is one function per name and type. Returns nothing if the body must be emitted inline.
  using FunctionBody = llvm::function_ref<llvm::SmallVector<Element>(Emitter &, llvm::ArrayRef<Element> arguments)>;
  virtual std::optional<llvm::SmallVector<Element>> call(llvm::StringRef /*name*/, llvm::ArrayRef<Element> /*operands*/,
                                                         FunctionBody /*body*/) {
    return std::nullopt;
  }

  // Conditions.
  virtual Condition isEqual(Count count, int64_t value) = 0;
  /// Whether `index` is >= 0.
  virtual Condition isNonNegative(mlir::AffineExpr index) = 0;
  /// True in the lanes before number `count`.
  virtual Condition firstLanes(mlir::AffineExpr lane, Count count) = 0;
  virtual Condition firstLanes(int64_t count) = 0;
  virtual Condition both(Condition a, Condition b) = 0;
  /// An i32 or i64, clamped to 0 .. size - 1.
  virtual Element clamp(Element integer, int64_t size) = 0;
  virtual Element select(Condition condition, Element then, Element otherwise) = 0;

  // Memory. Offsets count elements of the memory's type. They differ between lanes if they contain `lanes.variable` or
  // data of the lanes; only `lanes.variable` is allowed in stores. They may be out of range if `condition` (null: none)
  // fails, or in inactive lanes, where nothing is read or written. Elements of f16 and bf16 are loaded as f32, and
  // stored from an f32 with such a value.
  virtual Element load(const Memory &memory, mlir::AffineExpr offset, const Lanes &lanes, Condition condition) = 0;
  /// Loads from a constant's elements, in row-major order.
  virtual Element load(mlir::DenseElementsAttr constant, mlir::AffineExpr offset, const Lanes &lanes,
                       Condition condition) = 0;
  virtual void store(const Memory &memory, mlir::AffineExpr offset, const Lanes &lanes, Element element) = 0;
  /// Loads memory that the next `store` overwrites. Without lanes, one of several threads stores, so only that thread
  /// may load: another thread could read the new value.
  virtual Element loadToStore(const Memory &memory, mlir::AffineExpr offset, const Lanes &lanes) {
    return load(memory, offset, lanes, Condition());
  }

  // Operations across lanes.
  /// Lane i receives the element of lane i + by if i < by or, if a thread has several lanes, if i mod lanesOfThread() <
  /// by. The other lanes are undefined. If elements move between threads, only the first lane of each thread is
  /// defined.
  virtual Element rotate(Element element, int64_t by) = 0;
  /// Broadcasts the element of lane 0.
  virtual Element spreadFirst(Element element) = 0;

  /// Memory for `count` values of the type of `like`, indexed at run time.
  virtual LaneArray makeArray(Element like, int64_t count) = 0;
  virtual Element read(LaneArray array, Count place) = 0;
  virtual void write(LaneArray array, Count place, Element element) = 0;

protected:
  explicit Emitter(mlir::MLIRContext *context) : space_(context) {}

private:
  IndexSpace space_;
};

} // namespace sluice::loops
