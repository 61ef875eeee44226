// Measures typical elementwise kernels: GB/s over operands and results on one thread. SHOW=NAME in the environment also
// prints the MLIR and the assembly of the kernel NAME.
#include "runtime/help/Arguments.h"
#include "runtime/help/HelpFormatter.h"
#include "tests/backends/cpu/KernelRun.h"
#include <cstdio>
using namespace sluice::cpu::testing;
static void bench(const char *name, const std::vector<std::string> &operands, const std::string &body,
                  const std::string &yields, double low = -1, double high = 1) {
  KernelRun kernel(operands, body, yields, 256,
                   "#nhwc = #sluice.at<layout = affine_map<(d0, d1, d2, d3) -> (d0, d2, d3, d1)>>\n"
                   "#panels = #sluice.at<layout = affine_map<(d0, d1) -> (d0 floordiv 64, d1, d0 mod 64)>>\n");
  if (!kernel.lowered()) {
    printf("%s: %s\n", name, kernel.diagnostics().c_str());
    return;
  }
  if (getenv("SHOW") && std::string(getenv("SHOW")) == name)
    printf("%s\n%s\n", kernel.text().c_str(), kernel.assembly().c_str());
  kernel.randomize(low, high);
  double seconds = kernel.time(256);
  double bytes = kernel.result().work.bytes + 256.0 * kernel.result().work.bytesPerRow;
  printf("%-28s %9.1f us %7.1f GB/s  stages %zu tasks/rows", name, seconds * 1e6, bytes / seconds / 1e9,
         kernel.result().stages.size());
  for (auto &stage : kernel.result().stages)
    printf(" %ld/%ld", long(stage.tasks), long(stage.rowsPerTask));
  printf("  lanes %.2f\n", kernel.result().lanes);
}

// Activations of a convolution with their mask and bias, and what pools make of them.
static const std::string x = "tensor<?x20x26x26xf32, #nhwc>", m = "tensor<?x20x26x26xi1, #nhwc>", b = "tensor<20xf32>",
                         y = "tensor<?x20x13x13xf32, #nhwc>", p = "tensor<?x20x13x13xui8, #nhwc>";
static const std::string pool =
    "kernel = array<i64: 2, 2>, stride = array<i64: 2, 2>, padding = array<i64: 0, 0, 0, 0>";

static void benchElementwise() {
  bench("relu", {x}, "%a = sluice.relu %0 : (" + x + ") -> " + x, "%a : " + x);
  bench("add", {x, x}, "%a = sluice.add %0, %1 : (" + x + ", " + x + ") -> " + x, "%a : " + x);
  bench("bias", {x, b},
        "%e = sluice.expand %1 {dims = array<i64: 1>, shape = array<i64: -9223372036854775808, 20, 26, 26>} : (" + b +
            ") -> " + x + "\n%a = sluice.add %0, %e : (" + x + ", " + x + ") -> " + x,
        "%a : " + x);
  for (std::string op : {"exp", "tanh", "sigmoid", "gelu", "log", "sin", "erf"})
    bench(op.c_str(), {x}, "%a = sluice." + op + " %0 : (" + x + ") -> " + x, "%a : " + x, 0.1, 3);
  bench("u8 scale", {"tensor<?x1x28x28xui8>"},
        "%a = sluice.cast %0 {to = f32} : (tensor<?x1x28x28xui8>) -> tensor<?x1x28x28xf32>",
        "%a : tensor<?x1x28x28xf32>", 0, 255);
}

static void benchPools() {
  bench("max_pool", {x},
        "%a, %p = sluice.max_pool2d %0 {" + pool + ", dilation = array<i64: 1, 1>} : (" + x + ") -> (" + y + ", " + p +
            ")",
        "%a, %p : " + y + ", " + p);
  bench("max_pool_grad", {y, p},
        "%a = sluice.max_pool2d_grad %0, %1 {size = array<i64: 26, 26>, " + pool +
            ", dilation = array<i64: 1, 1>} : (" + y + ", " + p + ") -> " + x,
        "%a : " + x, 0, 4);
  bench("avg_pool", {x}, "%a = sluice.avg_pool2d %0 {" + pool + "} : (" + x + ") -> " + y, "%a : " + y);
  bench("avg_pool_grad", {y},
        "%a = sluice.avg_pool2d_grad %0 {size = array<i64: 26, 26>, " + pool + "} : (" + y + ") -> " + x, "%a : " + x);
}

