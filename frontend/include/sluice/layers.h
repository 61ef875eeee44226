// The layers of torch.nn, with its argument names, defaults and initial values.
#pragma once

#include "sluice/formulas.h"
#include "sluice/module.h"
#include "sluice/ops.h"

#include <memory>
#include <optional>

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

/// The arguments that recurrent layers share with torch.nn's, which has more: dropout, projections and states to begin with.
/// These begin with zeros, unless they are stateful.
struct RecurrentOptions {
  std::int64_t num_layers = 1;
  bool bias = true;
  bool batch_first = false; ///< x and y are [N, T, ...], not [T, N, ...]
  bool single_bias = false; ///< each layer has bias_ih alone
  /// In training, row i of a batch begins with what row i of the batch before has left, which no gradient goes back to:
  /// buffers h_l0, ..., and c_l0, ... of LSTM, carried by rows (Module::buffer).
  bool stateful = false;
  /// Each layer goes along the steps both ways, and y has what both give, [T, N, 2 hidden_size].
  bool bidirectional = false;
};
/// Layers along the steps of x [T, N, input_size], each over the one before: y [T, N, hidden_size]. Parameters are weight_ih_l0,
/// weight_hh_l0, bias_ih_l0, bias_hh_l0, weight_ih_l1, ..., and weight_ih_l0_reverse, ... of the other direction. They begin as
/// U(-k, k), k = 1 / sqrt(hidden_size).
class Recurrent : public Module {
public:
  Tensor forward(Tensor x) override;

  /// Of the latest call, what the last step of each layer has left: [num_layers, N, hidden_size], or of each direction of each.
  Tensor h_n;

protected:
  Recurrent(Module *parent, std::string name, std::int64_t input_size, std::int64_t hidden_size, std::int64_t gates,
            std::int64_t states, RecurrentOptions options, Where where);

  struct Layer {
    Tensor weight_ih, weight_hh, bias_ih, bias_hh;
  };
  /// What of the input's product all steps have in common: with biases that are added to it as well as to that of the state.
  virtual Tensor project(const Tensor &x, const Layer &layer) const;
  /// The states behind a step, the first of which is h, from those before it and its part of `project`.
  virtual std::vector<Tensor> step(const Tensor &projected, const std::vector<Tensor> &states,
                                   const Layer &layer) const = 0;
  /// Gate number `gate` of a product.
  Tensor gate(const Tensor &gates, std::int64_t number) const;

  std::vector<Tensor> last; ///< of each state, as h_n is

private:
  Layer makeLayer(const std::string &suffix, std::int64_t gates, std::int64_t inputs, Where where);
  /// All steps of one layer in one direction, from x [N, T, ...].
  ScanStep go(const Tensor &x, std::size_t number);
  /// The states before the first step of layer number `number`, for y [N, T, ...].
  std::vector<Tensor> first(const Tensor &y, std::size_t number);

  std::int64_t hidden, states;
  RecurrentOptions options;
  std::vector<Layer> layers; ///< of two directions, one behind the other
};

enum class Nonlinearity { tanh, relu };
/// RecurrentOptions, and what makes a state of a sum.
struct RNNOptions {
  std::int64_t num_layers = 1;
  Nonlinearity nonlinearity = Nonlinearity::tanh;
  bool bias = true;
  bool batch_first = false;
  bool single_bias = false;
  bool stateful = false;
  bool bidirectional = false;
};
class RNN : public Recurrent {
public:
  RNN(Module *parent, std::string name, std::int64_t input_size, std::int64_t hidden_size, RNNOptions options = {},
      Where where = Where::current());

protected:
  std::vector<Tensor> step(const Tensor &projected, const std::vector<Tensor> &states,
                           const Layer &layer) const override;

private:
  Nonlinearity nonlinearity;
};

/// Its gates are i, f, g and o.
class LSTM : public Recurrent {
public:
  LSTM(Module *parent, std::string name, std::int64_t input_size, std::int64_t hidden_size,
       RecurrentOptions options = {}, Where where = Where::current());
  Tensor forward(Tensor x) override;

  Tensor c_n; ///< as h_n, of the cells

protected:
  std::vector<Tensor> step(const Tensor &projected, const std::vector<Tensor> &states,
                           const Layer &layer) const override;
};

/// Its gates are r, z and n.
class GRU : public Recurrent {
public:
  GRU(Module *parent, std::string name, std::int64_t input_size, std::int64_t hidden_size,
      RecurrentOptions options = {}, Where where = Where::current());

protected:
  Tensor project(const Tensor &x, const Layer &layer) const override;
  std::vector<Tensor> step(const Tensor &projected, const std::vector<Tensor> &states,
                           const Layer &layer) const override;
};

