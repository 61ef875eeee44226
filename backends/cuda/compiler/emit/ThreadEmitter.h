// Loop nests as CUDA C++: a group of threads, of one warp or a whole block, computes `lanes()` elements together, each
// thread some that lie side by side.
//
// A handle is the name of a variable. That of an element or condition is every thread's own, a number or, where a
// thread has several elements, an array of them that unrolled loops keep in registers; a count is the same in all
// threads of a group. What the text needs beside what it says is in Prelude.h.
//
// A thread that is a group of its own goes in its loops over what it has in registers: they are unrolled, as are those that load
// what others have loaded, see KeptLoads.h.
#pragma once

#include "backends/cuda/compiler/emit/KeptLoads.h"
#include "backends/cuda/compiler/emit/OpText.h"
#include "backends/cuda/compiler/kernels/GridKernel.h"
#include "backends/loops/Emitter.h"
#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace sluice::cuda {

/// The threads that compute together: a power of two up to a warp's 32, or more for all of a block, and the elements that
/// each of them has.
struct ThreadGroup {
  int64_t threads = 32;
  int64_t perThread = 1;
  int64_t lanes() const { return threads * perThread; }
};

class ThreadEmitter : public loops::Emitter {
  /// Sums that a thread has of each column of its own: as many loads are under way at once, and registers hold them for four.
  static constexpr int64_t kPartials = 8;

public:
  ThreadEmitter(mlir::MLIRContext *context, ThreadGroup group);

  /// `__global__ void name(Byte *b0, Byte *b1, ..., Index rows, Index tasks)`, with what was emitted: each group of
  /// threads does the task of its number in the grid, if there is one.
  std::string kernel(const std::string &name, int64_t buffers) const;
  loops::Count task() { return named<loops::Count>("task"); }
  /// What was emitted, for text that has the variables of `kernel`.
  const std::string &body() const { return open.front()->text; }

  // Text of the client's own at the place of emission.
  void statement(const std::string &text) { line(text); }
  loops::Count countNamed(const std::string &name) { return named<loops::Count>(name); }
  std::string nameOf(loops::Count count) const { return variableOf(count).name; }
  /// Of a thread's elements, each of which is `value`; `laneNumber` is its number among the lanes.
  loops::Element elementThat(const std::string &type, const std::string &value) {
    return define<loops::Element>(type, value);
  }
  loops::Condition conditionThat(const std::string &value) { return define<loops::Condition>("bool", value); }
  std::string laneNumber() const;
  /// Whether a thread's elements lie together in memory, wherever they are loaded from or stored.
  bool accessesPacks() const { return accessesPacks_; }
  /// Cycles of a group, roughly: to choose between ways to lay the same on threads.
  double cost() const { return open.front()->cycles; }
  /// What loops of known trips load several times, and that it is kept when the same is emitted again.
  KeptLoads repeatedLoads() const { return loads.chosen(); }
  void keep(KeptLoads these) { kept = std::move(these); }

  int64_t lanes() const final { return group.lanes(); }
  int64_t partials() const final { return std::min(kPartials, lanes()); }
  int64_t lanesOfThread() const final { return group.perThread; }

  Inside beginLoop(loops::Count begin, loops::Count end, int64_t step, int64_t trips,
                   llvm::ArrayRef<loops::Element> carried) final;
  void beginBlock(loops::Condition condition, llvm::ArrayRef<loops::Element> carried) final;
  llvm::SmallVector<loops::Element> end(llvm::ArrayRef<loops::Element> next) final;
  unsigned depth() const final { return unsigned(open.size() - 1); }
  void enter(unsigned depth) final;
  void leave() final;

  loops::Count constant(int64_t value) final;
  loops::Count rows() final { return named<loops::Count>("rows"); }
  loops::Count arithmetic(loops::CountOp op, loops::Count a, loops::Count b) final;
  loops::Count count(mlir::AffineExpr index) final;
  loops::Count count(loops::Element integer) final;

  loops::Element constant(mlir::TypedAttr number) final;
  loops::Element index(mlir::AffineExpr index, mlir::Type type) final;
  loops::Element rows(mlir::Type type) final;
  loops::Element apply(mlir::Operation *op, llvm::ArrayRef<loops::Element> operands) final;
  /// A function for one element, in front of the kernel. Text for a kernel of the client's own has the body in place.
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
  loops::Element loadToStore(const loops::Memory &memory, mlir::AffineExpr offset, const loops::Lanes &lanes) final;
  loops::Element load(mlir::DenseElementsAttr constant, mlir::AffineExpr offset, const loops::Lanes &lanes,
                      loops::Condition condition) final;
  void store(const loops::Memory &memory, mlir::AffineExpr offset, const loops::Lanes &lanes,
             loops::Element element) final;

  loops::Element rotate(loops::Element element, int64_t by) final;
  loops::Element spreadFirst(loops::Element element) final;
  loops::Slots makeSlots(loops::Element like, int64_t count) final;
  loops::Element read(loops::Slots slots, loops::Count place) final;
  void write(loops::Slots slots, loops::Count place, loops::Element element) final;

private:
  struct Variable {
    std::string name, type;
    size_t depth = 0;                     // of the levels around it
    std::optional<int64_t> constant = {}; // of a count
  };
  /// What stands in a loop or block that is open.
  struct Level {
    std::string text, head;
    unsigned number = 0;
    int64_t trips = 1; // at capacity
    double cycles = 0; // of one
    std::string trip;  // its number, where it is known how many there are; 0 of one that is no loop
    bool isUnrolled = false;
    llvm::SmallVector<loops::Element> carried; // variables outside
  };

