// Gradients of calls on arrays, as autograd.record of MXNet and GradientTape of TensorFlow.
//
//     x.attach_grad();
//     {
//       auto tape = record();
//       Array loss = (x * x).sum();
//       loss.backward();
//     }
//     std::cout << x.grad();
//
// While a tape exists, its thread records calls that depend on an array with attach_grad. `backward` compiles the
// gradient of the recorded calls as one program; equal records share it. The program reads the results of the recorded
// calls instead of computing them again. Recorded calls of modules and of functions by jit also save the intermediate
// values that gradients read. Later changes of arrays do not affect the record, except in memory that another library
// shares (dlpack.h). Results keep their record, so that `backward` works after the tape ends, and more than once.
// Operands, results and saved values of recorded calls stay in memory as long as a result exists. A recorded call
// cannot change an array with attach_grad, for example `w -= w.grad()`: change it after the tape, or under NoGrad.
#pragma once

#include "sluice/array/core.h"

namespace sluice {

/// Records calls of this thread during its lifetime. Tapes nest.
class Tape {
public:
  Tape();
  Tape(const Tape &) = delete;
  ~Tape();

private:
  bool before;
};
[[nodiscard]] inline Tape record() { return {}; }

/// Pauses recording during its lifetime (torch.no_grad).
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