/// Sums for a bias, also with the mask of a ReLU and the gradient of a pool, and an update.
static void benchGradients() {
  std::string sum = "%s = sluice.sum %g {axes = array<i64: 0, 2, 3>} : (" + x + ") -> " + b;
  std::string mask = "%z = sluice.full {value = 0.0 : f64, type = " + x + "} : () -> " + x +
                     "\n%m = sluice.compare %0, %z {predicate = #sluice<predicate gt>} : (" + x + ", " + x + ") -> " +
                     m + "\n%g = sluice.where %m, %1, %z : (" + m + ", " + x + ", " + x + ") -> " + x + "\n";
  bench("bias grad", {x}, "%g = sluice.identity %0 : (" + x + ") -> " + x + "\n" + sum, "%s : " + b);
  bench("relu+bias grad", {x, x}, mask + sum, "%g, %s : " + x + ", " + b);
  std::string mask2 = "%z = sluice.full {value = 0.0 : f64, type = " + x + "} : () -> " + x +
                      "\n%m = sluice.compare %0, %z {predicate = #sluice<predicate gt>} : (" + x + ", " + x + ") -> " +
                      m + "\n%g = sluice.where %m, %q, %z : (" + m + ", " + x + ", " + x + ") -> " + x + "\n";
  std::string pg2 =
      "%q = sluice.avg_pool2d_grad %1 {size = array<i64: 26, 26>, " + pool + "} : (" + y + ") -> " + x + "\n";
  bench("pool+relu+bias grad", {x, y}, pg2 + mask2 + sum, "%g, %s : " + x + ", " + b);
  std::string w = "tensor<1024x1024xf32, #panels>";
  bench("sgd panels", {w, w, w},
        "%s = sluice.mul %1, %2 : (" + w + ", " + w + ") -> " + w + "\n%n = sluice.sub %0, %s : (" + w + ", " + w +
            ") -> " + w,
        "%n : " + w);
}

/// Folds over features, channels and rows.
static void benchFolds() {
  std::string r = "tensor<?x1024xf32>", r10 = "tensor<?x10xf32>";
  bench("softmax 1024", {r}, "%a = sluice.softmax %0 {axis = 1 : i64} : (" + r + ") -> " + r, "%a : " + r);
  std::string columns = "tensor<?x100x196xf32>", planes = "tensor<?x21x32x32xf32, #nhwc>", power = "tensor<?x4096xf32>";
  for (std::string op : {"softmax", "log_softmax"}) {
    bench((op + " columns").c_str(), {columns},
          "%a = sluice." + op + " %0 {axis = 1 : i64} : (" + columns + ") -> " + columns, "%a : " + columns);
    bench((op + " nhwc").c_str(), {planes},
          "%a = sluice." + op + " %0 {axis = 1 : i64} : (" + planes + ") -> " + planes, "%a : " + planes);
  }
  std::string tokens = "tensor<?x16x768xf32>", scale = "tensor<768xf32>";
  std::string norm = " {axis = 2 : i64, dims = array<i64: 2>, eps = 1.0e-5 : f64} : (" + tokens + ", " + scale + ", ";
  bench("layer_norm 768", {tokens, scale, scale}, "%a = sluice.normalize %0, %1, %2" + norm + scale + ") -> " + tokens,
        "%a : " + tokens);
  bench("layer_norm 768 dX", {tokens, scale, tokens},
        "%a = sluice.normalize_grad %0, %1, %2" + norm + tokens + ") -> " + tokens, "%a : " + tokens);
  bench("pow", {power, power}, "%a = sluice.pow %0, %1 : (" + power + ", " + power + ") -> " + power, "%a : " + power,
        0.5, 3);
  bench("cross entropy 10", {r10, "tensor<?xi32>"},
        "%a = sluice.softmax_cross_entropy %0, %1 : (" + r10 +
            ", tensor<?xi32>) -> tensor<?xf32>\n%b = sluice.mean %a {axes = array<i64: 0>} : (tensor<?xf32>) -> "
            "tensor<f32>",
        "%b : tensor<f32>", 0, 9);
  bench("sum rows 1024", {r}, "%a = sluice.sum %0 {axes = array<i64: 0>} : (" + r + ") -> tensor<1024xf32>",
        "%a : tensor<1024xf32>");
}

/// Relayouts, and reads and additions at indices.
static void benchMoves() {
  bench("to nchw", {x}, "%a = sluice.relayout %0 : (" + x + ") -> tensor<?x20x26x26xf32>",
        "%a : tensor<?x20x26x26xf32>");
  bench("to nhwc", {"tensor<?x20x26x26xf32>"}, "%a = sluice.relayout %0 : (tensor<?x20x26x26xf32>) -> " + x,
        "%a : " + x);
  for (std::string width : {"16", "64", "768"}) {
    std::string table = "tensor<10000x" + width + "xf32>", ids = "tensor<?x32xi32>",
                rows = "tensor<?x32x" + width + "xf32>";
    bench(("gather " + width).c_str(), {table, ids},
          "%a = sluice.gather %0, %1 {axis = 0 : i64} : (" + table + ", " + ids + ") -> " + rows, "%a : " + rows, 0,
          1e4);
    bench(("scatter_add " + width).c_str(), {rows, ids},
          "%a = sluice.scatter_add %0, %1 {axis = 0 : i64, size = 10000 : i64} : (" + rows + ", " + ids + ") -> " +
              table,
          "%a : " + table, 0, 1e4);
  }
}

int main(int argc, char **argv) {
  CLI::App app("Measures typical elementwise kernels on one thread, in GB/s over operands and results.", "loops_bench");
  sluice::help::setHelp(app);
  if (std::optional<int> code = sluice::help::parse(app, argc, argv))
    return *code;
  benchElementwise();
  benchPools();
  benchGradients();
  benchFolds();
  benchMoves();
}
