// The beginning of generated kernels: one prelude for all kernels, which needs no header of the toolkit, and the
// signature of each kernel.
#pragma once

#include <cstdint>
#include <string>

namespace sluice::cuda {

/// The text of Prelude.cuh: CUDA C++ for NVRTC. `Index` is the type of counts and offsets.
extern const char *const kPrelude;

/// `extern "C" __global__ void name(Byte *__restrict__ b0, ..., Index rows, Index tasks) {`, with `bounds` before it.
///
/// `__restrict__` is valid even if a result shares the memory of an operand. The thread that writes an element has read
/// it itself, or belongs to a warp or block that has read it for a fold and uses only that thread's value. The compiler
/// may therefore move loads before the store, so that many loads are in flight at once.
inline std::string kernelHead(const std::string &name, int64_t buffers, const std::string &bounds = "") {
  std::string head = "extern \"C\" " + bounds + "__global__ void " + name + "(";
  for (int64_t i = 0; i < buffers; ++i)
    head += "Byte *__restrict__ b" + std::to_string(i) + ", ";
  return head + "Index rows, Index tasks) {\n";
}

} // namespace sluice::cuda
