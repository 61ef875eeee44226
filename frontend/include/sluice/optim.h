// Optimizers: what `Graph::minimize` takes.
#pragma once

namespace sluice::optim {

/// PyTorch's SGD. The learning rate is a state of the program, settable at run time (`--set lr=0.1`).
struct SGD {
  double lr = 1e-3, momentum = 0, dampening = 0, weight_decay = 0;
  bool nesterov = false;
};

} // namespace sluice::optim
