// Where the libraries may be that a program uses where they are, such as cublasLt: it carries none of them.
#pragma once

#include <string>
#include <vector>

namespace sluice::cuda {

/// A library by the names of its files, the best first, and the Python packages that bring it: folders of
/// site-packages/nvidia.
struct LibrarySearch {
  const char *variable; ///< that names it
  std::vector<std::string> files, packages;

  /// What the variable names; empty if it names nothing.
  std::string named() const;
  /// Where to look, the best first: at what the variable names and nowhere else, or else where the loader looks, in a toolkit
  /// of CUDA_HOME or /usr/local/cuda, and in the packages of the Python of VIRTUAL_ENV, of CONDA_PREFIX and of the user.
  std::vector<std::string> places() const;
};

} // namespace sluice::cuda
