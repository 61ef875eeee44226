// BERT-base for texts of up to 512 words: classifies a text into two classes by the final state of its first word. It
// has 12 attention blocks, with norms after the residual sums. Parameter names are those of Hugging Face's
// transformers.
#include "Options.h"
#include "Transformer.h"

using namespace sluice;

static constexpr std::int64_t kPositions = 512, kTypes = 2, kClasses = 2;
static constexpr nn::LayerNormOptions kNorm{.eps = 1e-12};

struct Embeddings : nn::Module {
  nn::Embedding word, position, type;
  nn::LayerNorm norm;

  Embeddings(nn::Module *parent, std::string name, const models::Sizes &sizes)
      : Module(parent, std::move(name)), word{this, "word_embeddings", sizes.words, sizes.width},
        position{this, "position_embeddings", kPositions, sizes.width},
        type{this, "token_type_embeddings", kTypes, sizes.width}, norm{this, "LayerNorm", sizes.width, kNorm} {}

  Tensor forward(Tensor words, Tensor types) override {
    return norm(word(words) + type(types) + position.weight.slice(0, 0, words.shape()[1].size));
  }
};

/// A projection, a residual sum with `before`, the input of the sublayer, and a norm.
struct Output : nn::Module {
  nn::Linear dense;
  nn::LayerNorm norm;

  Output(nn::Module *parent, std::string name, std::int64_t from, std::int64_t width)
      : Module(parent, std::move(name)), dense{this, "dense", from, width}, norm{this, "LayerNorm", width, kNorm} {}

  Tensor forward(Tensor x, Tensor before) override { return norm(dense(x) + before); }
};

struct SelfAttention : nn::Module {
  nn::Linear query, key, value;

  SelfAttention(nn::Module *parent, std::string name, std::int64_t width)
      : Module(parent, std::move(name)), query{this, "query", width, width}, key{this, "key", width, width},
        value{this, "value", width, width} {}

  Tensor forward(Tensor x, Tensor mask) override {
    return models::attention(query(x), key(x), value(x), {.attn_mask = mask});
  }
};

struct Attention : nn::Module {
  SelfAttention self;
  Output output;

  Attention(nn::Module *parent, std::string name, std::int64_t width)
      : Module(parent, std::move(name)), self{this, "self", width}, output{this, "output", width, width} {}

  Tensor forward(Tensor x, Tensor mask) override { return output(self(x, mask), x); }
};

struct Intermediate : nn::Module {
  nn::Linear dense;

  Intermediate(nn::Module *parent, std::string name, std::int64_t width)
      : Module(parent, std::move(name)), dense{this, "dense", width, 4 * width} {}

  Tensor forward(Tensor x) override { return gelu(dense(x)); }
};

struct Layer : nn::Module {
  Attention attention;
  Intermediate intermediate;
  Output output;

  Layer(nn::Module *parent, std::string name, std::int64_t width)
      : Module(parent, std::move(name)), attention{this, "attention", width}, intermediate{this, "intermediate", width},
        output{this, "output", 4 * width, width} {}

  Tensor forward(Tensor x, Tensor mask) override {
    x = attention(x, mask);
    return output(intermediate(x), x);
  }
};

struct Encoder : nn::Module {
  nn::Module layers{this, "layer"};
  std::vector<std::unique_ptr<Layer>> all;

  Encoder(nn::Module *parent, std::string name, const models::Sizes &sizes) : Module(parent, std::move(name)) {
    for (std::int64_t number = 0; number < sizes.layers; ++number)
      all.push_back(std::make_unique<Layer>(&layers, std::to_string(number), sizes.width));
  }

  Tensor forward(Tensor x, Tensor mask) override {
    for (const std::unique_ptr<Layer> &layer : all)
      x = (*layer)(x, mask);
    return x;
  }
};

struct Pooler : nn::Module {
  nn::Linear dense;

  Pooler(nn::Module *parent, std::string name, std::int64_t width)
      : Module(parent, std::move(name)), dense{this, "dense", width, width} {}

  Tensor forward(Tensor x) override { return tanh(dense(x.select(1, 0))); }
};

struct Bert : nn::Module {
  Embeddings embeddings;
  Encoder encoder;
  Pooler pooler;

  Bert(nn::Module *parent, std::string name, const models::Sizes &sizes)
      : Module(parent, std::move(name)), embeddings{this, "embeddings", sizes}, encoder{this, "encoder", sizes},
        pooler{this, "pooler", sizes.width} {}

  Tensor forward(Tensor words, Tensor types, Tensor mask) override {
    return pooler(encoder(embeddings(words, types), mask));
  }
};

static Graph build(const models::Options &options) {
  Graph graph = models::graph("bert_base", options);
  Shape shape{Dim{"batch"}, options.sizes.length};
  Tensor words = graph.input("input_ids", i32, shape), types = graph.input("token_type_ids", i32, shape),
         present = graph.input("attention_mask", i32, shape), label = graph.input("label", i32, {Dim{"batch"}});
  nn::Module net{graph};
  Bert bert{&net, "bert", options.sizes};
  nn::Linear classifier{&net, "classifier", options.sizes.width, kClasses};
  models::pin(net, options);
  net.initialize("*.weight", init::normal(0.0, 0.02));
  net.initialize("*.bias", init::zeros());
  net.initialize("*LayerNorm.weight", init::ones());
  Tensor mask = ne(present, 0).unsqueeze(1).unsqueeze(1); // padding is masked
  Tensor logits = classifier(bert(words, types, mask));
  graph.output("logits", logits);
  graph.metric("accuracy", accuracy(logits, label));
  graph.minimize(cross_entropy(logits, label), optim::AdamW{.lr = options.lr});
  return graph;
}

int main(int argc, char **argv) {
  models::Sizes sizes{.layers = 12, .width = 768, .length = 512, .words = 30522};
  return models::run(argc, argv, "bert_base", {.batch = 8, .input = "", .inits = {"torch"}, .lr = 2e-5, .sizes = sizes},
                     build);
}
