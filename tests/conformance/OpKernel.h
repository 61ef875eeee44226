// A kernel of one op as a backend sees it, with buffers as the op's layouts say.
#pragma once

#include "ir/HostTensor.h"
#include "passes/Backend.h"
#include "tests/conformance/RunHalf.h"
#include "tests/ir/op_instance.h"

namespace sluice::conformance {

/// The rows that `?` may have in these kernels.
inline constexpr int64_t kCapacity = 5;

/// The op of a sample, with f64 replaced by `element` ("f32" or "f64").
ir::Sample withElement(ir::Sample sample, const std::string &element);

class OpKernel {
public:
  /// Throws Failed if the sample is no op.
  explicit OpKernel(const ir::Sample &sample);

  mlir::Operation *op() { return instance_.op; }
  /// Gives operands and results the layouts that the backend needs, or those that it likes best.
  void takeLayouts(passes::Backend &backend, bool preferred);
  /// Puts the op into a kernel; `op` is gone.
  ir::KernelOp outline();

  bool hasRows() const;
  mlir::RankedTensorType operandType(unsigned number) { return type(instance_.entry.getBody().getArgument(number)); }
  mlir::RankedTensorType resultType(unsigned number) { return type(kernel_.getResult(number)); }

  /// Values for the operands of a call with `rows` rows, as their element types hold them.
  std::vector<ir::HostTensor> drawOperands(int64_t rows, unsigned seed);
  /// What the reference functions give for them.
  std::vector<ir::HostTensor> evaluate(const std::vector<ir::HostTensor> &operands, int64_t rows);

private:
  static mlir::RankedTensorType type(mlir::Value value) { return llvm::cast<mlir::RankedTensorType>(value.getType()); }

  ir::Sample sample_;
  test::OpInstance instance_;
  ir::KernelOp kernel_;
};

/// A value as it lies in a buffer: rows beyond `rows` are not-a-number, padding is zero.
Bytes pack(mlir::RankedTensorType type, const ir::HostTensor &value, int64_t rows);
ir::HostTensor unpack(mlir::RankedTensorType type, const Bytes &bytes, int64_t rows);

/// Fails the test where `found` is not `expected`, within the rounding of the element type.
void expectEqual(mlir::RankedTensorType type, const ir::HostTensor &found, const ir::HostTensor &expected,
                 const std::string &what);

} // namespace sluice::conformance
