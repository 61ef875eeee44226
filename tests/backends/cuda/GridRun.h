// Runs kernels as CUDA C++ in tests of their text: emits, assembles, and runs them by emulated threads of several
// blocks.
#pragma once

#include "backends/cuda/compiler/emit/Prelude.h"
#include "backends/cuda/compiler/kernels/GridKernel.h"
#include "mlir/IR/Diagnostics.h"
#include "tests/backends/KernelCase.h"
#include "tests/cuda_emu/EmulatedLibrary.h"
#include <cstdlib>
#include <deque>
#include <gtest/gtest.h>

namespace sluice::cuda::test {

inline constexpr int64_t kCapacity = 7;
inline constexpr int64_t kWarpsOfBlock = 3; // so that the last block has warps without a task

inline constexpr const char *kLayouts =
    "#nhwc = #sluice.at<layout = affine_map<(d0, d1, d2, d3) -> (d0, d2, d3, d1)>>\n"
    "#image = #sluice.at<layout = affine_map<(d0, d1, d2, d3) -> (d0, d1 floordiv 4, d2, d3, d1 mod 4)>>\n"
    "#columns = #sluice.at<layout = affine_map<(d0, d1) -> (d0, d1 floordiv 8, d1 mod 8)>>\n"
    "#bthd = #sluice.at<layout = affine_map<(d0, d1, d2, d3) -> (d0, d2, d1, d3)>>\n"
    "#hbtd = #sluice.at<layout = affine_map<(d0, d1, d2, d3) -> (d1, d0, d2, d3)>>\n"
    "#panels = #sluice.at<layout = affine_map<(d0, d1) -> (d0 floordiv 32, d1, d0 mod 32)>>\n";

/// The order in which emulated threads and blocks run (CUDA_EMU_SCHEDULE), during its lifetime.
class Schedule {
public:
  explicit Schedule(const std::string &name) { setenv("CUDA_EMU_SCHEDULE", name.c_str(), 1); }
  Schedule(const Schedule &) = delete;
  Schedule &operator=(const Schedule &) = delete;
  ~Schedule() { unsetenv("CUDA_EMU_SCHEDULE"); }
};

class GridRun : public sluice::test::KernelCase {
public:
  GridRun(const std::string &name, const std::vector<std::string> &operands, const std::string &body,
          const std::string &yields, const GridOptions &options = {}, int64_t capacity = kCapacity)
      : KernelCase(operands, body, yields, capacity, kLayouts) {
    mlir::ScopedDiagnosticHandler handler(&context,
                                          [&](mlir::Diagnostic &diagnostic) { messages += diagnostic.str() + "\n"; });
    mlir::FailureOr<GridKernel> written = mlir::failure();
    if (op)
      written = writeGridKernel(op, name, capacity, options);
    EXPECT_TRUE(succeeded(written)) << messages;
    if (succeeded(written))
      kernel = *written;
  }

  /// What launches the functions.
  std::string callers() {
    std::string text, arguments;
    for (unsigned i = 0; i <= op->getNumOperands() + op->getNumResults(); ++i)
      arguments += "(Byte *)buffers[" + std::to_string(i) + "], ";
    for (const GridFunction &function : kernel.functions) {
      int64_t tasksOfBlock = function.threads == kWarp ? kWarpsOfBlock : 1;
      text += "extern \"C\" void call_" + function.name + "(void *const *buffers, Index rows, Index tasks) {\n" +
              "  cuda_emu::cuda_emu_give_shared_bytes(" + std::to_string(function.sharedBytes) + ");\n" +
              "  cuda_emu::launch({unsigned((tasks + " + std::to_string(tasksOfBlock - 1) + ") / " +
              std::to_string(tasksOfBlock) + ")}, {" + std::to_string(function.threads * tasksOfBlock) + "}, [&] { " +
              function.name + "(" + arguments + "rows, tasks); });\n}\n";
    }
    return text;
  }

  /// Launches the functions of a library made of all that, on new buffers.
  void run(const sluice::test::EmulatedLibrary &library, int64_t rows) {
    runOn(library, rows, begin(rows, kernel.workspaceBytes));
  }

  using KernelCase::begin;
  void runOn(const sluice::test::EmulatedLibrary &library, int64_t rows, std::vector<void *> pointers) {
    for (const GridFunction &function : kernel.functions) {
      auto call = reinterpret_cast<void (*)(void *const *, int64_t, int64_t)>(library.find("call_" + function.name));
      ASSERT_TRUE(call) << function.name;
      int64_t tasks = function.tasks;
      if (function.rowsPerTask)
        tasks *= (rows + function.rowsPerTask - 1) / function.rowsPerTask;
      call(pointers.data(), rows, tasks);
    }
  }

  unsigned results() { return op->getNumResults(); }

