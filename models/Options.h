// The command line of the model programs.
#pragma once

#include <sluice/graph.h>
#include <sluice/module.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <source_location>
#include <string>
#include <vector>

namespace models {

/// Sizes of a language model, or of another network of equal blocks. Only the sizes that are not 0 are options of the
/// program; the same holds for `dropout` if it is set.
struct Sizes {
  std::int64_t layers = 0;            ///< number of blocks
  std::int64_t width = 0;             ///< features of each word or patch, a multiple of the heads' 64
  std::int64_t length = 0;            ///< words in a row
  std::int64_t words = 0;             ///< vocabulary size
  std::optional<double> dropout = {}; ///< dropout probability
};

struct Options {
  std::int64_t batch = 256;                               ///< maximum rows of one call
  std::string input = "u8";                               ///< the dtype of images, u8 (scaled by 1/255) or f32; empty:
                                                          ///< the program has no images
  std::int64_t size = 0;                                  ///< side of images, for programs with variable image size
  std::string init = "torch";                             ///< initial values of parameters: one of `inits`
  std::vector<std::string> inits = {"torch", "notebook"}; ///< those that the program supports, also xavier and he; one:
                                                          ///< the program has no choice
  double lr = 0.1;
  Sizes sizes = {};
  std::string output = {};            ///< output file; default: the model's name with .mlir
  std::string devices = "cpu";        ///< device list of the target
  std::string copies = {};            ///< policy for copies that pins require; default: the compiler's
  bool hasParts = true;               ///< that can be pinned
  std::vector<std::string> pins = {}; ///< NAME=DEVICE: pins a part of the model to a device
};

/// A graph with the settings common to all models.
sluice::Graph graph(const std::string &name, const Options &options,
                    std::source_location where = std::source_location::current());

/// Pins parts of a model to devices, as in `pins` of the options.
void pin(sluice::nn::Module &model, const Options &options);

/// Parses the command line over `defaults`, builds the model and writes it. Returns the program's exit code: 2 for
/// usage errors, 3 for an unwritable file, 4 for a pin to a device that --devices lacks.
int run(int argc, char **argv, const std::string &name, Options defaults,
        const std::function<sluice::Graph(const Options &)> &build);

} // namespace models
