#include "Options.h"
#include <sluice/error.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <iostream>

namespace models {

/// CLI::Range lets NaN through.
static std::string checkRate(const std::string &text) {
  double rate = std::strtod(text.c_str(), nullptr);
  return rate >= 0 && rate <= 1e6 ? "" : "a learning rate is between 0 and 1e6, not " + text;
}

static void describe(CLI::App &app, Options &options) {
  app.add_option("--batch", options.batch, "the most rows of one call")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  app.add_option("--input", options.input, "dtype of the images: u8 (scaled by 1/255 in the graph) or f32")
      ->check(CLI::IsMember({"u8", "f32"}))
      ->capture_default_str();
  app.add_option("--init", options.init,
                 "how parameters begin: torch (PyTorch's defaults) or notebook (weights N(0, 0.01^2), zero biases)")
      ->check(CLI::IsMember({"torch", "notebook"}))
      ->capture_default_str();
  app.add_option("--lr", options.lr, "learning rate, settable again when the program runs")
      ->check(checkRate)
      ->capture_default_str();
  app.add_option("-o,--output", options.output, "file to write (- for the standard output)")->capture_default_str();
}

static std::int64_t countParameters(const sluice::Graph &graph) {
  std::int64_t count = 0;
  for (const sluice::Graph::State &state : graph.states())
    if (state.kind == "parameter")
      count += state.elements;
  return count;
}

int run(int argc, char **argv, const std::string &name, Options options,
        const std::function<sluice::Graph(const Options &)> &build) {
  options.output = name + ".mlir";
  CLI::App app{"Writes " + name + " as a graph for `sluice compile`."};
  describe(app, options);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError &error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  try {
    sluice::Graph graph = build(options);
    graph.save(options.output);
    std::cerr << name << ": " << countParameters(graph) << " parameters, up to " << options.batch << " rows, in "
              << options.output << "\n";
    return 0;
  } catch (const sluice::Error &error) {
    std::cerr << error.what() << "\n";
    return 3;
  }
}

} // namespace models
