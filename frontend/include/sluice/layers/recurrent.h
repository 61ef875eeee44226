// Recurrent layers.
#pragma once

#include "sluice/module.h"
#include "sluice/ops.h"

#include <cstdint>
#include <string>
#include <vector>

namespace sluice::nn {

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

} // namespace sluice::nn
