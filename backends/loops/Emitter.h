// How loops get written down: what a client of `backends/loops` implements once, for vectors of a CPU, threads of a
// CUDA kernel or text.
//
// What an op means (Formula.h), which elements are asked for, under which conditions, in which loops and in which order
// sums are added (Elements.h, Fold.h) is decided before it comes here. An emitter knows none of that: it is asked for
// one loop, one load, one addition at a time, and answers with a handle to what it wrote. What lies behind a handle is
// its own affair: an SSA value of vectors, or the name of a variable in generated text.
//
// Elements come in groups of `lanes()`, which are computed together by the same statements: lanes of a vector, threads
// of a warp, or one alone. Inside of a loop that numbers its lanes, each has an element of its own; elsewhere all have
// the same one. Arithmetic arrives as single ops of the dialects arith and math on scalars (floats, i1, and i8, i32 and
// i64 as `ir::Lane` has them), to be written for every lane: a vector op, or `a + b` of each thread.
//
// On a GPU the lanes are the threads of a warp, or some neighbouring elements of each of them: an element is a variable
// of every thread, `rotate` a shuffle, a condition of the lanes a branch around a load. How an index is computed (at
// once, or from the one of the trip before) and how a load is made (a vector, a gather, one for all) is for the emitter
// to see from the expression.
#pragma once

#include "backends/loops/LinearIndex.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallVector.h"
#include <optional>

namespace sluice::loops {

using Condition = Handle<struct ConditionTag>; // a boolean, of each lane or of all
using Slots = Handle<struct SlotsTag>;         // memory of a lane's own

/// Where a value lies: the kernel's buffer of this number, from this byte on.
struct Memory {
  int64_t buffer = 0;
  int64_t byteOffset = 0;
  mlir::RankedTensorType type; // with the layout
};

/// The lanes at the place of emission.
struct Lanes {
  mlir::AffineExpr variable; // 0, 1, ... in them; null: all have the same element
  Condition exists;          // of those that do; null: all do
};

enum class CountOp { Add, Sub, Mul, Div, CeilDiv, Rem, Min, Max };

class Emitter {
public:
  virtual ~Emitter() = default;

  /// A power of two.
  virtual int64_t lanes() const = 0;
  /// The order of sums: as many partial results has a fold, see Fold.h. A power of two, at most `lanes()`.
  virtual int64_t partials() const { return lanes(); }
  /// If lanes are threads with registers of their own, how many each thread has, side by side; 0 otherwise. A fold along
  /// them has a partial result in each lane, which may be more than `partials()`; one across them has `partials()` in each.
  virtual int64_t lanesOfThread() const { return 0; }
  /// The variables that index expressions are made of; a count's value is what the emitter gave for it.
  IndexSpace &space() { return space_; }
  const IndexSpace &space() const { return space_; }

  // Places. Loops and blocks nest; `end` closes the innermost. What is emitted while one is open belongs to it, unless
  // `enter` has gone to one further out, where it stands in front of all that is open there; 0 is the outermost,
  // outside of the loops that were open at the start. What is opened after `enter` is closed before `leave`.
  struct Inside {
    Count variable;
    llvm::SmallVector<Element> carried;
  };
  /// `for (variable = begin; variable < end; variable += step)`, `trips` times at capacity. `carried` go from trip to
  /// trip.
  virtual Inside beginLoop(Count begin, Count end, int64_t step, int64_t trips, llvm::ArrayRef<Element> carried) = 0;
  /// Once, if `condition`, the same for all lanes, holds (null: always); else results are `carried`.
  virtual void beginBlock(Condition condition, llvm::ArrayRef<Element> carried) = 0;
  /// The results of the loop or block, whose carried values become `next`.
  virtual llvm::SmallVector<Element> end(llvm::ArrayRef<Element> next) = 0;
  /// How many loops are open; the emitter may be made inside of some.
  virtual unsigned depth() const = 0;
  virtual void enter(unsigned depth) = 0;
  virtual void leave() = 0;

