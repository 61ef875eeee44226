// Emits loop nests as MLIR. An element is a vector of `lanes` elements (ui8 is i8). The number of lanes is a multiple
// of a fixed number (lanesOf), so that all kernels compute an element with the same instructions. Elements of f16 and
// bf16 are f32 with such a value. Outside of the loops over lanes, all lanes hold the same element.
//
// Handles are SSA values: an i64 for a count, the address of vectors on the stack for an array. A condition is a mask: an
// i1 common to all lanes, and a vector of i1.
#pragma once

#include "backends/cpu/compiler/machine/StageFunction.h"
#include "backends/loops/Emitter.h"
#include <deque>
#include <optional>

namespace sluice::cpu {

/// Attribute of loops: trip count at capacity, for the cost of a nest.
inline constexpr llvm::StringLiteral kTripsAttr = "sluice.trips";

/// The element type in memory: i8 for ui8 and i1; i16 for bf16, for which no bf16 instruction is used.
mlir::Type getMemoryElement(mlir::Type element);

class LaneEmitter : public loops::Emitter {
public:
  /// Whether values may be hoisted before the loop over tasks around the insertion point (Used), or not (Ignored).
  enum class Surroundings { Used, Ignored };
  LaneEmitter(mlir::OpBuilder &builder, mlir::Location loc, StageFunction &stage, int64_t lanes, int64_t partials,
              Surroundings surroundings = Surroundings::Used);

  template <typename H> static mlir::Value valueOf(H handle) { return mlir::Value::getFromOpaquePointer(handle.get()); }
  template <typename H> static H handleOf(mlir::Value value) { return H(value.getAsOpaquePointer()); }

  int64_t lanes() const final { return lanes_; }
  int64_t partials() const final { return partials_; }

  Inside beginLoop(loops::Count begin, loops::Count end, int64_t step, int64_t trips,
                   llvm::ArrayRef<loops::Element> carried) final;
  void beginBlock(loops::Condition condition, llvm::ArrayRef<loops::Element> carried) final;
  llvm::SmallVector<loops::Element> end(llvm::ArrayRef<loops::Element> next) final;
  unsigned depth() const final { return around.size(); }
  void enter(unsigned depth) final;
  void leave() final;

  loops::Count constant(int64_t value) final;
  loops::Count rows() final { return handleOf<loops::Count>(stage.rows); }
  loops::Count arithmetic(loops::CountOp op, loops::Count a, loops::Count b) final;
  loops::Count count(mlir::AffineExpr index) final;
  loops::Count count(loops::Element integer) final;

  loops::Element constant(mlir::TypedAttr number) final;
  loops::Element index(mlir::AffineExpr index, mlir::Type type) final;
  loops::Element rows(mlir::Type type) final;
  loops::Element apply(mlir::Operation *op, llvm::ArrayRef<loops::Element> operands) final;
  std::optional<llvm::SmallVector<loops::Element>> call(llvm::StringRef name, llvm::ArrayRef<loops::Element> operands,
                                                        FunctionBody body) final;

  loops::Condition isEqual(loops::Count count, int64_t value) final;
  loops::Condition isNonNegative(mlir::AffineExpr index) final;
  loops::Condition firstLanes(mlir::AffineExpr lane, loops::Count count) final;
  loops::Condition firstLanes(int64_t count) final;
  loops::Condition both(loops::Condition a, loops::Condition b) final;
  loops::Element clamp(loops::Element integer, int64_t size) final;
  loops::Element select(loops::Condition condition, loops::Element then, loops::Element otherwise) final;

