// The command line: CLI11 parses the flags; this file parses numbers and suggests corrections, so that every message
// contains the flag and the value.
#include "runtime/base/Status.h"
#include "runtime/base/Text.h"
#include "runtime/help/Arguments.h"
#include "runtime/help/HelpFormatter.h"
#include "runtime/runner/report/Terminal.h"
#include "runtime/runner/session/Options.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <sstream>

namespace sluice::runtime {

static int64_t parseInteger(const std::string &flag, const std::string &text, int64_t low, int64_t high) {
  char *end = nullptr;
  errno = 0;
  long long value = std::strtoll(text.c_str(), &end, 10);
  if (text.empty() || *end != '\0')
    failUsage(concat(flag, ": ", quote(text), " is not a whole number"));
  if (errno == ERANGE || value < low || value > high)
    failUsage(concat(flag, ": ", text, " is outside [", low, ", ", high, "]"));
  return value;
}

static uint64_t parseSeed(const std::string &text) {
  char *end = nullptr;
  errno = 0;
  unsigned long long value = std::strtoull(text.c_str(), &end, 10);
  if (text.empty() || *end != '\0' || text[0] == '-' || text[0] == '+' || errno == ERANGE)
    failUsage(concat("--seed: ", quote(text), " is not a whole number from 0 to ", UINT64_MAX));
  return value;
}

static double parseNumber(const std::string &flag, const std::string &text, double low, double high) {
  char *end = nullptr;
  double value = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != '\0' || !(value >= low && value <= high))
    failUsage(concat(flag, ": ", quote(text), " is not a number from ", fixedText(low, 0), " to ", fixedText(high, 0)));
  return value;
}

static double parseSeconds(const std::string &text) {
  char *end = nullptr;
  double value = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != '\0' || !(value >= 0 && value <= 86400))
    failUsage(concat("--seconds: ", quote(text), " is not a number from 0 to 86400"));
  return value;
}

/// "60s" or "60".
static double parseDeadline(const std::string &text) {
  char *end = nullptr;
  double value = std::strtod(text.c_str(), &end);
  bool hasUnit = end != text.c_str() && *end == 's';
  if (text.empty() || end == text.c_str() || *(end + hasUnit) != '\0' || !(value > 0 && value <= 86400))
    failUsage(concat("--deadline: ", quote(text), " is not a time up to 86400 s, such as 60s"));
  return value;
}

static NamedText parseNamed(const std::string &flag, const std::string &text) {
  size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0)
    failUsage(concat(flag, ": expected name=value, found ", quote(text)));
  return {text.substr(0, equals), text.substr(equals + 1)};
}

// Names of inputs and outputs may contain '='. The model decides where they end.

static std::string checkColumn(const std::string &flag, const std::string &text) {
  if (text.find('=', 1) == std::string::npos)
    failUsage(concat(flag, ": expected input=column, found ", quote(text)));
  return text;
}

static std::string checkNamedFile(const std::string &flag, const std::string &text) {
  size_t at = text.find("=@", 1);
  if (at == std::string::npos || at + 2 == text.size())
    failUsage(concat(flag, ": expected ", splitNamed(text, {}, "=").name, "=@file.npy, found ", quote(text)));
  return text;
}

namespace {

/// The verbs and flags, bound to an Options.
class CommandLine {
public:
  CommandLine()
      : app_("A model compiled by Sluice: trains, evaluates, predicts, generates text, and measures itself.") {
    help::setHelp(app_);
    app_.require_subcommand(1);
    addTrain();
    addEval();
    addPredict();
    addGenerate();
    addBench();
    addInfo();
  }

  std::optional<Options> parse(int argc, const char *const *argv) {
    try {
      app_.parse(argc, argv);
    } catch (const CLI::Success &success) {
      std::ostringstream text;
      app_.exit(success, text, text);
      printText(text.str());
      return std::nullopt;
    } catch (const CLI::ParseError &error) {
      failUsage(help::argumentError(app_, error, {argv + std::min(argc, 1), argv + argc}));
    }
    return std::move(options_);
  }

private:
  CLI::App *addVerb(Verb verb, const char *name, const char *help) {
    CLI::App *command = app_.add_subcommand(name, help);
    command->callback([this, verb] { options_.verb = verb; });
    return command;
  }

