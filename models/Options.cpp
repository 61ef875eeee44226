#include "Options.h"
#include "runtime/help/Arguments.h"
#include "runtime/help/HelpFormatter.h"
#include <sluice/error.h>
#include <sluice/process.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <map>

namespace models {

namespace {

/// Thrown for an option that does not fit this model: the reason, and the program's exit code.
struct Refusal {
  std::string message;
  int code;
};

/// The parsed form of NAME=DEVICE. Throws sluice::Error if the device is malformed.
struct Pin {
  std::string part, device;

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
  static const std::string function = "set_devices: ";
  std::string message = messageOf([&] { sluice::Graph("check").set_devices(text); });
  return message.starts_with(function) ? message.substr(function.size()) : message;
}

static std::string checkPin(const std::string &text) {
  bool isPin = text.find('=') != std::string::npos && text.front() != '=' && text.back() != '=';
  return isPin ? "" : "'" + text + "' is not NAME=DEVICE"; // `pin` checks the names
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

/// The words, separated by `between`, for example "torch|he".
static std::string joined(const std::vector<std::string> &words, const char *between = "|") {
  std::string text;
  for (const std::string &word : words)
    text += (text.empty() ? "" : between) + word;
  return text;
}

/// Rules of initial values, for the help.
static const std::map<std::string, std::string> kRules = {
    {"torch", "torch (PyTorch's defaults)"},
    {"notebook", "notebook (weights N(0, 0.01^2), zero biases)"},
    {"xavier", "xavier (weights U(+-sqrt(6 / (fan_in + fan_out))), zero biases)"},
    {"he", "he (convolutions N(0, 2 / fan_out))"}};

/// Adds --init if the program has a choice.
static void describeInit(CLI::App &app, Options &options) {
  if (options.inits.size() < 2)
    return;
  std::vector<std::string> rules;
  for (const std::string &init : options.inits)
    rules.push_back(kRules.at(init));
  app.add_option("--init", options.init, "Initial values of parameters: " + joined(rules, " or "))
      ->type_name(joined(options.inits))
      ->check(sluice::help::oneOf(options.inits))
      ->capture_default_str();
}

static void describeSizes(CLI::App &app, Sizes &sizes) {
  auto add = [&](const char *flag, std::int64_t &size, const char *what, const CLI::Validator &check) {
    if (size)
      app.add_option(flag, size, what)->type_name("N")->check(check)->capture_default_str();
  };
  add("--layers", sizes.layers, "Number of blocks, at most 1024", sluice::help::wholeNumber(1, 1024));
  add("--width", sizes.width, "Number of features per word or patch, a multiple of 64", CLI::Validator(checkWidth, ""));
  add("--length", sizes.length, "Number of words per row, at most the default",
      sluice::help::wholeNumber(1, sizes.length));
  add("--words", sizes.words, "Vocabulary size, from 2 to the default", sluice::help::wholeNumber(2, sizes.words));
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
      ->check(sluice::help::wholeNumber(1, 1 << 20))
      ->capture_default_str();
  if (!options.input.empty())
    app.add_option("--input", options.input, "Data type of the images; u8 is scaled by 1/255 in the graph")
        ->type_name("u8|f32")
        ->check(sluice::help::oneOf({"u8", "f32"}))
        ->capture_default_str();
  if (options.size)
    app.add_option("--size", options.size, "Height and width of the images in pixels, a multiple of 16")
        ->type_name("N")
        ->check(checkSize)
        ->capture_default_str();
  describeInit(app, options);
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
  if (options.hasParts)
    app.add_option("--pin", options.pins,
                   "Device of a part of the model, one of --devices, e.g. conv=sim:0 or conv=gpu:0 (the first "
                   "accelerator); repeatable")
        ->type_name("NAME=DEVICE")
        ->check(checkPin)
        ->take_all()
        ->allow_extra_args(false);
  app.add_option("--copies", options.copies,
                 "Policy for copies that pins require: explicit (report an error), warn, or insert (default: explicit)")
      ->type_name("explicit|warn|insert")
      ->check(sluice::help::oneOf({"explicit", "warn", "insert"}));
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

/// "cpu, sim:0 (gpu:0), sim:1 (gpu:1)"
static std::string listOf(const std::vector<sluice::Graph::DeviceInfo> &devices) {
  std::string text;
  for (const auto &[device, backend, ordinal] : devices) {
    bool isHost = device.kind() == sluice::Device::Kind::cpu;
    text += (text.empty() ? "" : ", ") + backend;
    text += isHost ? "" : ":" + std::to_string(ordinal) + " (gpu:" + std::to_string(device.index()) + ")";
  }
  return text;
}

/// The device that a pin names: as --devices spells it (sim:1), or as a graph does (gpu:1). A backend that the list lacks
/// has no device: cuda:0 is not sim:0.
static sluice::Device deviceNamed(const std::string &name, const sluice::Graph &target) {
  for (const auto &[device, backend, ordinal] : target.devices())
    if (name == backend + ":" + std::to_string(ordinal) || (name == backend && ordinal == 0))
      return device;
  sluice::Device device = sluice::cpu();
  bool isOfGraph = name.starts_with("gpu") || name.starts_with("cpu") || name.starts_with("/");
  std::string message = messageOf([&] { device = sluice::Device(isOfGraph ? name : "gpu"); });
  if (!message.empty())
    throw Refusal{message, 2};
  bool isThere = device.kind() == sluice::Device::Kind::cpu || device.index() < sluice::gpu_count(target);
  if (!isOfGraph || !isThere)
    throw Refusal{"there is no device '" + name + "'; --devices has " + listOf(target.devices()), 4};
  return device;
}

void pin(sluice::nn::Module &model, const Options &options) {
  sluice::Graph target("target");
  target.set_devices(options.devices);
  for (const std::string &text : options.pins) {
    Pin pin(text);
    auto refuse = [&](const std::string &message, int code) {
      throw Refusal{"cannot apply --pin " + text + ": " + message, code};
    };
    sluice::nn::Module *part = nullptr;
    if (std::string message = messageOf([&] { part = &model.get_submodule(pin.part); }); !message.empty())
      refuse(message, 2);
    try {
      part->pin(deviceNamed(pin.device, target));
    } catch (const Refusal &refusal) {
      refuse(refusal.message, refusal.code);
    } catch (const sluice::Error &error) {
      refuse(error.message(), 4);
    }
  }
}

/// Prints help.
static int end(const CLI::App &app, const std::string &name, const CLI::Success &success) {
  app.exit(success);
  if (std::cout.flush())
    return 0;
  std::cerr << sluice::help::errorText(name, std::string("standard output: cannot write: ") + std::strerror(errno))
            << "\n";
  return 3;
}

int run(int argc, char **argv, const std::string &name, Options options,
        const std::function<sluice::Graph(const Options &)> &build) {
  sluice::prepare_process();
  options.output = name + ".mlir";
  CLI::App app{"Writes the graph of " + name + " for `sluice compile`.", name};
  sluice::help::setHelp(app);
  describe(app, options);
  auto fail = [&](const std::string &message, int code) {
    std::cerr << sluice::help::errorText(name, message) << "\n";
    return code;
  };
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success &success) {
    return end(app, name, success);
  } catch (const CLI::ParseError &error) {
    return fail(sluice::help::argumentError(app, error, {argv + std::min(argc, 1), argv + argc}), 2);
  }
  try {
    sluice::Graph graph = build(options);
    graph.save(options.output);
    std::cerr << name << ": " << countParameters(graph) << " parameters, up to " << options.batch << " rows, in "
              << options.output << "\n";
    return 0;
  } catch (const Refusal &refusal) {
    return fail(refusal.message, refusal.code);
  } catch (const sluice::Error &error) {
    bool isOfFile = error.code() == 3; // the line of `save` explains nothing
    return fail(isOfFile ? error.message() : error.what(), error.code());
  }
}

} // namespace models
