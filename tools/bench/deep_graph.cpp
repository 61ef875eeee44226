// Writes graphs of any depth, to measure how compile time grows.
#include "runtime/help/Arguments.h"
#include "runtime/help/HelpFormatter.h"
#include <sluice/sluice.h>

#include <cstdio>
#include <cstdlib>
#include <string>

using namespace sluice;

static const Dim rows{"batch"};

namespace {

struct LinearBlock : nn::Module {
  LinearBlock(nn::Module *parent, std::string name) : Module(parent, std::move(name)) {}
  nn::Linear fc1{this, "fc1", 16, 16}, fc2{this, "fc2", 16, 16};

  Tensor forward(Tensor x) override { return x + fc2(relu(fc1(x))); }
};

struct ConvBlock : nn::Module {
  ConvBlock(nn::Module *parent, std::string name) : Module(parent, std::move(name)) {}
  nn::Conv2d conv1{this, "conv1", 8, 8, 3, {.padding = 1, .bias = false}};
  nn::BatchNorm2d bn1{this, "bn1", 8};
  nn::Conv2d conv2{this, "conv2", 8, 8, 3, {.padding = 1, .bias = false}};
  nn::BatchNorm2d bn2{this, "bn2", 8};

  Tensor forward(Tensor x) override { return relu(x + bn2(conv2(relu(bn1(conv1(x)))))); }
};

Tensor elementwise(const Tensor &x, int i) {
  switch (i % 5) {
  case 0:
    return sin(x);
  case 1:
    return relu(x);
  case 2:
    return tanh(x);
  case 3:
    return x * 0.5 + 0.25;
  default:
    return -x;
  }
}

struct Chain : nn::Module {
  nn::Linear fc1{this, "fc1", 16, 16}, fc2{this, "fc2", 16, 4};
  int depth;

  Chain(Graph &graph, int depth) : Module(graph), depth(depth) {}

  Tensor forward(Tensor x) override {
    x = fc1(x);
    for (int i = 0; i < depth; ++i)
      x = elementwise(x, i);
    return fc2(x);
  }
};

template <class Block> struct Network : nn::Module {
  nn::Sequential blocks{this, "blocks"};
  nn::Linear fc;

  Network(Graph &graph, int depth, int features) : Module(graph), fc{this, "fc", features, 4} {
    for (int block = 0; block < depth; ++block)
      blocks.add<Block>();
  }

  Tensor forward(Tensor x) override { return fc(blocks(x).flatten(1)); }
};

} // namespace

static void train(Graph &graph, nn::Module &net, const Shape &shape, const optim::Optimizer &optimizer) {
  Tensor x = graph.input("x", f32, shape), label = graph.input("label", i32, {rows});
  net.initialize("*", init::constant(0.01)); // random numbers would require a kernel per parameter
  Tensor logits = net(x);
  graph.output("logits", logits);
  graph.minimize(cross_entropy(logits, label), optimizer);
}

/// Applies an op that keeps the type of x and sometimes breaks fusion.
static Tensor mixed(const Tensor &x, const Tensor &weight, int i) {
  switch (i % 11) {
  case 3:
    return x - x.mean({1}, true);
  case 5:
    return matmul(x, weight);
  case 7:
    return softmax(x, 1);
  case 9:
    return flip(x, {1});
  default:
    return elementwise(x, i);
  }
}

static void build(Graph &graph, const std::string &shape, int depth) {
  if (shape == "linear") {
    Network<LinearBlock> net{graph, depth, 16};
    return train(graph, net, {rows, 16}, optim::AdamW{});
  }
  if (shape == "conv") {
    Network<ConvBlock> net{graph, depth, 8 * 6 * 6};
    return train(graph, net, {rows, 8, 6, 6}, optim::SGD{.lr = 0.1});
  }
  if (shape == "trained") {
    Chain net{graph, depth};
    return train(graph, net, {rows, 16}, optim::SGD{.lr = 0.1});
  }
  if (shape == "sort") {
    TopK sorted = sort(graph.input("x", f32, {depth}));
    graph.output("values", sorted.values);
    return graph.output("indices", sorted.indices);
  }
  Tensor x = graph.input("x", f32, {rows, 16}), y = x;
  if (shape == "mixed") {
    Tensor weight = graph.full({16, 16}, 0.1);
    for (int i = 0; i < depth; ++i)
      y = mixed(y, weight, i);
  } else if (shape == "wide") {
    for (int i = 0; i < depth; ++i)
      y = y + elementwise(x, i);
  } else {
    for (int i = 0; i < depth; ++i)
      y = elementwise(y, i);
  }
  graph.output("y", y);
}

int main(int argc, char **argv) {
  std::string shape, file = "-";
  int depth = 0;
  CLI::App app("Writes a graph of any depth, to measure how compile time grows.", "deep_graph");
  sluice::help::setHelp(app);
  app.add_option(
         "shape", shape,
         "linear: residual blocks of two linear layers, trained by AdamW; conv: residual blocks of two "
         "convolutions and batch norms, trained by SGD; chain: elementwise ops in sequence; trained: a chain "
         "between two linear layers, trained by SGD; mixed: elementwise ops, reductions, products and movements in "
         "sequence; wide: elementwise ops of one value, added up; sort: the sort of DEPTH elements")
      ->required()
      ->type_name("SHAPE");
  app.add_option("depth", depth, "Number of blocks or ops")->required()->type_name("DEPTH");
  app.add_option("file", file, "File to write; - writes standard output")->type_name("FILE")->capture_default_str();
  if (std::optional<int> code = sluice::help::parse(app, argc, argv))
    return *code;
  Graph graph(shape);
  graph.set_capacity(8);
  build(graph, shape, depth);
  graph.save(file);
}
