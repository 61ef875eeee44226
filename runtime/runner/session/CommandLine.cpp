// The command line: flags by CLI11, numbers and suggestions by us, so that every message names the flag and the value.
#include "runtime/base/Status.h"
#include "runtime/base/Text.h"
#include "runtime/runner/report/Terminal.h"
#include "runtime/runner/session/Options.h"

#include <CLI/CLI.hpp>

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
    failUsage(concat("--deadline: ", quote(text), " is no time such as 60s, of at most a day"));
  return value;
}

static NamedText parseNamed(const std::string &flag, const std::string &text) {
  size_t equals = text.find('=');
  bool isFile = flag == "--input" || flag == "--output";
  const char *form = isFile ? "name=@file.npy" : flag == "--column" ? "input=column" : "name=value";
  if (equals == std::string::npos || equals == 0)
    failUsage(concat(flag, ": expected ", form, ", found ", quote(text)));
  return {text.substr(0, equals), text.substr(equals + 1)};
}

static NamedText parseNamedFile(const std::string &flag, const std::string &text) {
  NamedText named = parseNamed(flag, text);
  if (named.text.size() < 2 || named.text[0] != '@')
    failUsage(concat(flag, ": expected ", named.name, "=@file.npy, found ", quote(text)));
  named.text.erase(0, 1);
  return named;
}

namespace {

/// The verbs and flags, bound to an Options.
class CommandLine {
public:
  CommandLine() : app_("A model compiled by Sluice.") {
    app_.require_subcommand(1);
    app_.get_formatter()->column_width(38);
    addTrain();
    addEval();
    addPredict();
    addGenerate();
    addBench();
    addVerb(Verb::info, "info", "Print entry points, shapes, parameters, devices, memory plan and build");
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
      failUsage(concat(error.what(), suggestion(argc, argv), " (--help lists what there is)"));
    }
    return std::move(options_);
  }

private:
  CLI::App *addVerb(Verb verb, const char *name, const char *help) {
    CLI::App *command = app_.add_subcommand(name, help);
    command->callback([this, verb] { options_.verb = verb; });
    command->add_flag("--json", options_.json, "Print JSON");
    command->add_flag("-q,--quiet", options_.quiet, "No progress on the terminal");
    addInteger(command, "--threads", options_.threads, 1, 1024, "Threads to use (default: all cores)");
    command->add_option("--device", options_.device, "Device that must be used; an error if it is absent");
    command
        ->add_option("--devices", options_.devices,
                     "Devices to use instead of those compiled for, of the same backends: sim:1,sim:0; or sim:0-3")
        ->type_name("LIST");
    return command;
  }

  /// What the verbs that run something have in common.
  CLI::App *addRunningVerb(Verb verb, const char *name, const char *help) {
    CLI::App *command = addVerb(verb, name, help);
    command
        ->add_option_function<std::string>(
            "--sim", [this](const std::string &text) { options_.backends.push_back({"sim", text}); },
            "Settings of virtual accelerators, such as seed=7,link=12GB/s,latency=5us")
        ->type_name("SETTINGS");
    addNamed(command, "--backend", options_.backends, parseNamed, "name=settings: the same for any backend");
    command->add_flag(
        "--no-graphs", [this](int64_t) { options_.replays = false; },
        "Give accelerators each kernel by itself rather than capture the kernels of a step and replay them");
    command->add_flag("--report", options_.report,
                      "Print the copies and the memory, predicted beside counted, and what was replayed");
    addProcesses(command);
    addOutputFile(command, "--trace", options_.trace,
                  "Write when each piece of work ran here, for chrome://tracing or Perfetto")
        ->type_name("FILE.json");
    addNamed(command, "--set", options_.settings, parseNamed, "name=value: set a hyperparameter, such as lr=0.1");
    return command;
  }

  /// One process a replica, as a launcher starts them.
  void addProcesses(CLI::App *command) {
    addRank(command, "--rank", options_.launch.rank,
            "Which of several processes this is; its launcher's, unless given");
    addRank(command, "--world-size", options_.launch.size, "How many processes there are");
    addRank(command, "--local-rank", options_.launch.localRank,
            "Which of those of this machine it is, and so whose devices it has (default: --rank)");
    command->add_option("--address", options_.launch.address, "Where the processes find the first one")
        ->type_name("HOST:PORT");
    command
        ->add_option(
            "--transport", options_.transport,
            "What carries bytes between processes: tcp or openmpi (default: openmpi where its launcher started "
            "them, else tcp)")
        ->type_name("NAME");
    command
        ->add_option_function<std::string>(
            "--deadline", [this](const std::string &text) { options_.deadline = parseDeadline(text); },
            "How long processes, or replicas in one, wait for each other, while one writes a checkpoint, too "
            "(default: 60s)")
        ->type_name("SECONDS");
  }

