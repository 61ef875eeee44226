// Trains the network of a file for three steps and prints the losses, the loss of an evaluation and all states, for
// batch_norm_test.py.
//
//     onnx_training FILE
#include "sluice/compile.h"
#include "sluice/onnx.h"
#include "sluice/sluice.h"

#include <cmath>
#include <cstdio>
#include <exception>
#include <vector>

using namespace sluice;

static int train(const char *path) {
  constexpr std::int64_t rows = 6, classes = 5;
  Graph graph("trained");
  graph.set_capacity(rows);
  Tensor x = graph.input("x", f32, {Dim{"batch"}, 3, 6, 6}), label = graph.input("label", i64, {Dim{"batch"}});
  nn::Onnx net{graph, path, {.train_batch_norm = true}};
  graph.minimize(cross_entropy(net(x), label), optim::SGD{.lr = 0.5});
  std::vector<float> images(rows * 3 * 6 * 6);
  for (std::size_t i = 0; i < images.size(); ++i)
    images[i] = float(std::sin(double(i) * 0.37));
  std::vector<std::int64_t> labels;
  for (std::int64_t row = 0; row < rows; ++row)
    labels.push_back(row % classes);
  Program program = compile(graph);
  program.seed(0);
  program.run("init", rows);
  program.set_input("x", images);
  program.set_input("label", labels);
  for (const char *entry : {"train_step", "train_step", "train_step", "eval_step"}) {
    program.run(entry, rows);
    std::printf("%s %.7f\n", entry, double(program.output<float>("loss").front()));
  }
  for (const Graph::State &state : graph.states()) {
    if (state.kind != "parameter" && state.kind != "statistic")
      continue;
    std::printf("%s:%s", state.kind.c_str(), state.name.c_str());
    for (float number : program.state<float>(state.name))
      std::printf(" %.7g", double(number));
    std::printf("\n");
  }
  return 0;
}

int main(int, char **arguments) {
  try {
    return train(arguments[1]);
  } catch (const std::exception &error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
