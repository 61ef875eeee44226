#include "runtime/launch/ProcessLaunch.h"

#include "runtime/base/Status.h"
#include "runtime/base/Text.h"
#include "runtime/launch/NodeList.h"

#include <array>
#include <charconv>
#include <unistd.h>
#include <vector>

namespace sluice::runtime {

Environment processEnvironment() {
  Environment environment;
  for (char **entry = environ; *entry; ++entry) {
    std::string_view text(*entry);
    size_t equals = text.find('=');
    if (equals != std::string_view::npos)
      environment.try_emplace(std::string(text.substr(0, equals)), text.substr(equals + 1));
  }
  return environment;
}

namespace {

/// The variables that a launcher sets. `localSize` is optional: null, or a variable that may be absent.
struct Variables {
  Launcher launcher;
  const char *rank, *size, *localRank, *localSize;
  std::vector<const char *> others; // further variables that the launcher always sets
};

} // namespace

static const std::array<Variables, 4> &launchers() {
  static const std::array<Variables, 4> all = {{
      {Launcher::Torchrun, "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", {"MASTER_ADDR", "MASTER_PORT"}},
      {Launcher::OpenMpi,
       "OMPI_COMM_WORLD_RANK",
       "OMPI_COMM_WORLD_SIZE",
       "OMPI_COMM_WORLD_LOCAL_RANK",
       "OMPI_COMM_WORLD_LOCAL_SIZE",
       {}},
      {Launcher::Hydra, "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS", {}},
      {Launcher::Slurm, "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", nullptr, {"SLURM_STEP_NODELIST"}},
  }};
  return all;
}

const char *textOf(Launcher launcher) {
  switch (launcher) {
  case Launcher::Flags:
    return "flags";
  case Launcher::Torchrun:
    return "torchrun";
  case Launcher::OpenMpi:
    return "Open MPI's mpirun";
  case Launcher::Hydra:
    return "Hydra, the launcher of MPICH and Intel MPI";
  case Launcher::Slurm:
    return "Slurm";
  }
  return "nobody";
}

std::string Address::text() const {
  bool isNumber = host.find(':') != std::string::npos; // an IPv6 address
  return concat(isNumber ? "[" : "", host, isNumber ? "]:" : ":", port);
}

std::string ProcessLaunch::text() const {
  std::string text = concat("rank ", rank, " of ", size);
  if (localRank)
    text += concat(", local rank ", *localRank);
  if (localRank && localSize)
    text += concat(" of ", *localSize);
  text += concat(", by ", textOf(launcher));
  return address ? concat(text, ", rank 0 at ", address->text()) : text;
}

//===- numbers and addresses --------------------------------------------------------------------------------------===//

static bool isSet(const Environment &environment, const char *name) {
  auto found = environment.find(name);
  return found != environment.end() && !found->second.empty();
}

/// Nothing if the text is not all digits or too large.
static std::optional<int> numberIn(std::string_view text) {
  int number = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  bool isNumber = error == std::errc() && end == text.data() + text.size() && text.front() != '-';
  return isNumber ? std::optional(number) : std::nullopt;
}

/// The value of a variable that is set.
static int numberOf(const Environment &environment, const char *name) {
  const std::string &text = environment.at(name);
  std::optional<int> number = numberIn(text);
  if (!number)
    failUsage(concat("the variable ", name, " is ", quote(text), ", expected a whole number of at least 0"));
  return *number;
}

static int portIn(const std::string &what, const std::string &text) {
  std::optional<int> port = numberIn(text);
  if (!port || *port < 1 || *port > 65535)
    failUsage(concat(what, " has the port ", quote(text), ", expected 1 to 65535"));
  return *port;
}

/// "node1:29500" or "[::1]:29500".
static Address addressIn(const std::string &text) {
  size_t colon = text.rfind(':');
  if (colon == std::string::npos || colon == 0)
    failUsage(concat("the address ", quote(text), " is not HOST:PORT"));
  std::string host = text.substr(0, colon);
  if (host.front() == '[' && host.back() == ']')
    host = host.substr(1, host.size() - 2);
  else if (host.find(':') != std::string::npos)
    failUsage(concat("the address ", quote(text), " has several colons; IPv6 is written as [HOST]:PORT"));
  return {host, portIn(concat("the address ", quote(text)), text.substr(colon + 1))};
}

/// The address of rank 0 in torchrun's variables, which users may also set with other launchers.
static std::optional<Address> masterAddress(const Environment &environment) {
  const char *host = "MASTER_ADDR", *port = "MASTER_PORT";
  if (!isSet(environment, host) && !isSet(environment, port))
    return std::nullopt;
  for (auto [name, other] : {std::pair(host, port), std::pair(port, host)})
    if (!isSet(environment, name))
      failUsage(concat("the variable ", other, " is set, and ", name, " is not"));
  return Address{environment.at(host), portIn("the variable MASTER_PORT", environment.at(port))};
}

/// In a Slurm step: its first node, and a port that other steps are unlikely to use.
static std::optional<Address> stepAddress(const Environment &environment) {
  if (!isSet(environment, "SLURM_JOB_ID") || !isSet(environment, "SLURM_STEP_ID"))
    return std::nullopt;
  constexpr unsigned first = 61440, ports = 4096;
  auto number = static_cast<unsigned>(numberOf(environment, "SLURM_JOB_ID")) +
                static_cast<unsigned>(numberOf(environment, "SLURM_STEP_ID"));
  return Address{firstNode(environment.at("SLURM_STEP_NODELIST")), static_cast<int>(first + number % ports)};
}

//===- consistency ------------------------------------------------------------------------------------------------===//

/// Whether all required variables of the launcher are set.
static bool isWhole(const Environment &environment, const Variables &its) {
  bool whole = isSet(environment, its.rank) && isSet(environment, its.size) && isSet(environment, its.localRank);
  for (const char *other : its.others)
    whole = whole && isSet(environment, other);
  return whole;
}

/// Throws an error with the missing variable if only some of the launcher's variables are set.
static void failIfTorn(const Environment &environment, const Variables &its) {
  std::vector<const char *> needed = {its.rank, its.size, its.localRank};
  needed.insert(needed.end(), its.others.begin(), its.others.end());
  for (const char *there : {its.rank, its.size})
    for (const char *missing : needed)
      if (isSet(environment, there) && !isSet(environment, missing))
        failUsage(concat("the variable ", there, " is set, and ", missing, " is not: ", textOf(its.launcher),
                         " sets both; give the rank and the number of ranks as flags"));
}

/// Throws unless the rank is in range.
static void requireRank(const std::string &what, int number, const std::string &limits, int limit) {
  if (number < 0)
    failUsage(concat(what, " is ", number, ", expected at least 0"));
  if (number >= limit)
    failUsage(concat(what, " is ", number, ", and ", limits, " is ", limit));
}

namespace {

/// The variables or flags that the numbers come from, for messages.
struct RankNames {
  std::string rank, size, localRank, localSize;
};

} // namespace

static void checkRanks(const ProcessLaunch &launch, const RankNames &names) {
  if (launch.size < 1)
    failUsage(concat(names.size, " is ", launch.size, ", expected at least 1"));
  requireRank(names.rank, launch.rank, names.size, launch.size);
  if (launch.localSize && *launch.localSize > launch.size)
    failUsage(concat(names.localSize, " is ", *launch.localSize, ", and ", names.size, " is ", launch.size));
  if (launch.localRank)
    requireRank(names.localRank, *launch.localRank, launch.localSize ? names.localSize : names.size,
                launch.localSize.value_or(launch.size));
}

static ProcessLaunch launchOf(const Environment &environment, const Variables &its) {
  ProcessLaunch launch{its.launcher,
                       numberOf(environment, its.rank),
                       numberOf(environment, its.size),
                       numberOf(environment, its.localRank),
                       std::nullopt,
                       masterAddress(environment)};
  if (its.localSize && isSet(environment, its.localSize))
    launch.localSize = numberOf(environment, its.localSize);
  if (its.launcher == Launcher::Slurm && !launch.address)
    launch.address = stepAddress(environment);
  checkRanks(launch, {its.rank, its.size, its.localRank, its.localSize ? its.localSize : ""});
  return launch;
}

static void requireEqual(const char *name, int value, const char *other, int otherValue) {
  if (value != otherValue)
    failUsage(concat("the variable ", name, " is ", value, ", and ", other, " is ", otherValue,
                     ": unset those of the launcher that did not start this process, or give flags"));
}

static std::optional<ProcessLaunch> findInEnvironment(const Environment &environment) {
  const Variables *first = nullptr;
  std::optional<ProcessLaunch> found;
  bool inStep = isWhole(environment, launchers().back());
  for (const Variables &its : launchers()) {
    bool isSlurm = its.launcher == Launcher::Slurm;
    if (!isWhole(environment, its)) {
      if (!isSlurm && !(its.launcher == Launcher::Hydra && inStep)) // Slurm may also set PMI variables
        failIfTorn(environment, its);
      continue;
    }
    if (!found) {
      first = &its;
      found = launchOf(environment, its);
    } else if (!isSlurm) {
      requireEqual(first->rank, found->rank, its.rank, numberOf(environment, its.rank));
      requireEqual(first->size, found->size, its.size, numberOf(environment, its.size));
    }
  }
  return found;
}

std::optional<ProcessLaunch> findProcessLaunch(const LaunchFlags &flags, const Environment &environment) {
  if (flags.rank.has_value() != flags.size.has_value())
    failUsage(flags.rank ? "--rank is given, and --world-size is not" : "--world-size is given, and --rank is not");
  std::optional<ProcessLaunch> launch;
  if (flags.rank) {
    launch = ProcessLaunch{Launcher::Flags, *flags.rank,  *flags.size,
                           flags.localRank, std::nullopt, masterAddress(environment)};
    checkRanks(*launch, {"--rank", "--world-size", "--local-rank", ""});
  } else {
    launch = findInEnvironment(environment);
  }
  if (launch && !flags.address.empty())
    launch->address = addressIn(flags.address);
  return launch;
}

void checkOpenMpiCanJoin(const ProcessLaunch &launch) {
  if (launch.launcher != Launcher::OpenMpi && launch.launcher != Launcher::Slurm)
    failUnsupported(concat("the transport openmpi needs Open MPI's launcher, and this process was started by ",
                           textOf(launch.launcher), ": start it with Open MPI's mpirun, or use --transport tcp"));
}

} // namespace sluice::runtime
