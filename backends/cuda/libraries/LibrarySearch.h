// Where NVIDIA's libraries may be, which both halves use where they are: NVRTC, cublasLt, NCCL. Sluice carries none of them.
#pragma once

#include <string>
#include <vector>

namespace sluice::cuda {

/// A library by the names of its files, the best first, and the Python packages that bring it: folders of
/// site-packages/nvidia.
struct LibrarySearch {
  const char *variable; ///< that names it
  std::vector<std::string> files, packages;
  std::vector<std::string> systems = {"/usr/local", "/usr"}; ///< below which Pythons for everybody have their packages

  /// What the variable names; empty if it names nothing.
  std::string named() const;
  /// Where to look, the best first: at what the variable names and nowhere else, or else where the loader looks, in a toolkit
  /// of CUDA_HOME or /usr/local/cuda, and in the packages of the Python of VIRTUAL_ENV, of CONDA_PREFIX, of the user and of the
  /// system.
  std::vector<std::string> places() const;
  /// The same with commas, for who finds nothing there.
  std::string listed() const;
};

} // namespace sluice::cuda