  /// Adds the options of devices, which every verb has.
  void addDevices(CLI::App *command) {
    help::beginGroup(*command, "Devices");
    command
        ->add_option("--device", options_.device,
                     "Device or backend that must be used, e.g. cuda or cuda:0; exit with code 4 if it is absent")
        ->type_name("NAME");
    command
        ->add_option("--devices", options_.devices,
                     "Devices to use instead of the compiled ones, of the same backends: sim:1,sim:0 or sim:0-3")
        ->type_name("LIST");
    addInteger(command, "--threads", options_.threads, 1, 1024, "Number of host threads (default: one per core)");
  }

  /// Adds the other options that every verb has.
  void addCommon(CLI::App *command) {
    help::beginGroup(*command, help::kCommon);
    command->add_flag("--json", options_.json, "Print the result as JSON");
    command->add_flag("-q,--quiet", options_.quiet, "Print no progress on the terminal");
  }

  /// Adds the options of the verbs that run an entry point, with those of `addDevices` and `addCommon`. Call last: they
  /// are the last groups of the help.
  void addRunning(CLI::App *command) {
    addDevices(command);
    command
        ->add_option_function<std::string>(
            "--sim", [this](const std::string &text) { options_.backends.push_back({"sim", text}); },
            "Settings of the simulated accelerators, e.g. seed=7,link=12GB/s,latency=5us")
        ->type_name("SETTINGS");
    addNamed(command, "--backend", options_.backends, parseNamed, "Settings of a backend, e.g. sim=seed=7; repeatable")
        ->type_name("NAME=SETTINGS");
    addProcesses(command);
    help::beginGroup(*command, "Debugging");
    command->add_flag(
        "--no-graphs", [this](int64_t) { options_.replays = false; },
        "Launch every kernel separately instead of replaying captured graphs of a step");
    command->add_flag(
        "--report", options_.report,
        "Print predicted and counted copies, predicted and used memory, and the number of replayed graphs");
    addOutputFile(command, "--trace", options_.trace,
                  "Write a timeline of kernels, copies and collectives for chrome://tracing or Perfetto")
        ->type_name("FILE.json");
    addCommon(command);
  }

  void addHyperparameters(CLI::App *command) {
    addNamed(command, "--set", options_.settings, parseNamed, "Set a hyperparameter, e.g. lr=0.1; repeatable")
        ->type_name("NAME=VALUE");
  }

  /// Options for one process per replica, started by a launcher.
  void addProcesses(CLI::App *command) {
    help::beginGroup(*command, "Replicas and processes");
    addRank(command, "--rank", options_.launch.rank, "Rank of this process (default: from the launcher)");
    addRank(command, "--world-size", options_.launch.size, "Number of processes (default: from the launcher)");
    addRank(command, "--local-rank", options_.launch.localRank,
            "Rank among the processes of this machine; selects its devices (default: --rank)");
    command
        ->add_option("--address", options_.launch.address,
                     "Address of the process of rank 0 (default: from the launcher)")
        ->type_name("HOST:PORT");
    command
        ->add_option("--transport", options_.transport,
                     "Transport between processes: tcp or openmpi (default: openmpi under its launcher, else tcp)")
        ->type_name("NAME");
    command
        ->add_option_function<std::string>(
            "--deadline", [this](const std::string &text) { options_.deadline = parseDeadline(text); },
            "Longest wait for another replica or process, also while it writes a checkpoint (default: 60s)")
        ->type_name("SECONDS");
  }

  static void addRank(CLI::App *command, const std::string &flag, std::optional<int> &value, const char *help) {
    auto set = [&value, flag](const std::string &text) {
      value = static_cast<int>(parseInteger(flag, text, 0, INT32_MAX));
    };
    command->add_option_function<std::string>(flag, set, help)->type_name("N");
  }