  static void addRank(CLI::App *command, const std::string &flag, std::optional<int> &value, const char *help) {
    auto set = [&value, flag](const std::string &text) {
      value = static_cast<int>(parseInteger(flag, text, 0, INT32_MAX));
    };
    command->add_option_function<std::string>(flag, set, help)->type_name("N");
  }

  void addTrain() {
    CLI::App *train = addRunningVerb(Verb::train, "train", "Train on rows of data");
    addData(train);
    addFile(train, "--test-data", options_.testData, "Data to evaluate on (default: the test part of --data)");
    addBatch(train);
    addInteger(train, "--epochs", options_.epochs, 0, 1'000'000, "Epochs (default: 10, or as many as --steps takes)");
    addInteger(train, "--steps", options_.steps, 1, INT64_C(1) << 40,
               "Steps to end after, within an epoch, too (default: those of the epochs)");
    addSeed(train);
    train->add_flag("--drop-last", options_.dropLast,
                    "Leave out the last batch of an epoch if it has fewer rows than the others");
    train->add_flag("--no-shuffle", options_.keepsOrder,
                    "Train on the rows in the order of the data (default: as the model says; shuffled if its calls may "
                    "have any number of rows)");
    train->add_flag("--augment", options_.dataOptions.augments, "Train on random parts of images, mirrored or not");
    addWeights(train, "Start from these weights (.safetensors)");
    addFile(train, "--checkpoint", options_.checkpointFolder, "Folder for checkpoints; the newest 3 are kept");
    addInteger(train, "--checkpoint-every", options_.checkpointEvery, 1, INT64_C(1) << 40,
               "Steps between checkpoints (default: 100)");
    train->add_flag("--resume", options_.resume, "Go on from the newest valid checkpoint, if there is one");
    addOutputFile(train, "--save", options_.save, "Write the weights here at the end (.safetensors)");
    addOutputFile(train, "--save-averages", options_.saveAverages,
                  "The same with the averages of weights that the model's optimizer keeps");
    addOutputFile(train, "--log", options_.log, "Write one JSON object per epoch here");
    train->add_flag("--allow-nonfinite", options_.allowsNonFinite,
                    "Exit with code 0 even if the loss became infinite or NaN (default: code 1)");
    train->footer("Examples:\n  train --epochs 20 --set lr=0.1 --checkpoint run1 --resume --save weights.safetensors\n"
                  "  train --data train.npz --test-data test.npz --column image=x");
  }

  void addEval() {
    CLI::App *eval = addRunningVerb(Verb::eval, "eval", "Loss and metrics on the test data");
    addData(eval);
    addBatch(eval);
    addWeights(eval);
  }

  void addPredict() {
    CLI::App *predict = addRunningVerb(Verb::predict, "predict", "Run the model on any number of rows");
    addWeights(predict);
    addNamed(predict, "--input", options_.inputs, parseNamedFile,
             "name=@x.npy, once for each input; name=@- reads standard input");
    addNamed(predict, "--output", options_.outputs, parseNamedFile,
             "name=@y.npy, or name=@- for standard output (default: print the values of all outputs)");
    predict->add_option("--entry", options_.entry, "Entry point (default: predict)");
    addSeed(predict);
    predict->footer("Example:\n  predict --weights w.safetensors --input image=@x.npy --output logits=@y.npy");
  }

  void addGenerate() {
    GenerateOptions &into = options_.generate;
    CLI::App *generate =
        addRunningVerb(Verb::generate, "generate", "Go on with a text, if the model is one of language");
    addWeights(generate);
    CLI::Option *prompt = generate->add_option("--prompt", into.prompt, "The text to go on with; -: standard input");
    generate->add_option("--prompt-tokens", into.promptTokens, "Its tokens, 5,17,3, instead; then tokens are printed")
        ->excludes(prompt);
    addTokenizer(generate);
    addInteger(generate, "--tokens", into.tokens, 1, INT64_C(1) << 40, "Tokens to add (default: 64)");
    addNumber(generate, "--temperature", into.sampling.temperature, 1000,
              "What scores are divided by; 0 takes the best token (default: 1)");
    addInteger(generate, "--top-k", into.sampling.topK, 0, INT32_MAX,
               "Draw from the N best tokens; 0 draws from all (default: 0)");
    addNumber(generate, "--top-p", into.sampling.topP, 1,
              "Draw from the fewest of the best tokens with this probability together (default: 1)");
    addSeed(generate, "Seed of what is drawn (default: 0)");
    generate->add_flag("--slide", into.slides,
                       "At the end of the model's context go on behind the last half of it, rather than refuse");
    generate->footer(
        "Examples:\n  generate --weights w.safetensors --prompt 'In the beginning' --tokens 200 --top-k 40\n"
        "  generate --weights w.safetensors --prompt - --tokenizer gpt2 --temperature 0 < text");
  }

