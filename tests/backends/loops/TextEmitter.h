// Loop nests as C++ text: a second client of `backends/loops`, in whose image a printer of kernels can be made.
//
// An element is an array of one number for each lane, and every statement a loop over the lanes: what the threads of a
// warp do in step. A handle is the name of a variable. Nothing here knows what the text computes.
#pragma once

#include "backends/loops/Emitter.h"
#include <deque>
#include <memory>
#include <string>
#include <vector>

namespace sluice::test {

/// What generated functions use.
extern const char *const kTextPrelude;

class TextEmitter : public loops::Emitter {
public:
  TextEmitter(mlir::MLIRContext *context, int64_t lanes);

  /// `void name(void *const *buffers, int64_t rows)`, with what was emitted.
  std::string function(const std::string &name) const;

  int64_t lanes() const final { return lanes_; }

  Inside beginLoop(loops::Count begin, loops::Count end, int64_t step, int64_t trips,
                   llvm::ArrayRef<loops::Element> carried) final;
  void beginBlock(loops::Condition condition, llvm::ArrayRef<loops::Element> carried) final;
  llvm::SmallVector<loops::Element> end(llvm::ArrayRef<loops::Element> next) final;
  unsigned depth() const final { return open.size() - 1; }
  void enter(unsigned depth) final;
  void leave() final;

  loops::Count constant(int64_t value) final;
  loops::Count rows() final { return named<loops::Count>("rows"); }
  loops::Count arithmetic(loops::CountOp op, loops::Count a, loops::Count b) final;
  loops::Count count(mlir::AffineExpr index) final;

  loops::Element constant(mlir::TypedAttr number) final;
  loops::Element index(mlir::AffineExpr index, mlir::Type type) final;
  loops::Element rows(mlir::Type type) final;
  loops::Element apply(mlir::Operation *op, llvm::ArrayRef<loops::Element> operands) final;

  loops::Condition isNonNegative(mlir::AffineExpr index) final;
  loops::Condition firstLanes(mlir::AffineExpr lane, loops::Count count) final;
  loops::Condition firstLanes(int64_t count) final;
  loops::Condition both(loops::Condition a, loops::Condition b) final;
  loops::Element select(loops::Condition condition, loops::Element then, loops::Element otherwise) final;

  loops::Element load(const loops::Memory &memory, mlir::AffineExpr offset, const loops::Lanes &lanes,
                      loops::Condition condition) final;
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
  };
  /// What stands in a loop or block that is open.
  struct Level {
    std::string text;
    llvm::SmallVector<loops::Element> carried; // variables outside
  };

  template <typename H> static const Variable &variableOf(H handle) {
    return *static_cast<const Variable *>(handle.get());
  }
  template <typename H> H named(const std::string &name, const std::string &type = "int64_t") {
    return H(&variables.emplace_back(Variable{name, type}));
  }
  template <typename H> static std::string nameOf(H handle) { return variableOf(handle).name; }
  template <typename H> static std::string laneOf(H handle) { return nameOf(handle) + "[l]"; }
  std::string newName() { return "v" + std::to_string(nextName++); }
  void line(const std::string &text) { open.back()->text += text + "\n"; }
  void openLevel(llvm::ArrayRef<loops::Element> carried);
  loops::Count newCount(const std::string &value);
  /// A variable of this type, whose lane `l` is `value`.
  template <typename H> H newLanes(const std::string &type, const std::string &value);
  std::string expression(mlir::AffineExpr index) const;
  loops::Element loadFrom(const std::string &address, mlir::Type element, mlir::AffineExpr offset,
                          const loops::Lanes &lanes, loops::Condition condition);

  int64_t lanes_;
  unsigned nextName = 0;
  std::deque<Variable> variables;
  std::vector<std::shared_ptr<Level>> open;
  std::vector<std::vector<std::shared_ptr<Level>>> left; // by `enter`
};

} // namespace sluice::test