  void addTrain() {
    CLI::App *train = addVerb(Verb::train, "train", "Train the model on rows of data");
    help::beginGroup(*train, "Data");
    addData(train);
    addFile(train, "--test-data", options_.testData, "Data to evaluate on (default: the test part of --data)");
    addBatch(train);
    train->add_flag("--drop-last", options_.dropLast, "Drop the last batch of an epoch if it has fewer rows");
    train->add_flag(
        "--no-shuffle", options_.keepsOrder,
        "Keep the order of the rows (default: shuffle if the model accepts batches of any size, else as the "
        "model specifies)");
    train->add_flag("--augment", options_.dataOptions.augments, "Crop images at random and mirror them at random");
    help::beginGroup(*train, "Training");
    addInteger(train, "--epochs", options_.epochs, 0, 1'000'000,
               "Number of epochs (default: 10; with --steps, as many as the steps need)");
    addInteger(train, "--steps", options_.steps, 1, INT64_C(1) << 40,
               "Number of steps; training may end within an epoch (default: all steps of the epochs)");
    addHyperparameters(train);
    addSeed(train);
    addWeights(train, "Initial weights (.safetensors) (default: random, from --seed)");
    train->add_flag("--allow-nonfinite", options_.allowsNonFinite,
                    "Exit with code 0 even if the loss becomes infinite or NaN (default: exit with code 1)");
    help::beginGroup(*train, "Checkpoints and results");
    addFile(train, "--checkpoint", options_.checkpointFolder, "Folder for checkpoints; the newest 3 are kept", "DIR");
    addInteger(train, "--checkpoint-every", options_.checkpointEvery, 1, INT64_C(1) << 40,
               "Number of steps between checkpoints (default: 100)");
    train->add_flag("--resume", options_.resume, "Continue from the newest valid checkpoint, if there is one");
    addOutputFile(train, "--save", options_.save, "Write the weights at the end (.safetensors)");
    addOutputFile(train, "--save-averages", options_.saveAverages,
                  "Write the averaged weights that the optimizer keeps at the end (.safetensors)");
    addOutputFile(train, "--log", options_.log, "Write one JSON object per epoch");
    addRunning(train);
    train->footer("Examples:\n  train --epochs 20 --set lr=0.1 --checkpoint run1 --resume --save weights.safetensors\n"
                  "  train --data train.npz --test-data test.npz --column image=x");
  }

  void addEval() {
    CLI::App *eval = addVerb(Verb::eval, "eval", "Print loss and metrics on the test data");
    help::beginGroup(*eval, "Data");
    addData(eval);
    addBatch(eval);
    addWeights(eval);
    addHyperparameters(eval);
    addRunning(eval);
  }

  void addPredict() {
    CLI::App *predict = addVerb(Verb::predict, "predict", "Run the model on any number of rows");
    help::beginGroup(*predict, "Prediction");
    addNamed(predict, "--input", options_.inputs, checkNamedFile,
             "File of an input (.npy), once per input; NAME=@- reads standard input")
        ->type_name("NAME=@FILE");
    addNamed(predict, "--output", options_.outputs, checkNamedFile,
             "File for an output (.npy); NAME=@- writes standard output (default: print the values of all outputs)")
        ->type_name("NAME=@FILE");
    addWeights(predict);
    addEntry(predict, "Entry point to run (default: predict)");
    addHyperparameters(predict);
    addSeed(predict);
    addRunning(predict);
    predict->footer("Example:\n  predict --weights w.safetensors --input image=@x.npy --output logits=@y.npy");
  }

  void addGenerate() {
    GenerateOptions &into = options_.generate;
    CLI::App *generate = addVerb(Verb::generate, "generate", "Generate text (language models only)");
    help::beginGroup(*generate, "Text");
    CLI::Option *prompt =
        generate->add_option("--prompt", into.prompt, "Text to continue; - reads standard input")->type_name("TEXT");
    generate
        ->add_option("--prompt-tokens", into.promptTokens,
                     "Token numbers to continue, e.g. 5,17,3; the result is printed as token numbers")
        ->type_name("N,...")
        ->excludes(prompt);
    addTokenizer(generate);
    addInteger(generate, "--tokens", into.tokens, 1, INT64_C(1) << 40, "Number of tokens to generate (default: 64)");
    generate->add_flag("--slide", into.slides,
                       "Keep the last half of the context when it is full and continue (default: fail)");
    help::beginGroup(*generate, "Sampling");
    addNumber(generate, "--temperature", into.sampling.temperature, 1000,
              "Divisor of the logits; 0 selects the most likely token (default: 1)");
    addInteger(generate, "--top-k", into.sampling.topK, 0, INT32_MAX,
               "Sample from the N most likely tokens; 0 samples from all (default: 0)");
    addNumber(generate, "--top-p", into.sampling.topP, 1,
              "Sample from the smallest set of tokens with this total probability (default: 1)");
    addSeed(generate, "Seed of sampling (default: 0)");
    addWeights(generate);
    addHyperparameters(generate);
    addRunning(generate);
    generate->footer(
        "Examples:\n  generate --weights w.safetensors --prompt 'In the beginning' --tokens 200 --top-k 40\n"
        "  generate --weights w.safetensors --prompt - --tokenizer gpt2 --temperature 0 < text");
  }

