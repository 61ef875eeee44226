// Kernels of a backend, loaded by its run half: run on values, and compared with the reference.
#pragma once

#include "backends/cpu/compiler/llvm/Codegen.h"
#include "ir/reference/HostTensor.h"
#include "ir/text/DiagnosticText.h"
#include "passes/backend/Backend.h"
#include "tests/conformance/RunHalf.h"
#include <optional>

namespace sluice::conformance {

/// The capacity of `?` in these kernels, and the row counts of the tested calls.
inline constexpr int64_t kCapacity = 5;
inline constexpr int64_t kRowsTried[] = {kCapacity, 3, 1, 0};

/// The types of operands and results, with their layouts.
std::string printTypes(mlir::Operation *op);

/// With `lower`, or with `lower_kernels`.
enum class Lowering { Together, Single };

class LoadedKernels {
public:
  /// The backend prepares all kernels and lowers them at once; fails the test if the backend rejects one.
  LoadedKernels(RunHalf &half, passes::Backend &backend, llvm::ArrayRef<ir::KernelOp> kernels,
                const ir::DiagnosticText &diagnostics, Lowering lowering = Lowering::Together);
  ~LoadedKernels();

  /// Runs kernel `number` on `operands` and fails the test where its results are not `expected`, where it writes
  /// anything else, and where what its buffers held before shows in what it leaves. Of two launches one is kept in a
  /// sequence and replayed, if the backend can.
  void check(size_t number, llvm::ArrayRef<ir::HostTensor> operands, llvm::ArrayRef<ir::HostTensor> expected,
             int64_t rows);
  /// The bytes of the results of kernel `number` on `operands`, with all rows.
  std::vector<Bytes> resultsOf(size_t number, llvm::ArrayRef<ir::HostTensor> operands);

private:
  struct Kernel {
    ir::KernelOp op;
    sluice_launch_info info;
    std::vector<sluice_host_stage> functions;
  };

  void load(const sluice_blob &blob);
  void loadObjects(llvm::ArrayRef<llvm::StringRef> objects);
  std::vector<Bytes> run(Kernel &kernel, const std::vector<Bytes> &operands, int64_t rows, unsigned char poison,
                         bool isKept);
  void addBuffer(Bytes contents, sluice_access access);
  void launch(Kernel &kernel, int64_t rows, bool isKept);
  void launchAndWait(sluice_launch launch, bool isKept);

  RunHalf &half;
  std::vector<Kernel> kernels;
  std::optional<cpu::LoadedObject> object;
  sluice_module *module = nullptr;
  sluice_queue *queue = nullptr;
  // Buffers of one run with their guards, which must live until the work has completed.
  std::vector<Bytes> contents;
  std::vector<void *> addresses;
  std::vector<Larger<sluice_buffer>> buffers;
};

} // namespace sluice::conformance
