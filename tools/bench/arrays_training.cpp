// Measures training steps of an MLP and of LeNet in four variants: recorded calls of functions of arrays, with
// gradients by backward; recorded calls of a module; one function by jit for the whole step; and the compiled graph
// with minimize. All use SGD.
#include "runtime/help/Arguments.h"
#include "runtime/help/HelpFormatter.h"
#include "sluice/array.h"
#include "sluice/compile.h"
#include "sluice/sluice.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <functional>
#include <random>
#include <string>
#include <vector>

using namespace sluice;

namespace {

using Clock = std::chrono::steady_clock;
constexpr double kRate = 0.1;

/// The logits of a network of weights and an image [N, 1, 28, 28]; V is Tensor or Array.
template <class V> V mlp(const std::vector<V> &w, const V &x) {
  return linear(relu(linear(x.flatten(1), w[0], w[1])), w[2], w[3]);
}
template <class V> V lenet(const std::vector<V> &w, const V &x) {
  V y = avg_pool2d(relu(conv2d(x, w[0], w[1])), 2);
  y = avg_pool2d(relu(conv2d(y, w[2], w[3])), 2);
  return linear(relu(linear(y.flatten(1), w[4], w[5])), w[6], w[7]);
}
template <class V> V lossOf(bool isLeNet, const std::vector<V> &w, const V &x, const V &label) {
  return cross_entropy(isLeNet ? lenet(w, x) : mlp(w, x), label);
}

using Sizes = std::vector<std::int64_t>;
std::vector<Sizes> shapesOf(bool isLeNet) {
  if (isLeNet)
    return {{20, 1, 3, 3}, {20}, {50, 20, 5, 5}, {50}, {128, 800}, {128}, {10, 128}, {10}};
  return {{256, 784}, {256}, {10, 256}, {10}};
}

std::vector<float> randomElements(const Sizes &shape, std::mt19937 &random) {
  std::int64_t count = 1;
  for (std::int64_t size : shape)
    count *= size;
  double bound = shape.size() > 1 ? std::sqrt(double(shape[0]) / double(count)) : 0.1;
  std::uniform_real_distribution<float> draw(-float(bound), float(bound));
  std::vector<float> elements(static_cast<size_t>(count));
  for (float &element : elements)
    element = draw(random);
  return elements;
}

Shape toShape(const Sizes &sizes) { return Shape(std::vector<Dim>(sizes.begin(), sizes.end())); }

struct Problem {
  bool isLeNet;
  std::int64_t batch;
  std::vector<std::vector<float>> weights;
  std::vector<float> image;
  std::vector<std::int32_t> label;

  Problem(bool isLeNet, std::int64_t batch) : isLeNet(isLeNet), batch(batch) {
    std::mt19937 random(1);
    for (const Sizes &shape : shapesOf(isLeNet))
      weights.push_back(randomElements(shape, random));
    image = randomElements({batch, 1, 28, 28}, random);
    for (std::int64_t i = 0; i < batch; ++i)
      label.push_back(std::int32_t(random() % 10));
  }

  std::vector<Array> arrays() const {
    std::vector<Array> list;
    for (size_t i = 0; i < weights.size(); ++i)
      list.push_back(array(weights[i], toShape(shapesOf(isLeNet)[i])));
    return list;
  }
};

/// Runs one training step. Returns the loss if `readsLoss`, otherwise 0.
using StepFunction = std::function<double(bool readsLoss)>;

StepFunction recordedSteps(const Problem &problem) {
  auto w = std::make_shared<std::vector<Array>>(problem.arrays());
  for (Array &parameter : *w)
    parameter.attach_grad();
  Array x = array(problem.image, {problem.batch, 1, 28, 28}), label = array(problem.label, problem.batch);
  return [=, isLeNet = problem.isLeNet](bool readsLoss) {
    Array loss;
    {
      auto tape = record();
      loss = lossOf(isLeNet, *w, x, label);
      loss.backward();
    }
    for (Array &parameter : *w)
      parameter -= kRate * parameter.grad();
    return readsLoss ? loss.item() : 0;
  };
}

StepFunction jittedSteps(const Problem &problem) {
  auto w = std::make_shared<std::vector<Array>>(problem.arrays());
  Array x = array(problem.image, {problem.batch, 1, 28, 28}), label = array(problem.label, problem.batch);
  bool isLeNet = problem.isLeNet;
  auto loss = [isLeNet](const std::vector<Tensor> &weights, const Tensor &image, const Tensor &its) {
    return lossOf(isLeNet, weights, image, its);
  };
  auto step = jit([loss](const std::vector<Tensor> &weights, const Tensor &image, const Tensor &its) {
    auto [value, gradients] = value_and_grad(loss)(weights, image, its);
    std::vector<Tensor> next;
    for (size_t i = 0; i < weights.size(); ++i)
      next.push_back(weights[i] - kRate * gradients[i]);
    return std::pair(value, next);
  });
  return [=](bool readsLoss) {
    auto [value, next] = step(*w, x, label);
    *w = std::move(next);
    return readsLoss ? value.item() : 0;
  };
}

/// The network as a module.
struct Network : nn::Module {
  bool isLeNet;
  std::vector<Tensor> weights;