  void addBench() {
    CLI::App *bench = addVerb(Verb::bench, "bench", "Measure the time of an entry point");
    help::beginGroup(*bench, "Measurement");
    addEntry(bench, "Entry point to measure (default: train_step)");
    bench->add_flag("--kernels", options_.kernels,
                    "Measure every kernel and compare it with the peak rates of the machine");
    bench->add_flag("--outputs", options_.benchesOutputs,
                    "Measure the time until calls return and the cost of reading their scalar outputs");
    bench
        ->add_option_function<std::string>(
            "--seconds", [this](const std::string &text) { options_.seconds = parseSeconds(text); },
            "Minimum measuring time (default: 3)")
        ->type_name("SECONDS");
    addBatch(bench);
    addHyperparameters(bench);
    addSeed(bench);
    addRunning(bench);
  }

  void addInfo() {
    CLI::App *info =
        addVerb(Verb::info, "info", "Print entry points, shapes, parameters, devices, memory plan and build");
    addDevices(info);
    addCommon(info);
  }

  void addData(CLI::App *command) {
    addFile(command, "--data", options_.data,
            "Folder or file of images, arrays, tokens or text, or the name of a data set beside the model's, e.g. "
            "mnist-10k (default: $SLUICE_DATA, else the data that the model names)",
            "PATH");
    addTokenizer(command);
    addNamed(command, "--column", options_.columns, checkColumn,
             "Fill an input from a column with a different name; repeatable")
        ->type_name("INPUT=COLUMN");
  }
  void addTokenizer(CLI::App *command) {
    addFile(command, "--tokenizer", options_.dataOptions.tokenizer,
            "Folder with vocab.json and merges.txt of GPT-2, for text (default: every byte is a token)", "DIR");
  }
  void addBatch(CLI::App *command) {
    addInteger(command, "--batch", options_.batch, 1, INT32_MAX,
               "Number of rows per step, over all replicas (default: the capacity of the model)");
  }
  void addEntry(CLI::App *command, const char *help) {
    command->add_option("--entry", options_.entry, help)->type_name("ENTRY");
  }
  void addWeights(CLI::App *command,
                  const char *help = "Weights (.safetensors); required unless the model has initial values") {
    addFile(command, "--weights", options_.weights, help);
  }
  void addSeed(CLI::App *command, const char *help = "Seed of initial weights and shuffling (default: 0)") {
    command
        ->add_option_function<std::string>(
            "--seed", [this](const std::string &text) { options_.seed = parseSeed(text); }, help)
        ->type_name("SEED");
  }

  /// Adds an option for the path of a file or a folder.
  static CLI::Option *addFile(CLI::App *command, const std::string &flag, std::string &path, const char *help,
                              const char *type = "FILE") {
    auto set = [&path, flag](const std::string &text) {
      if (text.empty())
        failUsage(concat(flag, ": the name of the file is empty"));
      path = text;
    };
    return command->add_option_function<std::string>(flag, set, help)->type_name(type);
  }
  /// The same for a file that is written as a whole. Standard output cannot be replaced, so "-" is an error.
  static CLI::Option *addOutputFile(CLI::App *command, const std::string &flag, std::string &path, const char *help) {
    auto check = [flag](const std::string &text) {
      if (text == "-")
        failUsage(concat(flag, ": '-' is not accepted; name a file, such as ./- or /dev/stdout"));
      return std::string();
    };
    return addFile(command, flag, path, help)->check(CLI::Validator(check, ""));
  }

  template <typename Int>
  static void addInteger(CLI::App *command, const std::string &flag, Int &value, int64_t low, int64_t high,
                         const char *help) {
    auto set = [&value, flag, low, high](const std::string &text) {
      value = static_cast<Int>(parseInteger(flag, text, low, high));
    };
    command->add_option_function<std::string>(flag, set, help)->type_name("N");
  }

  static void addNumber(CLI::App *command, const std::string &flag, double &value, double high, const char *help) {
    auto set = [&value, flag, high](const std::string &text) { value = parseNumber(flag, text, 0, high); };
    command->add_option_function<std::string>(flag, set, help)->type_name("X");
  }

  template <typename Item>
  static CLI::Option *addNamed(CLI::App *command, const std::string &flag, std::vector<Item> &list,
                               Item (*parse)(const std::string &, const std::string &), const char *help) {
    auto add = [&list, flag, parse](const std::string &text) { list.push_back(parse(flag, text)); };
    return command->add_option_function<std::string>(flag, add, help)
        ->multi_option_policy(CLI::MultiOptionPolicy::Throw)
        ->trigger_on_parse()
        ->take_all();
  }

  CLI::App app_;
  Options options_;
};

} // namespace

std::optional<Options> parseCommandLine(int argc, const char *const *argv) { return CommandLine().parse(argc, argv); }

} // namespace sluice::runtime
