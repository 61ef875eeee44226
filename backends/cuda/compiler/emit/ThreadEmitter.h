// Emits loop nests as CUDA C++: a group of threads, of one warp or a whole block, computes `lanes()` elements together.
// Each thread has some adjacent elements.
//
// A handle is the name of a variable. The variable of an element or condition is private to a thread: a number or, if a
// thread has several elements, an array that unrolled loops keep in registers. A count is the same in all threads of a
// group. Prelude.h declares the functions that the emitted text uses.
//
// If a group is one thread, loops over values in registers are unrolled, and so are loops over kept loads, see
// KeptLoads.h.
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

/// The threads of a group: a power of two up to a warp's 32, or more for a whole block; and the number of elements per
/// thread.
struct ThreadGroup {
  int64_t threads = 32;
  int64_t perThread = 1;
  int64_t lanes() const { return threads * perThread; }
};

class ThreadEmitter : public loops::Emitter {
  /// Partial sums per column of a thread. This many loads are in flight at once, and the partial sums of four columns
  /// fit in registers.
  static constexpr int64_t kPartials = 8;

public:
  ThreadEmitter(mlir::MLIRContext *context, ThreadGroup group);

  /// `__global__ void name(Byte *b0, Byte *b1, ..., Index rows, Index tasks)`, with the emitted body. Each group of
  /// threads runs the task of its number in the grid, if there is one.
  std::string kernel(const std::string &name, int64_t buffers) const;
  loops::Count task() { return named<loops::Count>("task"); }
  /// The emitted statements, for clients that write the kernel: it must declare the variables that `kernel` declares.
  const std::string &body() const { return open.front()->text; }

  // Inserts the client's text at the place of emission.
  void statement(const std::string &text) { line(text); }
  loops::Count countNamed(const std::string &name) { return named<loops::Count>(name); }
  std::string nameOf(loops::Count count) const { return variableOf(count).name; }
  /// An element whose value for each of a thread's elements `l` is the expression `value`. It may use `laneNumber`, the
  /// number of the lane.
  loops::Element elementThat(const std::string &type, const std::string &value) {
    return define<loops::Element>(type, value);
  }
  loops::Condition conditionThat(const std::string &value) { return define<loops::Condition>("bool", value); }
  std::string laneNumber() const;
  /// Whether a thread's elements are contiguous in memory at every load and store.
  bool accessesPacks() const { return accessesPacks_; }
  /// Estimated cycles of a group, to choose between mappings to threads.
  double cost() const { return open.front()->cycles; }
  /// Loads that loops with known trip counts repeat; and the choice to keep them when the nest is emitted again.
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
  /// A function for one element, defined before the kernel. If the client writes the kernel, the body is emitted
  /// inline.
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
  loops::LaneArray makeArray(loops::Element like, int64_t count) final;
  loops::Element read(loops::LaneArray array, loops::Count place) final;
  void write(loops::LaneArray array, loops::Count place, loops::Element element) final;

private:
  struct Variable {
    std::string name, type;
    size_t depth = 0;                     // of the levels around it
    std::optional<int64_t> constant = {}; // of a count
  };
  /// State of an open loop or block.
  struct Level {
    std::string text, head;
    unsigned number = 0;
    int64_t trips = 1; // at capacity
    double cycles = 0; // of one
    std::string trip;  // number of the current trip, if the trip count is known; "0" for a block without condition
    bool isUnrolled = false;
    llvm::SmallVector<loops::Element> carried; // variables declared before it
  };

  /// The source of a load: a buffer, or a constant.
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
  /// A thread's element `l`.
  template <typename H> std::string eachOf(H handle) const { return nameOf(handle) + (isSingle() ? "" : "[l]"); }
  template <typename H> std::string firstOf(H handle) const { return nameOf(handle) + (isSingle() ? "" : "[0]"); }
  bool isSingle() const { return group.perThread == 1; }
  bool isBlock() const { return group.threads > kWarp; }
  /// The address of shared memory for `count` values of this type, which the threads of a block exchange.
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
  /// Declares a variable of this type, whose element `l` is `value`.
  template <typename H> H define(const std::string &type, const std::string &value);
  /// Emits a statement for each element of a thread.
  void each(const std::string &statement);

  std::string functionText(const std::string &function, ThreadEmitter &inside, const std::string &parameters,
                           llvm::ArrayRef<loops::Element> results) const;
  std::string text(mlir::AffineExpr index) const { return text(space(), index); }
  std::string text(const loops::IndexSpace &space, mlir::AffineExpr index) const;
  /// An index in which the lane variable is split into the thread's number and the number of its element.
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
  /// The array that keeps the load with the next number.
  std::optional<unsigned> note(const Source &from, mlir::AffineExpr offset, const loops::Lanes &lanes,
                               loops::Condition condition);
  /// The element of a kept array that the innermost loop loads in its current trip. It is loaded once, before the loop.
  std::string keptIn(unsigned array, const std::string &type, const loops::Lanes &lanes,
                     llvm::function_ref<std::string()> load);
  std::string packText(const Source &from, const std::string &place, const std::string &type,
                       std::initializer_list<loops::Condition> conditions);
  std::string elementText(const Source &from, mlir::AffineExpr offset, const std::string &type,
                          std::initializer_list<loops::Condition> conditions);
  loops::Element loadFrom(const Source &from, mlir::AffineExpr offset, const loops::Lanes &lanes,
                          loops::Condition condition);

  ThreadGroup group;
  std::map<std::string, std::string> functions; // definitions of the called functions, by name
  unsigned nextName = 0;
  unsigned nextLevel = 1;
  bool accessesPacks_ = true;
  bool onlyFirst = false; // only the first element of a thread is used: the others are dead code
  int64_t heldBytes = 0;  // of shared memory
  /// By name of a condition, if known: it holds if all these indices are >= 0, and if other conditions hold that are
  /// the same for all elements of a thread.
  std::map<std::string, llvm::SmallVector<mlir::AffineExpr>> saidBy;
  /// By name of a condition that depends on the lane's number only: its expression, which is valid everywhere.
  std::map<std::string, std::string> ofLanes;
  LoopLoads loads;
  KeptLoads kept; // by number
  size_t nextLoad = 0;
  std::set<unsigned> filled; // of the arrays of kept loads
  std::deque<Variable> variables;
  loops::Count thread; // its number in the group
  std::vector<std::shared_ptr<Level>> open;
  std::vector<std::vector<std::shared_ptr<Level>>> left; // by `enter`
};

} // namespace sluice::cuda
