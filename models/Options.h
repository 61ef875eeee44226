// The command line that the model programs share.
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

/// How large a language model or another network of equal blocks is; 0: the program has nothing of the kind.
struct Sizes {
  std::int64_t layers = 0;
  std::int64_t width = 0;             ///< elements of each word or patch, in heads of 64
  std::int64_t length = 0;            ///< words in a row
  std::int64_t words = 0;             ///< that there are
  std::optional<double> dropout = {}; ///< the share of elements that it zeroes
};

struct Options {
  std::int64_t batch = 256;                               ///< the most rows of one call
  std::string input = "u8";                               ///< the dtype of images: u8 (scaled by 1/255) or f32
  std::int64_t size = 0;                                  ///< the side of images, of programs that let one choose it
  std::string init = "torch";                             ///< how parameters begin: torch, notebook, xavier or he
  std::vector<std::string> inits = {"torch", "notebook"}; ///< what the program knows
  double lr = 0.1;
  Sizes sizes = {};
  std::string output = {};            ///< the file to write; the model's name with .mlir unless given
  std::string devices = "cpu";        ///< the target
  std::string copies = {};            ///< what becomes of copies that pins need; the compiler's default unless given
  std::vector<std::string> pins = {}; ///< NAME=DEVICE: parts of the model, and where they work
};

/// A graph with the settings that all models share.
sluice::Graph graph(const std::string &name, const Options &options,
                    std::source_location where = std::source_location::current());

/// Pins the parts of a model as asked.
void pin(sluice::nn::Module &model, const Options &options);

/// Parses the command line over `defaults`, builds the model and writes it. Returns the program's exit code: 2 for
/// wrong usage, 3 for a file that cannot be written, 4 for a pin to a device that the target lacks.
int run(int argc, char **argv, const std::string &name, Options defaults,
        const std::function<sluice::Graph(const Options &)> &build);

} // namespace models