  void addBench() {
    CLI::App *bench = addRunningVerb(Verb::bench, "bench", "Measure an entry point");
    bench->add_option("--entry", options_.entry, "Entry point (default: train_step)");
    bench->add_flag("--kernels", options_.kernels, "Measure each kernel beside the machine's peak");
    bench->add_flag("--outputs", options_.benchesOutputs,
                    "Measure when calls return, and what reading each one's scalars costs");
    bench
        ->add_option_function<std::string>(
            "--seconds", [this](const std::string &text) { options_.seconds = parseSeconds(text); },
            "Least time to measure (default: 3)")
        ->type_name("SECONDS");
    addBatch(bench);
    addSeed(bench);
  }

  void addData(CLI::App *command) {
    addFile(command, "--data", options_.data,
            "Folder or file of images, arrays, tokens or text (default: the model's)");
    addTokenizer(command);
    addNamed(command, "--column", options_.columns, parseNamed,
             "input=column: fill an input with a column of another name");
  }
  void addTokenizer(CLI::App *command) {
    addFile(command, "--tokenizer", options_.dataOptions.tokenizer,
            "Folder with GPT-2's vocab.json and merges.txt, for texts (default: bytes are tokens)");
  }
  void addBatch(CLI::App *command) {
    addInteger(command, "--batch", options_.batch, 1, INT32_MAX,
               "Rows per step, over all replicas (default: as many as the model takes)");
  }
  void addWeights(CLI::App *command, const char *help = "Weights (.safetensors)") {
    addFile(command, "--weights", options_.weights, help);
  }
  void addSeed(CLI::App *command, const char *help = "Seed of initial weights and shuffling (default: 0)") {
    command
        ->add_option_function<std::string>(
            "--seed", [this](const std::string &text) { options_.seed = parseSeed(text); }, help)
        ->type_name("SEED");
  }

  /// Adds an option for the path of a file or a folder.
  static CLI::Option *addFile(CLI::App *command, const std::string &flag, std::string &path, const char *help) {
    auto set = [&path, flag](const std::string &text) {
      if (text.empty())
        failUsage(concat(flag, ": the name of the file is empty"));
      path = text;
    };
    return command->add_option_function<std::string>(flag, set, help);
  }
  /// The same for a file that is replaced as a whole. Standard output cannot be replaced, so "-" is an error.
  static CLI::Option *addOutputFile(CLI::App *command, const std::string &flag, std::string &path, const char *help) {
    auto check = [flag](const std::string &text) {
      if (text == "-")
        failUsage(concat(flag, ": '-' would be a file; name one, such as ./- or /dev/stdout"));
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

  static void addNamed(CLI::App *command, const std::string &flag, std::vector<NamedText> &list,
                       NamedText (*parse)(const std::string &, const std::string &), const char *help) {
    auto add = [&list, flag, parse](const std::string &text) { list.push_back(parse(flag, text)); };
    command->add_option_function<std::string>(flag, add, help)
        ->type_name("NAME=...")
        ->multi_option_policy(CLI::MultiOptionPolicy::Throw)
        ->trigger_on_parse()
        ->take_all();
  }

  std::vector<std::string> verbNames() const {
    std::vector<std::string> names;
    for (const CLI::App *verb : app_.get_subcommands({}))
      names.push_back(verb->get_name());
    return names;
  }

  const CLI::App *verbNamed(const std::string &name) const {
    for (const CLI::App *verb : app_.get_subcommands({}))
      if (verb->get_name() == name)
        return verb;
    return nullptr;
  }

  /// "; did you mean ...?" for the first word that is no verb or no flag of its verb.
  std::string suggestion(int argc, const char *const *argv) const {
    const CLI::App *command = &app_;
    for (int i = 1; i < argc; ++i) {
      std::string word = argv[i];
      if (command == &app_ && !word.starts_with("-")) {
        command = verbNamed(word);
        if (!command)
          return concat(": there is no ", quote(word), didYouMean(word, verbNames()));
        continue;
      }
      word = word.substr(0, word.find('='));
      if (!word.starts_with("--") || command->get_option_no_throw(word))
        continue;
      std::vector<std::string> flags;
      for (const CLI::Option *option : command->get_options())
        flags.push_back(option->get_name());
      return didYouMean(word, flags);
    }
    return {};
  }

  CLI::App app_;
  Options options_;
};

} // namespace

std::optional<Options> parseCommandLine(int argc, const char *const *argv) { return CommandLine().parse(argc, argv); }

} // namespace sluice::runtime