struct MultiheadAttentionOptions {
  bool bias = true;
  bool batch_first = false; ///< queries, keys, values and the result are [N, T, E], not [T, N, E]
  bool is_causal = false;   ///< query t attends to keys 0 to t alone
};
/// As torch.nn has them, of bool true where a query does *not* attend; of floats, added to the scores.
struct AttentionMasks {
  Tensor key_padding_mask = {}; ///< [N, S]
  Tensor attn_mask = {};        ///< [T, S], or what broadcasts to [N, num_heads, T, S]
};
/// Attention in heads of embed_dim / num_heads elements, between projections: in_proj_weight [3 embed_dim, embed_dim] and
/// in_proj_bias of queries, keys and values, and out_proj. Without dropout.
class MultiheadAttention : public Module {
public:
  MultiheadAttention(Module *parent, std::string name, std::int64_t embed_dim, std::int64_t num_heads,
                     MultiheadAttentionOptions options = {}, Where where = Where::current());
  /// Of x to itself.
  Tensor forward(Tensor x) override;
  Tensor forward(Tensor query, Tensor key, Tensor value) override;
  using Module::operator();
  Tensor operator()(Arg x, AttentionMasks masks);
  Tensor operator()(Arg query, Arg key, Arg value, AttentionMasks masks);

  Tensor in_proj_weight, in_proj_bias;
  Linear out_proj;

private:
  Tensor batchFirst(const Tensor &x) const;
  Tensor inHeads(const Tensor &projected, std::int64_t first) const;
  /// Parts `first` to `last` of what projects queries, keys and values.
  Tensor project(const Tensor &x, std::int64_t first, std::int64_t last) const;
  Tensor attend(const Tensor &query, const Tensor &key, const Tensor &value);
  Tensor mask() const;

  std::int64_t embedding, heads;
  MultiheadAttentionOptions options;
  AttentionMasks masks; ///< of the call
};

struct Conv2dOptions {
  Size2 stride = 1, padding = 0, dilation = 1;
  std::int64_t groups = 1;
  bool bias = true;
};
class Conv2d : public Module {
public:
  Conv2d(Module *parent, std::string name, std::int64_t in_channels, std::int64_t out_channels, Size2 kernel_size,
         Conv2dOptions options = {}, Where where = Where::current());
  Tensor forward(Tensor x) override;

  Parameter weight, bias;

private:
  ConvOptions options;
};

struct Conv1dOptions {
  std::int64_t stride = 1, padding = 0, dilation = 1, groups = 1;
  bool bias = true;
};
class Conv1d : public Module {
public:
  Conv1d(Module *parent, std::string name, std::int64_t in_channels, std::int64_t out_channels,
         std::int64_t kernel_size, Conv1dOptions options = {}, Where where = Where::current());
  Tensor forward(Tensor x) override;

  Parameter weight, bias;

private:
  ConvOptions1d options;
};

struct ConvTranspose2dOptions {
  Size2 stride = 1, padding = 0, output_padding = 0;
  std::int64_t groups = 1;
  bool bias = true;
  Size2 dilation = 1;
};
class ConvTranspose2d : public Module {
public:
  ConvTranspose2d(Module *parent, std::string name, std::int64_t in_channels, std::int64_t out_channels,
                  Size2 kernel_size, ConvTranspose2dOptions options = {}, Where where = Where::current());
  Tensor forward(Tensor x) override;

  Parameter weight, bias;

private:
  ConvTransposeOptions options;
};

struct BatchNorm2dOptions {
  double eps = 1e-5, momentum = 0.1;
  bool affine = true;
};
class BatchNorm2d : public Module {
public:
  BatchNorm2d(Module *parent, std::string name, std::int64_t num_features, BatchNorm2dOptions options = {},
              Where where = Where::current());
  Tensor forward(Tensor x) override;

  Parameter weight, bias;
  Tensor running_mean, running_var;

private:
  BatchNormOptions options;
};

struct LayerNormOptions {
  double eps = 1e-5;
  bool elementwise_affine = true, bias = true;
};
class LayerNorm : public Module {
public:
  LayerNorm(Module *parent, std::string name, Shape normalized_shape, LayerNormOptions options = {},
            Where where = Where::current());
  Tensor forward(Tensor x) override;

  Parameter weight, bias;

private:
  Shape shape;
  double eps;
};

struct RMSNormOptions {
  std::optional<double> eps = {}; ///< that of the dtype
  bool elementwise_affine = true;
};
class RMSNorm : public Module {
public:
  RMSNorm(Module *parent, std::string name, Shape normalized_shape, RMSNormOptions options = {},
          Where where = Where::current());
  Tensor forward(Tensor x) override;

  Parameter weight;

private:
  Shape shape;
  std::optional<double> eps;
};

struct GroupNormOptions {
  double eps = 1e-5;
  bool affine = true;
};
class GroupNorm : public Module {
public:
  GroupNorm(Module *parent, std::string name, std::int64_t num_groups, std::int64_t num_channels,
            GroupNormOptions options = {}, Where where = Where::current());
  Tensor forward(Tensor x) override;

  Parameter weight, bias;

private:
  std::int64_t groups;
  double eps;
};

struct InstanceNormOptions {
  double eps = 1e-5;
  bool affine = false;
};
class InstanceNorm2d : public Module {
public:
  InstanceNorm2d(Module *parent, std::string name, std::int64_t num_features, InstanceNormOptions options = {},
                 Where where = Where::current());
  Tensor forward(Tensor x) override;

