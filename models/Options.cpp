#include "Options.h"
#include "runtime/help/HelpFormatter.h"
#include <sluice/error.h>
#include <sluice/process.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <iostream>

namespace models {

namespace {

/// Thrown for an option that does not fit this model: the reason, and the program's exit code.
struct Refusal {
  std::string message;
  int code;
};

/// The parsed form of NAME=DEVICE. Throws sluice::Error if the device is malformed.
struct Pin {
  std::string part;
  sluice::Device device;

  explicit Pin(const std::string &text)
      : part(text.substr(0, text.find('='))), device(text.substr(std::min(text.find('='), text.size() - 1) + 1)) {}
};

} // namespace

// The following checks return an error text; empty if the value is valid.

/// Checks a learning rate. CLI::Range would accept NaN.
static std::string checkRate(const std::string &text) {
  double rate = std::strtod(text.c_str(), nullptr);
  return rate >= 0 && rate <= 1e6 ? "" : "a learning rate is between 0 and 1e6, not " + text;
}

/// The message of the error that `use` throws; empty if it does not throw.
static std::string messageOf(const std::function<void()> &use) {
  try {
    use();
  } catch (const sluice::Error &error) {
    return error.message();
  }
  return {};
}

static std::string checkDevices(const std::string &text) {
  return messageOf([&] { sluice::Graph("check").set_devices(text); });
}

static std::string checkPin(const std::string &text) {
  if (text.find('=') == std::string::npos || text.front() == '=')
    return "'" + text + "' is not NAME=DEVICE";
  return messageOf([&] { Pin pin(text); });
}

static std::string checkSize(const std::string &text) {
  long size = std::strtol(text.c_str(), nullptr, 10);
  return size > 0 && size <= 4096 && size % 16 == 0 ? "" : "a size is a multiple of 16 up to 4096, not " + text;
}

static std::string checkWidth(const std::string &text) {
  constexpr long kHead = 64, kWidest = 1 << 14;
  long width = std::strtol(text.c_str(), nullptr, 10);
  return width > 0 && width <= kWidest && width % kHead == 0 ? ""
                                                             : "a width is a multiple of 64 up to 16384, not " + text;
}

static std::string checkShare(const std::string &text) {
  double share = std::strtod(text.c_str(), nullptr);
  return share >= 0 && share < 1 ? "" : "a share of elements is at least 0 and less than 1, not " + text;
}

/// A check that adds no text to the option in the help.
static CLI::Validator silent(CLI::Validator check) { return check.description(""); }

/// The words, separated by '|', for example "torch|he".
static std::string joined(const std::vector<std::string> &words) {
  std::string text;
  for (const std::string &word : words)
    text += (text.empty() ? "" : "|") + word;
  return text;
}

static void describeSizes(CLI::App &app, Sizes &sizes) {
  auto add = [&](const char *flag, std::int64_t &size, const char *what, const CLI::Validator &check) {
    if (size)
      app.add_option(flag, size, what)->type_name("N")->check(silent(check))->capture_default_str();
  };
  add("--layers", sizes.layers, "Number of blocks, at most 1024", CLI::Range(1, 1024));
  add("--width", sizes.width, "Number of features per word or patch, a multiple of 64", CLI::Validator(checkWidth, ""));
  add("--length", sizes.length, "Number of words per row, at most the default",
      CLI::Range(std::int64_t(1), sizes.length));
  add("--words", sizes.words, "Vocabulary size, from 2 to the default", CLI::Range(std::int64_t(2), sizes.words));
  if (sizes.dropout)
    app.add_option("--dropout", *sizes.dropout, "Probability that dropout zeroes an element in training")
        ->type_name("P")
        ->check(CLI::Validator(checkShare, ""))
        ->capture_default_str();
}

static void describeModel(CLI::App &app, Options &options) {
  sluice::help::beginGroup(app, "Model");
  app.add_option("--batch", options.batch, "Maximum number of rows of one call")
      ->type_name("N")
      ->check(silent(CLI::Range(1, 1 << 20)))
      ->capture_default_str();
  app.add_option("--input", options.input, "Data type of the images; u8 is scaled by 1/255 in the graph")
      ->type_name("u8|f32")
      ->check(silent(CLI::IsMember({"u8", "f32"})))
      ->capture_default_str();
  if (options.size)
    app.add_option("--size", options.size, "Height and width of the images in pixels, a multiple of 16")
        ->type_name("N")
        ->check(checkSize)
        ->capture_default_str();
  app.add_option(
         "--init", options.init,
         "Initial values of parameters: torch (PyTorch's defaults), notebook (weights N(0, 0.01^2), zero biases), "
         "xavier (weights U(+-sqrt(6 / (fan_in + fan_out))), zero biases) or he (convolutions N(0, 2 / fan_out))")
      ->type_name(joined(options.inits))
      ->check(silent(CLI::IsMember(options.inits)))
      ->capture_default_str();
  app.add_option("--lr", options.lr, "Learning rate; --set lr=X of the compiled program overrides it")
      ->type_name("X")
      ->check(checkRate)
      ->capture_default_str();
  describeSizes(app, options.sizes);
}

static void describeDevices(CLI::App &app, Options &options) {
  sluice::help::beginGroup(app, "Devices");
  app.add_option("--devices", options.devices, "Devices to run on, e.g. cpu,sim:0; the first runs all unpinned ops")
      ->type_name("LIST")
      ->check(checkDevices)
      ->capture_default_str();
  app.add_option("--pin", options.pins, "Device of a part of the model, e.g. conv=gpu:0; repeatable")
      ->type_name("NAME=DEVICE")
      ->check(checkPin)
      ->take_all()
      ->allow_extra_args(false);
  app.add_option("--copies", options.copies,
                 "Policy for copies that pins require: explicit (report an error), warn, or insert (default: explicit)")
      ->type_name("explicit|warn|insert")
      ->check(silent(CLI::IsMember({"explicit", "warn", "insert"})));
}

static void describe(CLI::App &app, Options &options) {
  describeModel(app, options);
  describeDevices(app, options);
  sluice::help::beginGroup(app, sluice::help::kCommon);
  app.add_option("-o,--output", options.output, "File to write; - writes standard output")
      ->type_name("FILE")
      ->capture_default_str();
}

static std::int64_t countParameters(const sluice::Graph &graph) {
  std::int64_t count = 0;
  for (const sluice::Graph::State &state : graph.states())
    if (state.kind == "parameter")
      count += state.elements;
  return count;
}

sluice::Graph graph(const std::string &name, const Options &options, std::source_location where) {
  sluice::Graph graph(name, where);
  graph.set_capacity(options.batch);
  graph.set_devices(options.devices);
  if (!options.copies.empty())
    graph.set_copies(options.copies);
  return graph;
}

void pin(sluice::nn::Module &model, const Options &options) {
  for (const std::string &text : options.pins) {
    Pin pin(text);
    sluice::nn::Module *part = nullptr;
    if (std::string message = messageOf([&] { part = &model.get_submodule(pin.part); }); !message.empty())
      throw Refusal{"--pin " + text + ": " + message, 2};
    if (std::string message = messageOf([&] { part->pin(pin.device); }); !message.empty())
      throw Refusal{"--pin " + text + ": " + message, 4};
  }
}

/// Prints the help or the error in the arguments, and returns the exit code.
static int end(const CLI::App &app, const CLI::ParseError &error) {
  int code = app.exit(error) == 0 ? 0 : 2;
  if (std::cout.flush())
    return code;
  std::cerr << "standard output: cannot write: " << std::strerror(errno) << "\n";
  return 3;
}

int run(int argc, char **argv, const std::string &name, Options options,
        const std::function<sluice::Graph(const Options &)> &build) {
  sluice::prepare_process();
  options.output = name + ".mlir";
  CLI::App app{"Writes the graph of " + name + " for `sluice compile`."};
  sluice::help::setHelp(app);
  describe(app, options);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError &error) {
    return end(app, error);
  }
  try {
    sluice::Graph graph = build(options);
    graph.save(options.output);
    std::cerr << name << ": " << countParameters(graph) << " parameters, up to " << options.batch << " rows, in "
              << options.output << "\n";
    return 0;
  } catch (const Refusal &refusal) {
    std::cerr << name << ": " << refusal.message << "\n";
    return refusal.code;
  } catch (const sluice::Error &error) {
    std::cerr << error.what() << "\n";
    return 3;
  }
}

} // namespace models
