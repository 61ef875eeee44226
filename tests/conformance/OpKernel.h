// A kernel of one op as a backend sees it.
#pragma once

#include "ir/reference/HostTensor.h"
#include "passes/backend/Backend.h"
#include "tests/conformance/LoadedKernels.h"
#include "tests/ir/op_instance.h"
#include <memory>
#include <optional>

namespace sluice::conformance {

/// A session of the backend for kernels of kCapacity rows.
std::unique_ptr<passes::Backend> begin(const Subject &subject);

/// The op of a sample, with f64 replaced by `element` ("f32" or "f64").
ir::Sample withElement(ir::Sample sample, const std::string &element);
/// The sample with `?` as its outermost dimension, if it has none and the op can have it there.
std::optional<ir::Sample> withRows(const ir::Sample &sample);

/// Which layouts operands and results have, where the backend requires none.
enum class Layouts { RowMajor, Preferred, Reversed, Tiled };
const char *nameOf(Layouts layouts);

class OpKernel {
public:
  /// Throws Failed if the sample is no op.
  explicit OpKernel(const ir::Sample &sample);

  mlir::Operation *op() { return instance_.op; }
  /// Gives operands and results the layouts that the backend requires, and others as `choice` says.
  void takeLayouts(passes::Backend &backend, Layouts choice);
  /// Puts the op into a kernel of this name; `op` is gone.
  ir::KernelOp outline(llvm::StringRef name = "conformance");

  bool hasRows() const;
  mlir::RankedTensorType operandType(unsigned number) { return type(instance_.entry.getBody().getArgument(number)); }
  mlir::RankedTensorType resultType(unsigned number) { return type(kernel_.getResult(number)); }

  /// Values for the operands of a call with `rows` rows, as their element types hold them.
  std::vector<ir::HostTensor> drawOperands(int64_t rows, unsigned seed);
  /// What the reference functions give for them.
  std::vector<ir::HostTensor> evaluate(const std::vector<ir::HostTensor> &operands, int64_t rows);

private:
  llvm::SmallVector<std::pair<mlir::Value, passes::LayoutProposal>> ask(passes::Backend &backend);
  static mlir::RankedTensorType type(mlir::Value value) { return llvm::cast<mlir::RankedTensorType>(value.getType()); }

  ir::Sample sample_;
  test::OpInstance instance_;
  ir::KernelOp kernel_;
};

} // namespace sluice::conformance