  /// What is loaded from: a buffer, or a constant.
  struct Source {
    std::string address;
    int64_t byteOffset;
    mlir::Type element;
    int64_t buffer = -1;
  };

  template <typename H> static const Variable &variableOf(H handle) {
    return *static_cast<const Variable *>(handle.get());
  }
  template <typename H> H named(const std::string &name, const std::string &type = "Index") {
    return H(&variables.emplace_back(Variable{name, type, open.size()}));
  }
  template <typename H> static std::string nameOf(H handle) { return variableOf(handle).name; }
  /// One of a thread's elements: that numbered `l`.
  template <typename H> std::string eachOf(H handle) const { return nameOf(handle) + (isSingle() ? "" : "[l]"); }
  template <typename H> std::string firstOf(H handle) const { return nameOf(handle) + (isSingle() ? "" : "[0]"); }
  bool isSingle() const { return group.perThread == 1; }
  bool isBlock() const { return group.threads > kWarp; }
  /// What threads of a block hand each other, of so many bytes at once.
  std::string heldAs(const std::string &type, int64_t count);
  std::string newName() { return "v" + std::to_string(nextName++); }
  std::string indented(const std::string &text) const;
  void line(const std::string &text) { open.back()->text += indented(text); }
  void openLevel(llvm::ArrayRef<loops::Element> carried, const std::string &head, int64_t trips,
                 const std::string &trip);
  void charge(double cycles) { open.back()->cycles += cycles; }
  void chargeAccess(mlir::AffineExpr offset, const loops::Lanes &lanes, bool isPack);
  loops::Count newCount(const std::string &value);
  void declare(const std::string &type, const std::string &name, const std::string &value);
  /// A variable of this type, whose element `l` is `value`.
  template <typename H> H define(const std::string &type, const std::string &value);
  /// A statement for each element of a thread.
  void each(const std::string &statement);

  std::string functionText(const std::string &function, ThreadEmitter &inside, const std::string &parameters,
                           llvm::ArrayRef<loops::Element> results) const;
  std::string text(mlir::AffineExpr index) const { return text(space(), index); }
  std::string text(const loops::IndexSpace &space, mlir::AffineExpr index) const;
  /// An index by a thread's number and that of an element among its own.
  struct InThread {
    loops::IndexSpace space;
    mlir::AffineExpr index, element;
  };
  InThread inThread(mlir::AffineExpr index, mlir::AffineExpr lane) const;
  bool isWhole(loops::Condition condition, mlir::AffineExpr lane) const;
  std::optional<std::string> placeOfPack(mlir::Type element, int64_t byteOffset, mlir::AffineExpr offset,
                                         const loops::Lanes &lanes) const;
  std::string ifAll(std::initializer_list<loops::Condition> conditions) const;
  std::string packAt(mlir::Type element, const std::string &address, const std::string &place) const;
  std::string inAnyLoop(mlir::AffineExpr offset) const;
  /// The array that keeps the load, which has the next number.
  std::optional<unsigned> note(const Source &from, mlir::AffineExpr offset, const loops::Lanes &lanes,
                               loops::Condition condition);
  /// The element of an array that has what the innermost loop's trip loads: it gets there once, in front of the loop.
  std::string keptIn(unsigned array, const std::string &type, const loops::Lanes &lanes,
                     llvm::function_ref<std::string()> load);
  std::string packText(const Source &from, const std::string &place, const std::string &type,
                       std::initializer_list<loops::Condition> conditions);
  std::string elementText(const Source &from, mlir::AffineExpr offset, const std::string &type,
                          std::initializer_list<loops::Condition> conditions);
  loops::Element loadFrom(const Source &from, mlir::AffineExpr offset, const loops::Lanes &lanes,
                          loops::Condition condition);

  ThreadGroup group;
  std::map<std::string, std::string> functions; // the text of those that are called, by name
  unsigned nextName = 0;
  unsigned nextLevel = 1;
  bool accessesPacks_ = true;
  bool onlyFirst = false; // of a thread's elements: the others are computed for nothing, and left out by compilers
  int64_t heldBytes = 0;  // of shared memory
  /// Conditions that indices say, or nothing that differs among a thread's elements: those that are not negative.
  std::map<std::string, llvm::SmallVector<mlir::AffineExpr>> saidBy;
  /// The values of conditions of nothing but a lane's number, which hold anywhere.
  std::map<std::string, std::string> ofLanes;
  LoopLoads loads;
  KeptLoads kept; // by number
  size_t nextLoad = 0;
  std::set<unsigned> filled; // of the arrays that keep
  std::deque<Variable> variables;
  loops::Count thread; // its number in the group
  std::vector<std::shared_ptr<Level>> open;
  std::vector<std::vector<std::shared_ptr<Level>>> left; // by `enter`
};

} // namespace sluice::cuda
