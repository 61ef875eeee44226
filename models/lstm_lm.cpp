// The medium language model of Zaremba et al. 2014, with a vocabulary of 10,000 words: predicts the next word at each
// position of 35-word rows by an embedding, two LSTM layers of 650 features and a linear layer. Dropout precedes all
// layers but the first. LSTM layers have one bias each. Each row starts with the final state of the same row of the
// previous batch.
#include "NextWord.h"

using namespace sluice;

static constexpr std::int64_t kWidth = 650;

struct LanguageModel : nn::Module {
  double share; // dropout probability
  nn::Embedding embedding;
  nn::LSTM lstm1{this, "lstm1", kWidth, kWidth, {.batch_first = true, .single_bias = true, .stateful = true}},
      lstm2{this, "lstm2", kWidth, kWidth, {.batch_first = true, .single_bias = true, .stateful = true}};
  nn::Linear fc;

  LanguageModel(Graph &graph, const models::Sizes &sizes)
      : Module(graph), share(*sizes.dropout), embedding{this, "embedding", sizes.words, kWidth},
        fc{this, "fc", kWidth, sizes.words} {}

  Tensor forward(Tensor words) override {
    Tensor x = lstm1(dropout(embedding(words), share));
    return fc(dropout(lstm2(dropout(x, share)), share));
  }
};

static Graph build(const models::Options &options) {
  models::NextWord task("lstm_lm", options);
  LanguageModel net{task.graph, options.sizes};
  models::pin(net, options);
  net.initialize("*", init::uniform(-0.05, 0.05));
  Graph graph = task.minimize_sums(net(task.tokens), optim::SGD{.lr = options.lr});
  Tensor token = graph.input("token", i32, {1, 1});
  graph.entry("decode", [&] { graph.output("logits", net(token).flatten()); });
  return graph;
}

int main(int argc, char **argv) {
  models::Sizes sizes{.length = 35, .words = 10000, .dropout = 0.5};
  return models::run(argc, argv, "lstm_lm", {.batch = 20, .input = "", .inits = {"torch"}, .lr = 1.0, .sizes = sizes},
                     build);
}
