// Runs one kernel, given as text, as generated code and through the reference interpreter.
#pragma once

#include "backends/cpu/compiler/Codegen.h"
#include "backends/cpu/compiler/KernelLowering.h"
#include "ir/Dialect.h"
#include "ir/reference/HostTensor.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"
#include <optional>
#include <random>
#include <string>
#include <vector>

namespace sluice::cpu::testing {

/// The operands' and results' buffers of one run, as the generated code sees them.
using Buffers = std::vector<std::vector<char>>;

class KernelRun {
public:
  /// `operands` are types; in `body` they are %0, %1, ...; `yields` is "%a, %b : type, type". Types may use the aliases
  /// of `aliases`.
  KernelRun(const std::vector<std::string> &operands, const std::string &body, const std::string &yields,
            int64_t capacity, const std::string &aliases = "");

  bool lowered() const { return kernel.has_value(); }
  const std::string &diagnostics() const { return messages; }
  const LoweredKernel &result() const { return *kernel; }
  /// The kernel, lowered once more, to functions without bodies.
  LoweredKernel described();
  std::string llvmIR, assembly;

  /// Fills operands with random numbers of [low, high): integers get whole ones.
  void randomize(double low, double high, unsigned seed = 1);
  std::vector<ir::HostTensor> inputs; // of `capacity` rows

  /// Runs all tasks of each stage, one by one, in an order that `seed` draws (0: in order, in one call).
  void run(int64_t rows, unsigned seed = 0);
  /// Result `number` of the last run, and its raw bytes.
  ir::HostTensor output(unsigned number);
  const std::vector<char> &bytes(unsigned number) const { return buffers[inputs.size() + number]; }
  /// What the reference functions give for the last run's rows.
  std::vector<ir::HostTensor> expected();
  /// The largest |difference| / max(1, |expected|) over all results; and that nothing beyond results was written.
  double error();
  /// A time for one run, in seconds.
  double time(int64_t rows);

private:
  mlir::RankedTensorType typeOf(unsigned buffer);
  std::vector<char> pack(mlir::RankedTensorType type, const ir::HostTensor &value);
  ir::HostTensor unpack(mlir::RankedTensorType type, const std::vector<char> &bytes, int64_t rows);

  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module, code;
  ir::EntryOp entry;
  ir::KernelOp op;
  std::optional<LoweredKernel> kernel;
  std::optional<LoadedObject> object;
  std::string messages;
  Buffers buffers;
  int64_t capacity, lastRows = 0;
};

} // namespace sluice::cpu::testing
