// The plain C view of a kernel that backends read: its values, ops and attributes, without MLIR.
#pragma once

#include "ir/Dialect.h"
#include "sluice/backend/compile.h"
#include <deque>
#include <string>
#include <vector>

namespace sluice::passes {

/// Owns what the view points to.
class KernelView {
public:
  /// A `sluice.kernel`, or any other op as a kernel of that op alone.
  explicit KernelView(mlir::Operation *op);
  /// Ops that might share a kernel, each after those that it reads: what they read from elsewhere are its operands.
  /// There is no operation behind the view as a whole.
  KernelView(llvm::ArrayRef<mlir::Operation *> ops, mlir::ValueRange results);
  KernelView(const KernelView &) = delete;

  /// Adds bytecode: a module with one entry point, which runs the kernel on its inputs.
  void addBytecode(ir::KernelOp kernel);

  const sluice_kernel_view *get() const { return &view; }
  /// What of the ops the view cannot say; empty if it says it all. Then it may not be handed to anybody.
  llvm::StringRef unsaid() const { return unsaidText; }

private:
  /// Notes what cannot be said unless something was noted before.
  void leaveUnsaid(const llvm::Twine &what);
  sluice_dtype dtypeOf(mlir::Type element);
  void addValue(mlir::Value value);
  void addOp(mlir::Operation *op);
  sluice_attribute_view viewOf(mlir::Operation *op, mlir::NamedAttribute attribute);
  void finish(mlir::ValueRange outputs);
  const char *keep(std::string text) { return texts.emplace_back(std::move(text)).c_str(); }

  sluice_kernel_view view{};
  llvm::DenseMap<mlir::Value, size_t> numbers;
  std::vector<sluice_type_view> values;
  std::vector<sluice_op_view> ops;
  std::vector<size_t> results;
  std::string unsaidText;
  // Deques, so that what is added later moves nothing.
  std::deque<std::string> texts;
  std::deque<std::vector<int64_t>> integers;
  std::deque<std::vector<double>> reals;
  std::deque<std::vector<sluice_layout_dim>> layouts;
  std::deque<std::vector<size_t>> operandLists;
  std::deque<std::vector<sluice_attribute_view>> attributeLists;
};

} // namespace sluice::passes
