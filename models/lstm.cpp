// A language model over 10,000 words: of 32 words in a row each next one, by an embedding, two LSTM layers and a product. Its
// layers have one bias each, where torch.nn's have two, and begin every batch with zeros.
#include "Options.h"
#include <sluice/sluice.h>

using namespace sluice;

static constexpr std::int64_t kWords = 10000, kWidth = 256, kSteps = 32;

struct Lstm : nn::Module {
  using Module::Module;
  nn::Linear input{this, "input", kWidth, 4 * kWidth}, state{this, "state", kWidth, 4 * kWidth, {.bias = false}};

  Tensor forward(Tensor x) override {
    Tensor zeros = zeros_like(x.select(1, 0));
    return scan({zeros, zeros}, {input(x)}, 1,
                [&](const auto &carried, const auto &slices) {
                  Tensor gates = slices[0] + state(carried[0]);
                  auto gate = [&](std::int64_t number) {
                    return gates.slice(1, number * kWidth, (number + 1) * kWidth);
                  };
                  Tensor c = sigmoid(gate(1)) * carried[1] + sigmoid(gate(0)) * tanh(gate(2));
                  Tensor h = sigmoid(gate(3)) * tanh(c);
                  return ScanStep{{h, c}, {h}};
                })
        .stacked[0];
  }
};

struct LanguageModel : nn::Module {
  using Module::Module;
  nn::Embedding embedding{this, "embedding", kWords, kWidth};
  Lstm lstm1{this, "lstm1"}, lstm2{this, "lstm2"};
  nn::Linear fc{this, "fc", kWidth, kWords};

  Tensor forward(Tensor words) override { return fc(lstm2(lstm1(embedding(words)))); }
};

/// Of each row, the sum over its steps.
static Tensor sumOfLosses(const Tensor &logits, const Tensor &next) {
  return scan({}, {logits, next}, 1,
              [](const auto &, const auto &slices) {
                return ScanStep{{}, {cross_entropy(slices[0], slices[1], Reduction::none)}};
              })
      .stacked[0]
      .sum(1);
}

static Graph build(const models::Options &options) {
  Graph graph = models::graph("lstm", options);
  Tensor words = graph.input("words", i32, {Dim{"batch"}, kSteps}),
         next = graph.input("next", i32, {Dim{"batch"}, kSteps});
  LanguageModel net{graph};
  models::pin(net, options);
  net.initialize("*", init::uniform(-0.1, 0.1));
  Tensor logits = net(words);
  graph.output("logits", logits);
  graph.minimize(sumOfLosses(logits, next).mean(), optim::SGD{.lr = options.lr});
  return graph;
}

int main(int argc, char **argv) {
  return models::run(argc, argv, "lstm", {.batch = 128, .inits = {"torch"}, .lr = 0.1}, build);
}