  GridKernel kernel;
};

struct Body {
  std::vector<std::string> operands;
  std::string text, yields;
  double tolerance = 1e-5, low = -2, high = 2;
};

inline Body unary(const std::string &op, const std::string &x, const std::string &attributes = "",
                  const std::string &to = "") {
  std::string y = to.empty() ? x : to;
  return {{x}, "%a = sluice." + op + " %0 " + attributes + " : (" + x + ") -> " + y, "%a : " + y};
}

inline Body product(const std::string &op, const std::string &a, const std::string &b, const std::string &y,
                    const std::string &attributes) {
  return {
      {a, b}, "%a = sluice." + op + " %0, %1 " + attributes + " : (" + a + ", " + b + ") -> " + y, "%a : " + y, 1e-4};
}

inline Body einsum(const std::string &equation, const std::string &a, const std::string &b, const std::string &y) {
  return product("einsum \"" + equation + "\"", a, b, y, "");
}

/// A product, and the sum of one of its operands over these axes, as a result before or after the product's.
inline Body withSum(Body body, unsigned operand, const std::string &axes, const std::string &sum, bool inFront = true) {
  const std::string x = body.operands[operand], y = body.yields.substr(body.yields.find(": ") + 2);
  const std::string text =
      "%s = sluice.sum %" + std::to_string(operand) + " {axes = array<i64: " + axes + ">} : (" + x + ") -> " + sum;
  body.text = inFront ? text + "\n" + body.text : body.text + "\n" + text;
  body.yields = inFront ? "%s, %a : " + sum + ", " + y : "%a, %s : " + y + ", " + sum;
  return body;
}

/// Products, and the sums of an operand over what they sum over: gradients of weights, and of biases. One is long.
inline std::vector<Body> productsWithSums() {
  const std::string x = "tensor<?x20xf32>", dy = "tensor<?x9xf32>";
  std::vector<Body> all;
  for (bool inFront : {true, false})
    for (const char *equation : {"ab,ac->bc", "ab,ac->cb"}) {
      Body body = einsum(equation, x, dy, equation[7] == 'b' ? "tensor<20x9xf32>" : "tensor<9x20xf32>");
      all.push_back(withSum(body, 0, "0", "tensor<20xf32>", inFront));
      all.push_back(withSum(body, 1, "0", "tensor<9xf32>", inFront));
    }
  for (const char *items : {"4", "600"}) {
    const std::string of = std::string("tensor<?x") + items + "x";
    Body body = einsum("abc,abd->cd", of + "6xf32>", of + "5xf32>", "tensor<6x5xf32>");
    all.push_back(withSum(body, 0, "1, 0", "tensor<6xf32>"));
    all.push_back(withSum(body, 1, "0, 1", "tensor<5xf32>"));
  }
  return all;
}

/// Products of what attention leaves: heads of 8 elements inside of items, which are columns, or terms, of a matrix; terms so many
/// that they are cut into chunks, too.
inline std::vector<Body> productsOfHeads() {
  std::vector<Body> all;
  auto add = [&](const std::string &items, const std::string &equation, const std::string &b, const std::string &y) {
    const std::string heads = "tensor<?x3x" + items + "x8xf32, #bthd>", split = "tensor<?x" + items + "x3x8xf32>",
                      rows = "tensor<?x" + items + "x24xf32>";
    Body body = einsum(equation, rows, b, y);
    body.operands[0] = heads;
    body.text = "%items = sluice.transpose %0 {permutation = array<i64: 0, 2, 1, 3>} : (" + heads + ") -> " + split +
                "\n%rows = sluice.reshape %items {shape = array<i64: ?, " + items + ", 24>} : (" + split + ") -> " +
                rows + "\n" + body.text.replace(body.text.find("%0"), 2, "%rows");
    all.push_back(body);
  };
  add("10", "abc,cd->abd", "tensor<24x16xf32>", "tensor<?x10x16xf32>");
  add("10", "abc,abd->cd", "tensor<?x10x16xf32>", "tensor<24x16xf32>");
  add("256", "abc,abd->cd", "tensor<?x256x16xf32>", "tensor<24x16xf32>");
  return all;
}

/// A body in another type of floats.
inline Body as(const std::string &element, Body body, double tolerance) {
  auto replace = [&](std::string &text) {
    for (size_t at = 0; (at = text.find("f32", at)) != std::string::npos; at += element.size())
      text.replace(at, 3, element);
  };
  llvm::for_each(body.operands, replace);
  replace(body.text);
  replace(body.yields);
  body.tolerance = tolerance;
  return body;
}

/// Some bodies, written and put together.
struct Grid {
  std::vector<Body> all;
  std::deque<GridRun> runs;
  std::string kernels = kPrelude, callers;

  explicit Grid(std::vector<Body> bodies, const GridOptions &options = {}, int64_t capacity = kCapacity)
      : all(std::move(bodies)) {
    for (const Body &body : all) {
      GridRun &run = runs.emplace_back("k" + std::to_string(runs.size()), body.operands, body.text, body.yields,
                                       options, capacity);
      kernels += run.kernel.text;
      callers += run.callers();
    }
  }

  size_t functions() const {
    size_t count = 0;
    for (const GridRun &run : runs)
      count += run.kernel.functions.size();
    return count;
  }
};

} // namespace sluice::cuda::test
