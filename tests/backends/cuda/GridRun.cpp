#include "tests/backends/cuda/GridRun.h"

#include "mlir/IR/Diagnostics.h"
#include <gtest/gtest.h>

namespace sluice::cuda {

using namespace mlir;

static constexpr int64_t kWarpsOfBlock = 3; // so that the last block has warps without a task

static constexpr const char *kLayouts =
    "#nhwc = #sluice.at<layout = affine_map<(d0, d1, d2, d3) -> (d0, d2, d3, d1)>>\n"
    "#panels = #sluice.at<layout = affine_map<(d0, d1) -> (d0 floordiv 32, d1, d0 mod 32)>>\n";

GridRun::GridRun(const std::string &name, const std::vector<std::string> &operands, const std::string &body,
                 const std::string &yields)
    : KernelCase(operands, body, yields, kCapacity, kLayouts) {
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) { messages += diagnostic.str() + "\n"; });
  FailureOr<GridKernel> written = failure();
  if (op)
    written = writeGridKernel(op, name, capacity);
  EXPECT_TRUE(succeeded(written)) << messages;
  if (succeeded(written))
    kernel = *written;
}

std::string GridRun::callers() {
  std::string text, arguments;
  for (unsigned i = 0; i <= op->getNumOperands() + op->getNumResults(); ++i)
    arguments += "(Byte *)buffers[" + std::to_string(i) + "], ";
  for (const GridFunction &function : kernel.functions) {
    int64_t tasksOfBlock = function.threads == kWarp ? kWarpsOfBlock : 1;
    text += "extern \"C\" void call_" + function.name + "(void *const *buffers, Index rows, Index tasks) {\n" +
            "  cuda_emu::launch({unsigned((tasks + " + std::to_string(tasksOfBlock - 1) + ") / " +
            std::to_string(tasksOfBlock) + ")}, {" + std::to_string(function.threads * tasksOfBlock) + "}, [&] { " +
            function.name + "(" + arguments + "rows, tasks); });\n}\n";
  }
  return text;
}

void GridRun::run(const test::EmulatedLibrary &library, int64_t rows) {
  runOn(library, rows, begin(rows, kernel.workspaceBytes));
}

void GridRun::runOn(const test::EmulatedLibrary &library, int64_t rows, std::vector<void *> buffers) {
  for (const GridFunction &function : kernel.functions) {
    auto call = reinterpret_cast<void (*)(void *const *, int64_t, int64_t)>(library.find("call_" + function.name));
    ASSERT_TRUE(call) << function.name;
    int64_t tasks = function.tasks;
    if (function.rowsPerTask)
      tasks *= (rows + function.rowsPerTask - 1) / function.rowsPerTask;
    call(buffers.data(), rows, tasks);
  }
}

} // namespace sluice::cuda
