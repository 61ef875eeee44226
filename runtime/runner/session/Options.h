// What the command line of an executable asks for.
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
  std::optional<std::string> prompt;       ///< "-": the standard input
  std::optional<std::string> promptTokens; ///< "5,17,3": tokens in, tokens out
  int64_t tokens = 64;
  SamplingOptions sampling; ///< but for the seed
  bool slides = false;      ///< at the end of the context
};

struct Options {
  Verb verb = Verb::info;
  bool json = false;
  bool quiet = false; ///< no progress
  int threads = 0;    ///< 0: every processor
  std::string device, devices;
  const sluice_artifact *artifact = nullptr; ///< the variant that runs, once it was chosen
  std::vector<NamedText> backends;           ///< settings of backends by name

  LaunchFlags launch;                        ///< which of several processes this is
  std::string transport;                     ///< between them; empty: that of the launcher
  double deadline = 60;                      ///< seconds that they, or replicas in one process, wait for each other
  std::function<void(const Error &)> onLate; ///< as in DeviceOptions

  bool replays = true; ///< what accelerators do is captured and replayed
  bool report = false; ///< of copies and memory
  std::string trace;   ///< a file for the times of all work; empty: none

  std::string data, testData, weights;
  DataOptions dataOptions;
  std::vector<NamedText> columns;  ///< of inputs: the columns that fill them
  int64_t batch = 0;               ///< 0: as many as the model takes
  std::vector<NamedText> settings; ///< values of hyperparameters

  // train
  std::optional<int64_t> epochs;
  int64_t steps = 0; ///< 0: those of the epochs
  std::optional<uint64_t> seed;
  std::string checkpointFolder;
  int64_t checkpointEvery = 100;
  bool resume = false;
  bool dropLast = false;        ///< no batch that is shorter than the others
  bool keepsOrder = false;      ///< rows are not shuffled
  bool allowsNonFinite = false; ///< exit with code 0 even if a loss is not finite
  std::string save, saveAverages, log;

  // predict and bench
  std::string entry;
  std::vector<NamedText> inputs, outputs; ///< the text is a path, or "-" for standard input or output
  bool kernels = false, benchesOutputs = false;
  double seconds = 3;

  GenerateOptions generate;
};

/// Parses the command line. Help goes to standard output, and then nothing is returned; a usage error is thrown.
std::optional<Options> parseCommandLine(int argc, const char *const *argv);

} // namespace sluice::runtime
