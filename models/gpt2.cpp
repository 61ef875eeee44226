// GPT-2 with 124 million parameters: predicts the next word at each of up to 1024 positions by 12 blocks of causal
// attention. The word embedding is also the output projection. Parameter names and matrix layouts, [in, out], are those
// of Hugging Face's transformers. Generation reads the prompt in chunks, then one word per call, and caches the keys
// and values of earlier words.
#include "NextWord.h"
#include "Transformer.h"

#include <algorithm>
#include <cmath>

using namespace sluice;

static constexpr std::int64_t kPositions = 1024, kChunk = 64;

/// A linear layer with a transposed weight. transformers calls it Conv1D.
struct Conv1d : nn::Module {
  Tensor weight, bias;

  Conv1d(nn::Module *parent, std::string name, std::int64_t in, std::int64_t out, double deviation = 0.02)
      : Module(parent, std::move(name)), weight(parameter("weight", {in, out}, init::normal(0.0, deviation))),
        bias(parameter("bias", {out}, init::zeros())) {}

  Tensor forward(Tensor x) override { return matmul(x, weight) + bias; }
};

/// The standard deviation of initial weights for projections whose results are added to the residual stream. There are
/// two per layer, and the root keeps the variance of their sum independent of the number of layers.
static double ofResidual(const models::Sizes &sizes) { return 0.02 / std::sqrt(2.0 * double(sizes.layers)); }

struct Attention : nn::Module {
  double share; // dropout probability; the same in the other modules
  Conv1d c_attn, c_proj;
  Tensor keys, values;

  Attention(nn::Module *parent, std::string name, const models::Sizes &sizes)
      : Module(parent, std::move(name)), share(*sizes.dropout), c_attn{this, "c_attn", sizes.width, 3 * sizes.width},
        c_proj{this, "c_proj", sizes.width, sizes.width, ofResidual(sizes)},
        keys(cache("keys", models::cache_shape(sizes.width, sizes.length))),
        values(cache("values", models::cache_shape(sizes.width, sizes.length))) {}

  Tensor forward(Tensor x) override {
    return dropout(c_proj(models::attention(c_attn(x), {.is_causal = true})), share);
  }
  Tensor forward(Tensor x, Tensor position, Tensor mask) override {
    return c_proj(models::cached_attention(c_attn(x), keys, values, position, mask));
  }
};

struct Mlp : nn::Module {
  double share;
  Conv1d c_fc, c_proj;

  Mlp(nn::Module *parent, std::string name, const models::Sizes &sizes)
      : Module(parent, std::move(name)), share(*sizes.dropout), c_fc{this, "c_fc", sizes.width, 4 * sizes.width},
        c_proj{this, "c_proj", 4 * sizes.width, sizes.width, ofResidual(sizes)} {}

  Tensor forward(Tensor x) override { return dropout(c_proj(gelu(c_fc(x), Gelu::tanh)), share); }
};

struct Block : nn::Module {
  nn::LayerNorm ln_1;
  Attention attn;
  nn::LayerNorm ln_2;
  Mlp mlp;

  Block(nn::Module *parent, std::string name, const models::Sizes &sizes)
      : Module(parent, std::move(name)), ln_1{this, "ln_1", sizes.width}, attn{this, "attn", sizes},
        ln_2{this, "ln_2", sizes.width}, mlp{this, "mlp", sizes} {}

  Tensor forward(Tensor x) override {
    x = x + attn(ln_1(x));
    return x + mlp(ln_2(x));
  }
  Tensor forward(Tensor x, Tensor position, Tensor mask) override {
    x = x + attn(ln_1(x), position, mask);
    return x + mlp(ln_2(x));
  }
};

struct Gpt2 : nn::Module {
  double share;
  nn::Embedding wte, wpe;
  nn::Sequential h{this, "h"};
  nn::LayerNorm ln_f;

  Gpt2(Graph &graph, const models::Sizes &sizes)
      : Module(graph), share(*sizes.dropout), wte{this, "wte", sizes.words, sizes.width},
        wpe{this, "wpe", kPositions, sizes.width}, ln_f{this, "ln_f", sizes.width} {
    for (std::int64_t layer = 0; layer < sizes.layers; ++layer)
      h.add<Block>(sizes);
  }

  Tensor forward(Tensor words) override {
    Tensor x = wte(words) + wpe.weight.slice(0, 0, words.shape()[1].size);
    return linear(ln_f(h(dropout(x, share))), wte.weight);
  }

  /// The final states of words from `position` on; earlier words are in the caches. `mask` is that of
  /// models::is_before.
  Tensor forward(Tensor words, Tensor position, Tensor mask) override {
    return h(wte(words) + narrow(wpe.weight, 0, position, words.shape()[1].size), position, mask);
  }
  /// The scores of the next word, from the final state of the last word.
  Tensor scores(const Tensor &state) { return linear(ln_f(state), wte.weight).flatten(); }
};

/// Adds the entry points of generation. `decode` returns the scores of the word after `token`. `prefill` reads a chunk
/// of the prompt that begins at `position`, and returns the scores of the word after number `last` of the chunk.
static void addGeneration(Graph &graph, Gpt2 &net, std::int64_t length) {
  std::int64_t chunk = std::min(kChunk, length);
  Tensor token = graph.input("token", i32, {1, 1}), prompt = graph.input("prompt", i32, {1, chunk}),
         position = graph.input("position", i32, {}), last = graph.input("last", i32, {});
  graph.entry("decode", [&] {
    Tensor mask = models::is_before(graph, position, 1, length);
    graph.output("logits", net.scores(net(token, position, mask)));
  });
  graph.entry("prefill", [&] {
    Tensor mask = models::is_before(graph, position, chunk, length);
    graph.output("logits", net.scores(narrow(net(prompt, position, mask), 1, last, 1)));
  });
}

static Graph build(const models::Options &options) {
  models::NextWord task("gpt2", options);
  Gpt2 net{task.graph, options.sizes};
  models::pin(net, options);
  net.initialize("w*e.weight", init::normal(0.0, 0.02));
  Graph graph =
      task.minimize(net(task.tokens), optim::AdamW{.lr = options.lr, .betas = {0.9, 0.95}, .weight_decay = 0.1});
  addGeneration(graph, net, options.sizes.length);
  return graph;
}

int main(int argc, char **argv) {
  models::Sizes sizes{.layers = 12, .width = 768, .length = kPositions, .words = 50257, .dropout = 0.1};
  return models::run(argc, argv, "gpt2", {.batch = 4, .input = "", .inits = {"torch"}, .lr = 6e-4, .sizes = sizes},
                     build);
}
