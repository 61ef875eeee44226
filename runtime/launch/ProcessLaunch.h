// Finds the rank of this process. A launcher, not Sluice, starts the processes and sets environment variables. The
// result depends only on flags and variables, so that it can be printed and tested.
#pragma once

#include <map>
#include <optional>
#include <string>

namespace sluice::runtime {

/// Variables by name.
using Environment = std::map<std::string, std::string>;

/// The environment of this process.
Environment processEnvironment();

/// Hydra is the launcher of MPICH and of Intel MPI.
enum class Launcher { Flags, Torchrun, OpenMpi, Hydra, Slurm };

/// "torchrun"
const char *textOf(Launcher launcher);

/// The address of rank 0 for the other ranks.
struct Address {
  std::string host;
  int port = 0; ///< at least 1

  std::string text() const; ///< "node1:29500", "[::1]:29500"
};

struct ProcessLaunch {
  Launcher launcher = Launcher::Flags;
  int rank = 0, size = 1;       ///< over all processes
  std::optional<int> localRank; ///< rank among the processes of this machine
  std::optional<int> localSize; ///< processes of this machine
  std::optional<Address> address;

  std::string text() const; ///< "rank 1 of 4, local rank 1 of 2, by torchrun, rank 0 at node1:29500"
};

/// Command-line flags. They take precedence over the environment.
struct LaunchFlags {
  std::optional<int> rank, size, localRank;
  std::string address; ///< "node1:29500"; empty: unspecified
};

/// Evaluates the flags, then the variables of torchrun, Open MPI, Hydra and Slurm, in this order; nothing if none of
/// them launched this process. Throws a usage error if a variable is not a number, if a launcher's variables are
/// incomplete, or if two variables contradict each other. Errors contain names and values.
///
/// Every process in a Slurm job has Slurm variables; if another launcher started it, their numbers are unrelated.
/// Slurm's variables therefore count only if those of a step are set, and those of no other launcher.
std::optional<ProcessLaunch> findProcessLaunch(const LaunchFlags &flags, const Environment &environment);

/// Throws an unsupported error unless Open MPI's launcher or Slurm started this process. Otherwise Open MPI's library
/// cannot connect to the other ranks.
void checkOpenMpiCanJoin(const ProcessLaunch &launch);

} // namespace sluice::runtime
