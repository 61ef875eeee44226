// What generated kernels begin with: one text in front of all, without a header of the toolkit, and each one's head.
#pragma once

#include <cstdint>
#include <string>

namespace sluice::cuda {

/// The text of Prelude.cuh: CUDA C++ for NVRTC. `Index` is the type of counts and offsets.
extern const char *const kPrelude;

/// `extern "C" __global__ void name(Byte *__restrict__ b0, ..., Index rows, Index tasks) {`, with `bounds` in front. Where a
/// result lies where an operand lay, the thread that writes an element is the one that has read it, or one of a warp or block that
/// has read it for a fold and takes that thread's value alone: loads of others may go in front of that store, so that a thread
/// waits for many of them at once.
inline std::string kernelHead(const std::string &name, int64_t buffers, const std::string &bounds = "") {
  std::string head = "extern \"C\" " + bounds + "__global__ void " + name + "(";
  for (int64_t i = 0; i < buffers; ++i)
    head += "Byte *__restrict__ b" + std::to_string(i) + ", ";
  return head + "Index rows, Index tasks) {\n";
}

} // namespace sluice::cuda
