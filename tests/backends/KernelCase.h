// A kernel given as text, with random operands and the results of the reference interpreter. Backends derive the
// execution from it.
#pragma once

#include "ir/Dialect.h"
#include "ir/reference/HostTensor.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"
#include "tests/backends/Bytes.h"
#include <string>
#include <vector>

namespace sluice::test {

class KernelCase {
public:
  /// `operands` are types; in `body` they are %0, %1, ...; `yields` is "%a, %b : type, type". Types may use the aliases
  /// of `aliases`.
  KernelCase(const std::vector<std::string> &operands, const std::string &body, const std::string &yields,
             int64_t capacity, const std::string &aliases = "");

  const std::string &diagnostics() const { return messages; }

  /// Fills operands with random numbers of [low, high): integers get whole ones.
  void randomize(double low, double high, unsigned seed = 1);
  std::vector<ir::HostTensor> inputs; // of `capacity` rows

  /// Result `number` of the last run, and its raw bytes.
  ir::HostTensor output(unsigned number);
  const Bytes &bytes(unsigned number) const { return buffers[inputs.size() + number]; }
  /// The reference results for the last run's rows.
  std::vector<ir::HostTensor> expected();
  /// The largest |difference| / max(1, |expected|) over all results; checks that nothing outside of results was
  /// written.
  double error();
  /// Of the kernel, in their order.
  llvm::SmallVector<mlir::Operation *> ops();

protected:
  /// The addresses of new buffers for generated code: operands, results and workspace.
  std::vector<void *> begin(int64_t rows, int64_t workspaceBytes);
  /// Of the last ones.
  std::vector<void *> addresses();

  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  ir::EntryOp entry;
  ir::KernelOp op; // null if the text is wrong
  std::string messages;
  int64_t capacity;

private:
  mlir::RankedTensorType typeOf(unsigned buffer);
  Bytes pack(mlir::RankedTensorType type, const ir::HostTensor &value);
  ir::HostTensor unpack(mlir::RankedTensorType type, const Bytes &bytes, int64_t rows);

  std::vector<Bytes> buffers;
  std::vector<size_t> sizes; // of each, without the guard at its end
  int64_t lastRows = 0;
};

} // namespace sluice::test
