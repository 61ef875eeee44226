// Builds one op from its generic text: `"sluice.exp"(%0) : (tensor<3xf64>) -> tensor<3xf64>`.
#pragma once

#include "ir/reference/Interpreter.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include <string>
#include <vector>

namespace sluice::test {

/// The value of `?` in these tests.
inline constexpr int64_t kRows = 3;

/// A context with the dialects of ops and their bodies.
mlir::MLIRContext &getContext();

/// The op in an entry point that takes the op's operands and returns its results.
struct OpInstance {
  explicit OpInstance(const std::string &text);

  /// Runs the entry; operands are row-major values.
  std::vector<ir::HostTensor> run(const std::vector<ir::HostTensor> &operands);

  mlir::OwningOpRef<mlir::ModuleOp> module;
  ir::EntryOp entry;
  mlir::Operation *op = nullptr;
  std::string error; // reason why there is no module
};

/// Values for the operands of a sample, equal in every run.
std::vector<ir::HostTensor> drawOperands(OpInstance &instance, const ir::Sample &sample);

/// A tensor of an operand's type with these elements.
ir::HostTensor makeTensor(mlir::Value value, std::vector<double> data);

/// Names of the dialect's ops that have an interface.
template <typename Interface> std::vector<std::string> getOpsWith() {
  std::vector<std::string> names;
  for (mlir::RegisteredOperationName name : getContext().getRegisteredOperations())
    if (name.getDialectNamespace() == "sluice" && name.hasInterface<Interface>())
      names.push_back(name.getStringRef().str());
  return names;
}

/// Samples of an op: its own if it is differentiable, this test's otherwise.
std::vector<ir::Sample> getSamples(const std::string &name);

} // namespace sluice::test