  explicit Network(bool isLeNet) : isLeNet(isLeNet) { addWeights(); }
  Network(Graph &graph, bool isLeNet) : Module(graph), isLeNet(isLeNet) { addWeights(); }

  void addWeights() {
    for (const Sizes &shape : shapesOf(isLeNet))
      weights.push_back(parameter("w" + std::to_string(weights.size()), toShape(shape), init::zeros()));
  }
  Tensor forward(Tensor x) override { return isLeNet ? lenet(weights, x) : mlp(weights, x); }
};

StepFunction moduleSteps(const Problem &problem) {
  auto net = std::make_shared<Network>(problem.isLeNet);
  std::vector<Array> w = net->parameters(), first = problem.arrays();
  for (size_t i = 0; i < w.size(); ++i)
    w[i].copy_(first[i]);
  Array x = array(problem.image, {problem.batch, 1, 28, 28}), label = array(problem.label, problem.batch);
  return [=](bool readsLoss) {
    Array loss;
    {
      auto tape = record();
      loss = cross_entropy((*net)(x), label);
      loss.backward();
    }
    for (Array parameter : w)
      parameter -= kRate * parameter.grad();
    return readsLoss ? loss.item() : 0;
  };
}

StepFunction compiledSteps(const Problem &problem) {
  Graph graph("training");
  Network net(graph, problem.isLeNet);
  Tensor x = graph.input("x", f32, {problem.batch, 1, 28, 28}), label = graph.input("label", i32, problem.batch);
  graph.minimize(cross_entropy(net(x), label), optim::SGD{.lr = kRate});
  auto program = std::make_shared<Program>(compile(graph));
  program->seed(1);
  program->run("init", 1);
  for (size_t i = 0; i < problem.weights.size(); ++i)
    program->set_state("w" + std::to_string(i), problem.weights[i]);
  program->set_input("x", problem.image);
  program->set_input("label", problem.label);
  return [=](bool readsLoss) {
    program->run("train_step", 1);
    return readsLoss ? double(program->output<float>("loss")[0]) : 0;
  };
}

/// Milliseconds of a step, the median.
double timeOf(const StepFunction &step, double seconds) {
  std::vector<double> times;
  for (int i = 0; i < 5; ++i)
    step(false);
  auto begin = Clock::now();
  while (times.size() < 20 || std::chrono::duration<double>(Clock::now() - begin).count() < seconds) {
    auto start = Clock::now();
    step(false);
    times.push_back(std::chrono::duration<double, std::milli>(Clock::now() - start).count());
  }
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

} // namespace

int main(int argc, char **argv) {
  CLI::App app("Measures training steps written with arrays. A benchmark: it has no pass criterion, but fails if the "
               "losses of the variants differ.",
               "arrays_training");
  sluice::help::setHelp(app);
  std::string network = "lenet", variant = "all";
  std::int64_t batch = 256;
  double seconds = 3;
  app.add_option("--network", network, "Network (default: lenet)")
      ->type_name("NAME")
      ->check(CLI::IsMember({"mlp", "lenet"}));
  app.add_option("--variant", variant, "Variant: all, record, module, jit or compiled (default: all)")
      ->type_name("NAME")
      ->check(CLI::IsMember({"all", "record", "module", "jit", "compiled"}));
  app.add_option("--batch", batch, "Batch size (default: 256)")
      ->type_name("ROWS")
      ->check(sluice::help::wholeNumber(1, 100'000));
  app.add_option("--seconds", seconds, "Seconds per variant (default: 3)")
      ->type_name("SECONDS")
      ->check(CLI::PositiveNumber);
  if (std::optional<int> code = sluice::help::parse(app, argc, argv))
    return *code;
  Problem problem(network == "lenet", batch);
  std::vector<std::pair<std::string, std::function<StepFunction(const Problem &)>>> variants{
      {"record", recordedSteps}, {"module", moduleSteps}, {"jit", jittedSteps}, {"compiled", compiledSteps}};
  std::vector<double> losses;
  for (const auto &[name, make] : variants) {
    if (variant != "all" && variant != name)
      continue;
    StepFunction checked = make(problem);
    double loss = 0;
    for (int i = 0; i < 5; ++i)
      loss = checked(true);
    losses.push_back(loss);
    double time = timeOf(make(problem), seconds);
    std::printf("{\"network\": \"%s\", \"batch\": %lld, \"variant\": \"%s\", \"median_ms\": %.4f, \"loss\": %.9g}\n",
                network.c_str(), static_cast<long long>(batch), name.c_str(), time, loss);
    std::fflush(stdout);
  }
  for (double loss : losses)
    if (!(std::abs(loss - losses[0]) <= 1e-4 * std::abs(losses[0]))) {
      std::fprintf(stderr, "arrays_training: the losses of the variants differ\n");
      return 1;
    }
  return 0;
}