  Parameter weight, bias;

private:
  double eps;
};

struct LocalResponseNormOptions {
  double alpha = 1e-4, beta = 0.75, k = 1.0;
};
class LocalResponseNorm : public Module {
public:
  LocalResponseNorm(Module *parent, std::string name, std::int64_t size, LocalResponseNormOptions options = {},
                    Where where = Where::current());
  Tensor forward(Tensor x) override;

private:
  std::int64_t size;
  LocalResponseNormOptions options;
};

class MaxPool2d : public Module {
public:
  MaxPool2d(Module *parent, std::string name, Size2 kernel_size, MaxPoolOptions options = {},
            Where where = Where::current());
  Tensor forward(Tensor x) override;

private:
  Size2 kernel;
  MaxPoolOptions options;
};

class AvgPool2d : public Module {
public:
  AvgPool2d(Module *parent, std::string name, Size2 kernel_size, AvgPoolOptions options = {},
            Where where = Where::current());
  Tensor forward(Tensor x) override;

private:
  Size2 kernel;
  AvgPoolOptions options;
};

class AdaptiveAvgPool2d : public Module {
public:
  AdaptiveAvgPool2d(Module *parent, std::string name, Size2 output_size, Where where = Where::current());
  Tensor forward(Tensor x) override;

private:
  Size2 size;
};

/// By the nearest element unless told otherwise.
class Upsample : public Module {
public:
  Upsample(Module *parent, std::string name, Size2 scale_factor, InterpolateOptions options = {},
           Where where = Where::current());
  Tensor forward(Tensor x) override;

private:
  Size2 scale;
  InterpolateOptions options;
};

class PixelShuffle : public Module {
public:
  PixelShuffle(Module *parent, std::string name, std::int64_t upscale_factor, Where where = Where::current());
  Tensor forward(Tensor x) override;

private:
  std::int64_t factor;
};

class Flatten : public Module {
public:
  Flatten(Module *parent, std::string name, std::int64_t start_dim = 1, std::int64_t end_dim = -1,
          Where where = Where::current());
  Tensor forward(Tensor x) override;

private:
  std::int64_t start, end;
};

/// Layers without parameters that apply one function.
#define SLUICE_ACTIVATIONS(X)                                                                                          \
  X(Identity, identity)                                                                                                \
  X(ReLU, relu)                                                                                                        \
  X(ReLU6, relu6)                                                                                                      \
  X(SiLU, silu)                                                                                                        \
  X(Sigmoid, sigmoid)                                                                                                  \
  X(Softplus, softplus)                                                                                                \
  X(Tanh, tanh)                                                                                                        \
  X(Hardsigmoid, hardsigmoid)                                                                                          \
  X(Hardswish, hardswish)
#define SLUICE_ACTIVATION(Name, function)                                                                              \
  class Name : public Module {                                                                                         \
  public:                                                                                                              \
    Name(Module *parent, std::string name, Where where = Where::current()) : Module(parent, std::move(name), where) {} \
    Tensor forward(Tensor x) override { return sluice::function(at(x)); }                                              \
  };
SLUICE_ACTIVATIONS(SLUICE_ACTIVATION)
#undef SLUICE_ACTIVATION

/// Drops each element with probability p in training; see `dropout`.
class Dropout : public Module {
public:
  Dropout(Module *parent, std::string name, double p = 0.5, Where where = Where::current());
  Tensor forward(Tensor x) override;

private:
  double p;
};

class GELU : public Module {
public:
  GELU(Module *parent, std::string name, Gelu approximate = Gelu::none, Where where = Where::current());
  Tensor forward(Tensor x) override;

private:
  Gelu approximate;
};

class LeakyReLU : public Module {
public:
  LeakyReLU(Module *parent, std::string name, double negative_slope = 0.01, Where where = Where::current());
  Tensor forward(Tensor x) override;

private:
  double slope;
};

class ELU : public Module {
public:
  ELU(Module *parent, std::string name, double alpha = 1.0, Where where = Where::current());
  Tensor forward(Tensor x) override;

private:
  double alpha;
};

struct PReLUOptions {
  double init = 0.25;
};
class PReLU : public Module {
public:
  PReLU(Module *parent, std::string name, std::int64_t num_parameters = 1, PReLUOptions options = {},
        Where where = Where::current());
  Tensor forward(Tensor x) override;

  Parameter weight;
};

/// Modules one after another, named "0", "1", ...:
///
///     nn::Sequential features{this, "features"};          // in the constructor:
///     features.add<nn::Conv2d>(1, 20, 3).add<nn::ReLU>().add<nn::MaxPool2d>(2);
class Sequential : public Module {
public:
  using Module::Module;
  Tensor forward(Tensor x) override;
  /// Of layers that take two more tensors, which are the same for all.
  Tensor forward(Tensor x, Tensor a, Tensor b) override;

  template <class Layer, class... Args> Sequential &add(Args... args) {
    layers.push_back(std::make_unique<Layer>(this, std::to_string(layers.size()), std::move(args)...));
    return *this;
  }

private:
  std::vector<std::unique_ptr<Module>> layers;
};

} // namespace sluice::nn
