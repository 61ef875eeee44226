// Which of several processes this one is. Sluice starts no processes: a launcher does, and says so in the environment.
// What is found here is a function of that environment alone, so that it can be printed, and tested.
#pragma once

#include <map>
#include <optional>
#include <string>

namespace sluice::runtime {

/// Names and values.
using Environment = std::map<std::string, std::string>;

/// That of this process.
Environment processEnvironment();

/// Hydra is the launcher of MPICH and of Intel MPI.
enum class Launcher { Flags, Torchrun, OpenMpi, Hydra, Slurm };

/// "torchrun"
const char *textOf(Launcher launcher);

/// Where the other ranks find rank 0.
struct Address {
  std::string host;
  int port = 0; ///< from 1 on

  std::string text() const; ///< "node1:29500", "[::1]:29500"
};

struct ProcessLaunch {
  Launcher launcher = Launcher::Flags;
  int rank = 0, size = 1;       ///< of all processes
  std::optional<int> localRank; ///< among those of this machine
  std::optional<int> localSize; ///< of these
  std::optional<Address> address;

  std::string text() const; ///< "rank 1 of 4, local rank 1 of 2, by torchrun, rank 0 at node1:29500"
};

/// What a command line says. It goes before what the environment says.
struct LaunchFlags {
  std::optional<int> rank, size, localRank;
  std::string address; ///< "node1:29500"; empty: not said
};

/// Looks at the flags, and then for the variables of torchrun, Open MPI, Hydra and Slurm, in this order; nothing if none of
/// them launched this process. Throws an error of usage for a variable that is no number, for one that is missing beside
/// others of its launcher, and for two that contradict each other, with their names and values.
///
/// Whatever is started in a job of Slurm has variables of Slurm, and other numbers where another launcher started it. So
/// Slurm's count only where no other launcher's are, and only if those of a step are there, too.
std::optional<ProcessLaunch> findProcessLaunch(const LaunchFlags &flags, const Environment &environment);

/// Throws that this is not supported unless Open MPI's library can find the other ranks: where its own launcher, or Slurm,
/// started this process.
void checkOpenMpiCanJoin(const ProcessLaunch &launch);

} // namespace sluice::runtime
