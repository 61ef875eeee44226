// Gradients of calls on arrays: autograd.record of MXNet, GradientTape of TensorFlow.
//
//     x.attach_grad();
//     {
//       auto tape = record();
//       Array loss = (x * x).sum();
//       loss.backward();
//     }
//     std::cout << x.grad();
//
// While a tape exists, its thread records the calls that depend on arrays with attach_grad. `backward` differentiates
// the recorded calls by the compiler's own rules, as one program, which equal records share. The program reads the
// results of the recorded calls and does not compute them again. Arrays that change later do not affect the record.
#pragma once

#include "sluice/array/core.h"

namespace sluice {

/// Records while it exists. Tapes of one thread nest.
class Tape {
public:
  Tape();
  Tape(const Tape &) = delete;
  ~Tape();

private:
  bool before;
};
[[nodiscard]] inline Tape record() { return {}; }

/// Records nothing while it exists: torch.no_grad.
class NoGrad {
public:
  NoGrad();
  NoGrad(const NoGrad &) = delete;
  ~NoGrad();

private:
  bool before;
};

/// Whether this thread records.
bool is_recording();

} // namespace sluice
