// The parsed command line of an executable.
#pragma once

#include "runtime/base/Status.h"
#include "runtime/base/Text.h"
#include "runtime/data/OpenData.h"
#include "runtime/instance/Sampling.h"
#include "runtime/launch/ProcessLaunch.h"
#include "sluice/runtime/artifact.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace sluice::runtime {

enum class Verb { train, eval, predict, generate, bench, info };

struct GenerateOptions {
  std::optional<std::string> prompt;       ///< "-": standard input
  std::optional<std::string> promptTokens; ///< "5,17,3": token numbers for input and output
  int64_t tokens = 64;
  SamplingOptions sampling; ///< without the seed
  bool slides = false;      ///< at the end of the context, continue with its last half
};

struct Options {
  Verb verb = Verb::info;
  bool json = false;
  bool quiet = false; ///< no progress output
  int threads = 0;    ///< 0: every processor
  std::string device, devices;
  const sluice_artifact *artifact = nullptr; ///< the chosen variant
  std::vector<NamedText> backends;           ///< settings by backend

  LaunchFlags launch;    ///< rank and address given by flags
  std::string transport; ///< transport between processes; empty: openmpi under its launcher, else tcp
  double deadline = 60;  ///< longest wait for another process, or for a replica in this process, in seconds
  std::function<void(const Error &)> onLate; ///< see DeviceOptions

  bool replays = true; ///< capture and replay accelerator work
  bool report = false; ///< report copies and memory
  std::string trace;   ///< file for the times of all work; empty: none

  std::string data, testData, weights;
  DataOptions dataOptions;
  std::vector<std::string> columns; ///< "INPUT=COLUMN"
  int64_t batch = 0;                ///< 0: the model's maximum
  std::vector<NamedText> settings;  ///< values of hyperparameters

  // train
  std::optional<int64_t> epochs;
  int64_t steps = 0; ///< 0: those of the epochs
  std::optional<uint64_t> seed;
  std::string checkpointFolder;
  int64_t checkpointEvery = 100;
  bool resume = false;
  bool dropLast = false;        ///< drop the last batch if it is shorter
  bool keepsOrder = false;      ///< rows are not shuffled
  bool allowsNonFinite = false; ///< exit with code 0 even if a loss is not finite
  std::string save, saveAverages, log;

  // predict and bench
  std::string entry;
  std::vector<std::string> inputs, outputs; ///< "NAME=@PATH", or "NAME=@-" for standard input or output
  bool kernels = false, benchesOutputs = false;
  double seconds = 3;

  GenerateOptions generate;
};

/// Parses the command line. Prints requested help on standard output and returns nothing; throws usage errors.
std::optional<Options> parseCommandLine(int argc, const char *const *argv);

} // namespace sluice::runtime
