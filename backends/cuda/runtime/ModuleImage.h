// The device code of a backend's session as its compile half wrote it (compiler/ModuleImage.h):
//
//   sluice cuda 1
//   kernel relu_2 3                 a kernel, and how many buffers its functions take
//   function relu_2_0 128 4 32      one of its functions, run in this order: its tasks, rows of a task or 0, threads of one
//   code sm_90 18328                code for an architecture, and its size
//   end
//   <18328 bytes>                   each code in turn
//
// There are tasks * ceil(rows / rows of a task), or `tasks` where that is 0. A block does a task, or several of a warp each.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::cuda {

struct ImageFunction {
  std::string name;
  int64_t tasks = -1, rowsPerTask = -1, threads = -1;

  int64_t tasksFor(int64_t rows) const {
    return rowsPerTask ? tasks * ((rows + rowsPerTask - 1) / rowsPerTask) : tasks;
  }
};

struct ImageKernel {
  std::string name;
  size_t buffers;
  std::vector<ImageFunction> functions;
};

struct ImageCode {
  std::string architecture; // "sm_90"
  std::string_view bytes;   // of the image
};

struct ModuleImage {
  std::vector<ImageKernel> kernels;
  std::vector<ImageCode> codes;
};

/// Throws an error of something invalid, which says in what line.
ModuleImage readModuleImage(std::string_view image);

} // namespace sluice::cuda
