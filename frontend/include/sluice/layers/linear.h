// Linear layers and embeddings.
#pragma once

#include "sluice/module.h"

#include <cstdint>
#include <optional>
#include <string>

namespace sluice::nn {

/// Options of Linear.
struct LinearOptions {
  bool bias = true; ///< add a bias
};
/// x [..., in_features] weight^T + bias -> [..., out_features]: the function `linear`. Both parameters begin as U(-k,
/// k) with k = 1 / sqrt(in_features).
class Linear : public Module {
public:
  Linear(Module *parent, std::string name, std::int64_t in_features, std::int64_t out_features,
         LinearOptions options = {}, Where where = Where::current());
  Tensor forward(Tensor x) override;

  Parameter weight; ///< [out_features, in_features]
  Parameter bias;   ///< [out_features]
};

/// Linear of which the first call finds in_features: the last dimension of x, which has a size. The call creates the
/// parameters, on the device that Module::to, Module::pin or a DeviceScope of the constructor has chosen. Before that,
/// `weight` and `bias` are empty.
class LazyLinear : public Module {
public:
  LazyLinear(Module *parent, std::string name, std::int64_t out_features, LinearOptions options = {},
             Where where = Where::current());
  Tensor forward(Tensor x) override;

  Parameter weight; ///< [out_features, in_features]
  Parameter bias;   ///< [out_features]

private:
  std::int64_t out;
  LinearOptions options;
};

/// Options of Embedding. PyTorch's max_norm, scale_grad_by_freq and sparse are not available.
struct EmbeddingOptions {
  /// A row that begins as zeros and receives no gradient; negative ones count from the end. A row that is not there
  /// throws Error.
  std::optional<std::int64_t> padding_idx = {};
};
/// The rows of the weight that indices [...] of i32 or i64 name, [..., embedding_dim]: the function `embedding`.
class Embedding : public Module {
public:
  Embedding(Module *parent, std::string name, std::int64_t num_embeddings, std::int64_t embedding_dim,
            EmbeddingOptions options = {}, Where where = Where::current());
  Tensor forward(Tensor index) override;

  Parameter weight; ///< [num_embeddings, embedding_dim]; begins as N(0, 1)

private:
  std::optional<std::int64_t> padding;
};

} // namespace sluice::nn
