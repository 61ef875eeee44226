// The places to search for NVIDIA's libraries: NVRTC (compile half), cublasLt and NCCL (run half). Sluice contains none
// of them.
#pragma once

#include <string>
#include <vector>

namespace sluice::cuda {

/// A library by its file names, the best first, and the Python packages that contain it: folders of
/// site-packages/nvidia.
struct LibrarySearch {
  const char *variable; ///< environment variable with its path
  std::vector<std::string> files, packages;
  std::vector<std::string> systems = {"/usr/local", "/usr"}; ///< prefix of system-wide Python installations

  /// The value of the variable; empty if unset.
  std::string named() const;
  /// Candidate paths, the best first. If the variable is set, it is the only candidate. Otherwise the candidates are
  /// the loader's default, a toolkit of CUDA_HOME or /usr/local/cuda, and the packages of the Python of VIRTUAL_ENV, of
  /// CONDA_PREFIX, of the user and of the system.
  std::vector<std::string> places() const;
  /// The candidates separated by commas, for error messages.
  std::string listed() const;
};

} // namespace sluice::cuda