  loops::Element load(const loops::Memory &memory, mlir::AffineExpr offset, const loops::Lanes &lanes,
                      loops::Condition condition) final;
  loops::Element load(mlir::DenseElementsAttr constant, mlir::AffineExpr offset, const loops::Lanes &lanes,
                      loops::Condition condition) final;
  void store(const loops::Memory &memory, mlir::AffineExpr offset, const loops::Lanes &lanes,
             loops::Element element) final;
  /// Prefetches the cache line of one element. `offset` is the same for all lanes.
  void prefetch(const loops::Memory &memory, mlir::AffineExpr offset, bool forWrite);
  /// Stores `count` contiguous zeros.
  void storeZeros(const loops::Memory &memory, mlir::AffineExpr offset, int64_t count);

  loops::Element rotate(loops::Element element, int64_t by) final;
  loops::Element spreadFirst(loops::Element element) final;
  loops::LaneArray makeArray(loops::Element like, int64_t count) final;
  loops::Element read(loops::LaneArray array, loops::Count place) final;
  void write(loops::LaneArray array, loops::Count place, loops::Element element) final;

private:
  /// The state outside of an open loop or block.
  struct Around {
    mlir::Operation *op;
    mlir::OpBuilder::InsertPoint before;
  };
  struct Mask {
    mlir::Value uniform; // an i1; null: true
    mlir::Value lanes;   // null: all
  };

  void noteLongFunction(mlir::Operation *op);
  mlir::func::FuncOp makeFunction(llvm::StringRef symbol, mlir::TypeRange arguments, FunctionBody body);
  void open(mlir::Operation *op, mlir::Block *inside, bool carries);
  mlir::Value constantOf(mlir::TypedAttr vector);
  mlir::Value splatConstant(mlir::Type element, int64_t value);
  mlir::Value uniformValue(const loops::LinearIndex &index);
  mlir::Value laneValue(const loops::LinearIndex &index, mlir::Type element);
  mlir::Value resized(mlir::Value integers, mlir::Type element);
  mlir::Value variableOfLanes(mlir::AffineExpr variable, mlir::Type element);
  mlir::Value quotient(mlir::AffineExpr numerator, mlir::Value dividend, mlir::Value divisor);
  void splitByLanes(mlir::AffineExpr offset, loops::LinearIndex &uniform, loops::LinearIndex &varying);

  loops::Condition conditionOf(mlir::Value held);
  Mask maskOf(loops::Condition condition) const;
  mlir::Value toLanes(Mask mask, loops::Condition exists);
  mlir::Value address(const loops::Memory &memory);
  std::optional<int64_t> strideOf(const loops::LinearIndex &varying, const loops::Lanes &lanes) const;
  mlir::Value addresses(mlir::Type stored, mlir::Value from, const loops::LinearIndex &varying);
  mlir::Value loadAt(mlir::ShapedType tensor, mlir::Value base, mlir::AffineExpr offset, const loops::Lanes &lanes,
                     loops::Condition condition);
  mlir::Value orFirst(mlir::Value where, mlir::Value held);
  mlir::Value loadUniform(mlir::Type stored, mlir::Value base, mlir::Value where, Mask guard, loops::Condition exists);

  mlir::VectorType vectorOf(mlir::Type element) const { return mlir::VectorType::get({lanes_}, element); }
  mlir::Value splat(mlir::Value scalar);
  mlir::Value allLanes();
  template <typename Op, typename... Args> mlir::Value make(Args &&...args) {
    return b.create<Op>(loc, std::forward<Args>(args)...);
  }

  mlir::OpBuilder &b;
  mlir::Location loc;
  StageFunction &stage;
  int64_t lanes_, partials_;
  mlir::Block *outermost;
  llvm::SmallVector<Around> around;
  std::deque<Mask> masks; // the targets of condition handles
  struct Left {
    llvm::SmallVector<Around> around;
    mlir::OpBuilder::InsertPoint place;
  };
  llvm::SmallVector<Left> left; // by `enter`
  llvm::DenseMap<mlir::Attribute, mlir::Value> constants;
  llvm::DenseMap<mlir::OperationName, llvm::SmallVector<mlir::Operation *>> longFunctions; // in the order of emission
};

} // namespace sluice::cpu
