// The command line that the model programs share.
#pragma once

#include <sluice/graph.h>

#include <cstdint>
#include <functional>
#include <string>

namespace models {

struct Options {
  std::int64_t batch = 256;   ///< the most rows of one call
  std::string input = "u8";   ///< the dtype of images: u8 (scaled by 1/255) or f32
  std::string init = "torch"; ///< how parameters begin: torch or notebook
  double lr = 0.1;
  std::string output; ///< the file to write; the model's name with .mlir unless given
};

/// Parses the command line over `defaults`, builds the model and writes it. Returns the program's exit code: 2 for
/// wrong usage, 3 for a file that cannot be written.
int run(int argc, char **argv, const std::string &name, Options defaults,
        const std::function<sluice::Graph(const Options &)> &build);

} // namespace models