  // 64-bit integers, the same in all lanes and never negative but for differences.
  virtual Count constant(int64_t value) = 0;
  virtual Count rows() = 0;
  virtual Count arithmetic(CountOp op, Count a, Count b) = 0;
  /// The value of an expression without lane variables.
  virtual Count count(mlir::AffineExpr index) = 0;
  /// The value of an i32 or i64 that all lanes have the same; it may be negative.
  virtual Count count(Element integer) = 0;

  // Elements.
  virtual Element constant(mlir::TypedAttr number) = 0;
  /// The value of an index expression in integer type `type`.
  virtual Element index(mlir::AffineExpr index, mlir::Type type) = 0;
  /// The number of rows in `type`, a float or an integer.
  virtual Element rows(mlir::Type type) = 0;
  /// `op`, of arith or math and on scalars, with `operands` in place of its own. The only ones of f16 and bf16 are `truncf`
  /// from f32, and `extf`: what they are in between is for the emitter to choose.
  virtual Element apply(mlir::Operation *op, llvm::ArrayRef<Element> operands) = 0;

  /// What `body` writes with the emitter and the arguments that it is given, as a call of a function on `operands`, all of
  /// one type: one function for every name and type. Nothing where each place is to have the body for itself.
  using FunctionBody = llvm::function_ref<llvm::SmallVector<Element>(Emitter &, llvm::ArrayRef<Element> arguments)>;
  virtual std::optional<llvm::SmallVector<Element>> call(llvm::StringRef /*name*/, llvm::ArrayRef<Element> /*operands*/,
                                                         FunctionBody /*body*/) {
    return std::nullopt;
  }

  // Conditions.
  virtual Condition isEqual(Count count, int64_t value) = 0;
  /// That `index` is >= 0.
  virtual Condition isNonNegative(mlir::AffineExpr index) = 0;
  /// Of the lanes before number `count`.
  virtual Condition firstLanes(mlir::AffineExpr lane, Count count) = 0;
  virtual Condition firstLanes(int64_t count) = 0;
  virtual Condition both(Condition a, Condition b) = 0;
  /// An i32 or i64, brought into 0 .. size - 1.
  virtual Element clamp(Element integer, int64_t size) = 0;
  virtual Element select(Condition condition, Element then, Element otherwise) = 0;

  // Memory. Offsets count elements of the memory's type, and differ in the lanes as they contain `lanes.variable` or data
  // of the lanes, if only in the former where they are stored to; they may be out of range where `condition` (null: none) fails, or in lanes that do not exist. Nothing is read or written
  // there. Elements of f16 and bf16 are loaded as f32, and stored from an f32 that has such a value.
  virtual Element load(const Memory &memory, mlir::AffineExpr offset, const Lanes &lanes, Condition condition) = 0;
  /// Of a constant's elements, in row-major order.
  virtual Element load(mlir::DenseElementsAttr constant, mlir::AffineExpr offset, const Lanes &lanes,
                       Condition condition) = 0;
  virtual void store(const Memory &memory, mlir::AffineExpr offset, const Lanes &lanes, Element element) = 0;
  /// What `store` is to change next. Without lanes one of several threads stores, and no other may read meanwhile.
  virtual Element loadToStore(const Memory &memory, mlir::AffineExpr offset, const Lanes &lanes) {
    return load(memory, offset, lanes, Condition());
  }

  // Lanes together.
  /// In lane i the element of lane i + by, where i < by or, if a thread has both, i mod lanesOfThread() < by; what others
  /// get is of no use. Of further threads only each one's first lane counts.
  virtual Element rotate(Element element, int64_t by) = 0;
  /// In all lanes the element of lane 0.
  virtual Element spreadFirst(Element element) = 0;

  /// Room for `count` values like `like`, addressed at run time.
  virtual Slots makeSlots(Element like, int64_t count) = 0;
  virtual Element read(Slots slots, Count place) = 0;
  virtual void write(Slots slots, Count place, Element element) = 0;

protected:
  explicit Emitter(mlir::MLIRContext *context) : space_(context) {}

private:
  IndexSpace space_;
};

} // namespace sluice::loops
