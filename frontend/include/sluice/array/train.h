// Training modules on arrays: seeds and optimizers.
//
//     manual_seed(7);
//     Net net;
//     net.to(try_gpu());
//     optim::Trainer trainer(net, optim::Adam{.lr = 1e-3});
//     for (auto &[x, y] : batches) {
//       auto tape = record();
//       cross_entropy(net(x), y).backward();
//       trainer.step();
//     }
#pragma once

#include "sluice/array.h"
#include "sluice/module.h"
#include "sluice/optim.h"

#include <cstdint>
#include <memory>
#include <source_location>
#include <string>
#include <utility>
#include <vector>

namespace sluice {

/// Sets the seed of the initial values and the dropout of modules outside of a graph that have no arrays yet
/// (torch.manual_seed); 0 by default. The first such module has the initial values of a graph program with this seed,
/// and each later one has others.
void manual_seed(std::uint64_t seed);

namespace optim {

/// Updates parameters on arrays from their gradients (torch.optim.Optimizer, Gluon's Trainer). The update is that of
/// Graph::minimize, as one program.
class Trainer {
public:
  /// The line of a call, for error messages; a default argument everywhere.
  using Where = std::source_location;

  /// Updates the parameters of a module outside of a graph, except those with requires_grad(false). Throws Error for
  /// numbers out of range (optim.h), and for options.loss_scale, which needs the loss.
  explicit Trainer(nn::Module &module, Optimizer optimizer, Options options = {}, Where where = Where::current());
  /// Updates arrays with attach_grad, whose names are "0", "1", ...
  explicit Trainer(std::vector<Array> parameters, Optimizer optimizer, Options options = {},
                   Where where = Where::current());
  Trainer(Trainer &&) noexcept;
  Trainer &operator=(Trainer &&) noexcept;
  ~Trainer();

  /// Updates every parameter from its gradient (Array::grad). Throws Error for a parameter without one. The first step
  /// compiles the program, as does the first after parameters moved to another device.
  void step(Where where = Where::current());
  /// Fills the gradients with zeros; needed only with `backward(true)`, which adds to them.
  void zero_grad(Where where = Where::current());
  /// The learning rate before the schedule.
  double learning_rate(Where where = Where::current()) const;
  void set_learning_rate(double rate, Where where = Where::current());
  /// The states of the optimizer, by name: "fc.weight.exp_avg", "step", "lr". Empty before the first step. Their
  /// elements may be replaced (Array::copy_).
  std::vector<std::pair<std::string, Array>> state_dict() const;

private:
  struct Impl;
  std::unique_ptr<Impl> impl;
};

} // namespace optim
} // namespace sluice
