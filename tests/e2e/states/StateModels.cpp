// Models with unusual states: state_models KIND OUTPUT [FILE...]. states_test.py has their expected results.
#include <sluice/sluice.h>

#include <functional>
#include <iostream>
#include <map>

using namespace sluice;

namespace {

constexpr std::int64_t kWords = 11, kWidth = 6, kLength = 5, kIgnored = 3;

/// The head's weight is that of the embedding, or a separate one.
struct Language : nn::Module {
  nn::Embedding wte{this, "wte", kWords, kWidth};
  nn::Linear lm_head{this, "lm_head", kWidth, kWords, {.bias = false}};
  Language(Graph &g, bool isTied) : Module(g) {
    if (isTied)
      lm_head.weight = wte.weight;
  }
  Tensor forward(Tensor tokens) override { return lm_head(tanh(wte(tokens))); }
};

Graph language(const std::string &name, bool isTied, const optim::Options &options = {}) {
  Graph g(name);
  g.set_capacity(8);
  Tensor tokens = g.input("tokens", i32, {Dim{"batch"}, kLength}),
         label = g.input("label", i32, {Dim{"batch"}, kLength});
  Language net{g, isTied};
  Tensor logits = net(tokens);
  g.output("logits", logits);
  CrossEntropyOptions counted{.ignore_index = kIgnored, .reduction = Reduction::none};
  g.metric("nll", cross_entropy(logits.transpose(1, 2), label, counted).sum(1).mean());
  g.metric("words", ne(label, kIgnored).to(f32).sum(1).mean());
  g.minimize(cross_entropy(logits.transpose(1, 2), label), optim::SGD{.lr = 0.5, .momentum = 0.9}, options);
  return g;
}

/// The linear layers of a GPT-2 block, with GPT-2's names.
struct Block : nn::Module {
  struct Attention : nn::Module {
    using Module::Module;
    nn::Linear c_attn{this, "c_attn", kWidth, 3 * kWidth}, c_proj{this, "c_proj", kWidth, kWidth};
    Tensor forward(Tensor x) override { return c_proj(tanh(c_attn(x).slice(1, 2, 2 + kWidth))); }
  };
  struct Mlp : nn::Module {
    using Module::Module;
    nn::Linear c_fc{this, "c_fc", kWidth, 4 * kWidth}, c_proj{this, "c_proj", 4 * kWidth, kWidth};
    Tensor forward(Tensor x) override { return c_proj(tanh(c_fc(x))); }
  };
  using Module::Module;
  Attention attn{this, "attn"};
  Mlp mlp{this, "mlp"};
  Tensor forward(Tensor x) override { return mlp(attn(x)); }
};

Graph gpt() {
  Graph g("gpt");
  g.set_capacity(8);
  Tensor x = g.input("x", f32, {Dim{"batch"}, kWidth});
  nn::Module root{g};
  nn::Module h{&root, "h"};
  Block block{&h, "0"};
  g.output("y", block(x));
  return g;
}

/// y = tanh(x w + b) * scale + table, with data from files, shifted by a small constant.
Graph data(const std::string &weights, const std::string &table, std::int64_t width) {
  Graph g("data");
  g.set_capacity(8);
  Tensor x = g.input("x", f32, {Dim{"batch"}, width}), target = g.input("target", f32, {Dim{"batch"}, width});
  nn::Module root{g};
  nn::Linear fc{&root, "fc", width, width};
  Tensor scale = root.buffer("scale", {width}, init::from_file(weights, "other"));
  fc.initialize("*", init::from_file(weights));
  Tensor shift = g.constant(std::vector<float>{0.25F}, {1});
  Tensor y = tanh(fc(x)) * scale + g.constant(init::from_npy(table)) + shift;
  g.output("y", y);
  g.minimize(mean((y - target) * (y - target)), optim::SGD{.lr = 0.5});
  return g;
}

} // namespace

int main(int argc, char **argv) {
  std::vector<std::string> arguments(argv + 1, argv + argc);
  const std::map<std::string, std::function<Graph()>> kinds = {
      {"tied", [] { return language("tied", true); }},
      {"untied", [] { return language("untied", false); }},
      {"averaged", [] { return language("averaged", false, {.ema = optim::EMA{.decay = 0.8}}); }},
      {"gpt", [] { return gpt(); }},
      {"data", [&] { return data(arguments.at(2), arguments.at(3), std::stoll(arguments.at(4))); }}};
  try {
    kinds.at(arguments.at(0))().save(arguments.at(1));
  } catch (const Error &error) {
    std::cerr << error.what() << "\n";
    return 3;
  }
  return 0;
}
