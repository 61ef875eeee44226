// Recurrent layers.
#pragma once

#include "sluice/module.h"
#include "sluice/ops.h"

#include <cstdint>
#include <string>
#include <vector>

namespace sluice::nn {

/// Options of LSTM and GRU. PyTorch's dropout, proj_size and initial states are not available: a layer begins with
/// zeros unless it is stateful.
struct RecurrentOptions {
  std::int64_t num_layers = 1; ///< layers, each over the outputs of the one before
  bool bias = true;            ///< add bias_ih and bias_hh
  bool batch_first = false;    ///< x and y are [N, T, ...], not [T, N, ...]
  bool single_bias = false;    ///< only bias_ih; PyTorch does not have this
  /// In a training step, row i begins with the last state of row i of the previous step, without its gradient. The
  /// buffers h_l0, ... (LSTM also c_l0, ...) hold these states (Module::buffer). x must have the batch dimension; in an
  /// entry point of the graph it may have a static size, and caches then hold the states from call to call. Excludes
  /// `bidirectional`. PyTorch does not have this.
  bool stateful = false;
  /// Each layer also runs from the last step to the first, and y is [T, N, 2 * hidden_size].
  bool bidirectional = false;
};
/// The base of RNN, LSTM and GRU: x [T, N, input_size] -> y [T, N, hidden_size], over T steps. Unlike in PyTorch, a
/// call returns y alone; the last states are members. Parameters have PyTorch's names: weight_ih_l0, weight_hh_l0,
/// bias_ih_l0, bias_hh_l0, weight_ih_l1, ..., and weight_ih_l0_reverse, ... of the other direction. They begin as U(-k,
/// k) with k = 1 / sqrt(hidden_size). x without three dimensions throws Error.
class Recurrent : public Module {
public:
  Tensor forward(Tensor x) override;

  /// The state after the last step of the latest call, of each layer and direction: [directions * num_layers, N,
  /// hidden_size].
  Tensor h_n;

protected:
  /// `gates` blocks of hidden_size rows in each weight, and `states` states that a step carries.
  Recurrent(Module *parent, std::string name, std::int64_t input_size, std::int64_t hidden_size, std::int64_t gates,
            std::int64_t states, RecurrentOptions options, Where where);

  /// The parameters of one layer in one direction.
  struct Layer {
    Tensor weight_ih, weight_hh, bias_ih, bias_hh;
  };
  /// The product of all inputs with weight_ih, plus the biases that may be added before the steps.
  virtual Tensor project(const Tensor &x, const Layer &layer) const;
  /// The states after a step, of which the first is h, from the states before it and its part of `project`.
  virtual std::vector<Tensor> step(const Tensor &projected, const std::vector<Tensor> &states,
                                   const Layer &layer) const = 0;
  /// Block `number` of the hidden_size columns of a product.
  Tensor gate(const Tensor &gates, std::int64_t number) const;

  std::vector<Tensor> last; ///< h_n, and the same of each further state

private:
  Layer makeLayer(const std::string &suffix, std::int64_t gates, std::int64_t inputs, Where where);
  /// Runs all steps of layer number `number` over x [N, T, ...].
  ScanStep go(const Tensor &x, std::size_t number);
  /// The states before the first step of layer number `number`, for y [N, T, ...].
  std::vector<Tensor> first(const Tensor &y, std::size_t number);

  std::int64_t hidden, states;
  RecurrentOptions options;
  std::vector<Layer> layers; ///< layer by layer; of two directions, forward before reverse
};

/// The function that an RNN applies to the sum of a step.
enum class Nonlinearity { tanh, relu };
/// Options of RNN: RecurrentOptions and the nonlinearity.
struct RNNOptions {
  std::int64_t num_layers = 1;
  Nonlinearity nonlinearity = Nonlinearity::tanh;
  bool bias = true;
  bool batch_first = false;
  bool single_bias = false;
  bool stateful = false;
  bool bidirectional = false;
};
/// torch.nn.RNN: h' = tanh(x weight_ih^T + bias_ih + h weight_hh^T + bias_hh), or relu.
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

/// torch.nn.LSTM: c' = f * c + i * g and h' = o * tanh(c'), with the gates in the order i, f, g, o.
class LSTM : public Recurrent {
public:
  LSTM(Module *parent, std::string name, std::int64_t input_size, std::int64_t hidden_size,
       RecurrentOptions options = {}, Where where = Where::current());
  Tensor forward(Tensor x) override;

  Tensor c_n; ///< the cells, as h_n

protected:
  std::vector<Tensor> step(const Tensor &projected, const std::vector<Tensor> &states,
                           const Layer &layer) const override;
};

/// torch.nn.GRU: h' = n + z * (h - n), with the gates in the order r, z, n. r multiplies the product of the state, with
/// bias_hh.
class GRU : public Recurrent {
public:
  GRU(Module *parent, std::string name, std::int64_t input_size, std::int64_t hidden_size,
      RecurrentOptions options = {}, Where where = Where::current());

protected:
  Tensor project(const Tensor &x, const Layer &layer) const override;
  std::vector<Tensor> step(const Tensor &projected, const std::vector<Tensor> &states,
                           const Layer &layer) const override;
};

} // namespace sluice::nn
