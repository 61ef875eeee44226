// Linear layers and embeddings.
#pragma once

#include "sluice/module.h"

#include <cstdint>
#include <optional>
#include <string>

namespace sluice::nn {

struct LinearOptions {
  bool bias = true;
};
class Linear : public Module {
public:
  Linear(Module *parent, std::string name, std::int64_t in_features, std::int64_t out_features,
         LinearOptions options = {}, Where where = Where::current());
  Tensor forward(Tensor x) override;

  Parameter weight, bias;
};

struct EmbeddingOptions {
  std::optional<std::int64_t> padding_idx = {}; ///< a row that begins as zeros and is not trained
};
/// Of indices [...], i32 or i64, the rows of weight [num_embeddings, embedding_dim].
class Embedding : public Module {
public:
  Embedding(Module *parent, std::string name, std::int64_t num_embeddings, std::int64_t embedding_dim,
            EmbeddingOptions options = {}, Where where = Where::current());
  Tensor forward(Tensor index) override;

  Parameter weight;

private:
  std::optional<std::int64_t> padding;
};

} // namespace sluice::nn
