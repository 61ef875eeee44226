// Shared code of fcn_r and fcn_s.
#pragma once

#include <sluice/sluice.h>

#include <cstdint>
#include <initializer_list>

namespace models {

/// A linear layer followed by a sigmoid.
struct SigmoidLinear : sluice::nn::Linear {
  using Linear::Linear;
  sluice::Tensor forward(sluice::Tensor x) override { return sluice::sigmoid(Linear::forward(x)); }
};

/// Layers fc.0, fc.1, ... between consecutive widths, with sigmoids between them.
struct FullyConnected : sluice::nn::Module {
  sluice::nn::Sequential fc{this, "fc"};

  FullyConnected(sluice::Graph &graph, std::initializer_list<std::int64_t> widths) : Module(graph) {
    const std::int64_t *in = widths.begin();
    for (; in + 2 < widths.end(); ++in)
      fc.add<SigmoidLinear>(in[0], in[1]);
    fc.add<sluice::nn::Linear>(in[0], in[1]);
  }

  sluice::Tensor forward(sluice::Tensor x) override { return fc(x); }
};

} // namespace models
