// Measures attention kernels and, for comparison, a matrix product: GFLOP/s of their multiply-adds on one thread.
#include "runtime/help/Arguments.h"
#include "runtime/help/HelpFormatter.h"
#include "tests/backends/cpu/KernelRun.h"
#include <cstdio>

using namespace sluice::cpu::testing;

static void bench(const std::string &name, const std::vector<std::string> &operands, const std::string &op,
                  const std::string &attributes, const std::vector<std::string> &results, int64_t batch) {
  std::string numbers, types, resultTypes, names;
  for (size_t i = 0; i < operands.size(); ++i) {
    numbers += (i ? ", %" : "%") + std::to_string(i);
    types += (i ? ", " : "") + operands[i];
  }
  for (size_t i = 0; i < results.size(); ++i) {
    resultTypes += (i ? ", " : "") + results[i];
    names += (i ? ", %a#" : "%a#") + std::to_string(i);
  }
  std::string text = "%a:" + std::to_string(results.size()) + " = \"sluice." + op + "\"(" + numbers + ") {" +
                     attributes + "} : (" + types + ") -> (" + resultTypes + ")";
  KernelRun kernel(operands, text, names + " : " + resultTypes, batch);
  if (!kernel.lowered()) {
    printf("%s: %s\n", name.c_str(), kernel.diagnostics().c_str());
    return;
  }
  kernel.randomize(-1, 1);
  double seconds = kernel.time(batch);
  double flops = double(kernel.result().work.flops) + double(kernel.result().work.flopsPerRow) * double(batch);
  printf("%-34s %9.3f ms %7.1f GFLOP/s\n", name.c_str(), seconds * 1e3, flops / seconds / 1e9);
  fflush(stdout);
}

static void benchAttention(int64_t batch, int64_t heads, int64_t items, const std::string &element, bool causal) {
  std::string shape = "x" + std::to_string(heads) + "x" + std::to_string(items);
  std::string type = "tensor<?" + shape + "x64x" + element + ">", rows = "tensor<?" + shape + "x" + element + ">";
  std::string attributes = std::string(causal ? "causal, " : "") + "scale = 0.125 : f64";
  std::string name = std::to_string(batch) + shape + "x64 " + element + (causal ? " causal" : "");
  std::vector<std::string> operands{type, type, type, type, rows, rows};
  bench(name, {type, type, type}, "scaled_dot_product_attention", attributes, {type, rows}, batch);
  bench(name + " dq", operands, "attention_query_grad", attributes, {type}, batch);
  bench(name + " dk dv", operands, "attention_key_value_grad", attributes, {type, type}, batch);
}

int main(int argc, char **argv) {
  CLI::App app("Measures attention kernels on one thread, in GFLOP/s, and compares them with a matrix product.",
               "attention_bench");
  sluice::help::setHelp(app);
  if (std::optional<int> code = sluice::help::parse(app, argc, argv))
    return *code;
  std::string left = "tensor<?x1024xf32>", right = "tensor<1024x1024xf32>";
  bench("product of 1024 x 1024 x 1024", {left, right}, "einsum", "equation = \"ab,bc->ac\"", {left}, 1024);
  benchAttention(1, 12, 1024, "f32", false);
  benchAttention(1, 12, 1024, "f32", true);
  benchAttention(8, 12, 128, "f32", false);
  benchAttention(1, 6, 197, "f32", false);
}
