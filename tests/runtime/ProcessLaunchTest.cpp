// The rank of a process from flags and launcher variables.
#include "runtime/launch/ProcessLaunch.h"
#include "runtime/base/Status.h"

#include <gtest/gtest.h>

#include <functional>

using namespace sluice::runtime;

static const Environment torchrun = {{"RANK", "3"},
                                     {"WORLD_SIZE", "4"},
                                     {"LOCAL_RANK", "1"},
                                     {"LOCAL_WORLD_SIZE", "2"},
                                     {"MASTER_ADDR", "node1"},
                                     {"MASTER_PORT", "29500"}};
static const Environment openMpi = {{"OMPI_COMM_WORLD_RANK", "1"},
                                    {"OMPI_COMM_WORLD_SIZE", "2"},
                                    {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                                    {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
                                    {"PMIX_RANK", "1"}};
static const Environment hydra = {
    {"PMI_RANK", "0"}, {"PMI_SIZE", "3"}, {"MPI_LOCALRANKID", "0"}, {"MPI_LOCALNRANKS", "3"}};
static const Environment slurm = {{"SLURM_PROCID", "5"},       {"SLURM_NTASKS", "8"},
                                  {"SLURM_LOCALID", "1"},      {"SLURM_STEP_NODELIST", "node[003-006],gpu1"},
                                  {"SLURM_JOB_ID", "1000003"}, {"SLURM_STEP_ID", "2"}};

static Environment with(Environment environment, const Environment &more) {
  for (const auto &[name, value] : more)
    environment[name] = value;
  return environment;
}

static Environment without(Environment environment, const std::string &name) {
  environment.erase(name);
  return environment;
}

static std::string textIn(const Environment &environment, const LaunchFlags &flags = {}) {
  std::optional<ProcessLaunch> launch = findProcessLaunch(flags, environment);
  return launch ? launch->text() : "none";
}

/// The message of an error, which must have this code.
static std::string errorOf(const std::function<void()> &body, ExitCode code = ExitCode::usage) {
  try {
    body();
  } catch (const Error &error) {
    EXPECT_EQ(error.code(), code);
    return error.what();
  }
  return "no error";
}

static std::string errorIn(const Environment &environment, const LaunchFlags &flags = {}) {
  return errorOf([&] { findProcessLaunch(flags, environment); });
}

TEST(ProcessLaunch, IsFoundByTheVariablesOfEachLauncher) {
  EXPECT_EQ(textIn({}), "none");
  EXPECT_EQ(textIn({{"PATH", "/bin"}, {"MASTER_ADDR", ""}}), "none");
  EXPECT_EQ(textIn(torchrun), "rank 3 of 4, local rank 1 of 2, by torchrun, rank 0 at node1:29500");
  EXPECT_EQ(textIn(openMpi), "rank 1 of 2, local rank 1 of 2, by Open MPI's mpirun");
  EXPECT_EQ(textIn(hydra), "rank 0 of 3, local rank 0 of 3, by Hydra, the launcher of MPICH and Intel MPI");
  EXPECT_EQ(textIn(slurm), "rank 5 of 8, local rank 1, by Slurm, rank 0 at node003:62021"); // 61440 + 1000005 mod 4096
}

TEST(ProcessLaunch, TakesTheAddressThatIsGiven) {
  Environment master = {{"MASTER_ADDR", "10.0.0.1"}, {"MASTER_PORT", "1234"}};
  EXPECT_EQ(findProcessLaunch({}, with(openMpi, master))->address->text(), "10.0.0.1:1234");
  EXPECT_EQ(findProcessLaunch({}, with(slurm, master))->address->text(), "10.0.0.1:1234");
  EXPECT_FALSE(findProcessLaunch({}, without(slurm, "SLURM_STEP_ID"))->address);
  LaunchFlags flags;
  flags.address = "[::1]:99";
  EXPECT_EQ(findProcessLaunch(flags, torchrun)->address->text(), "[::1]:99");
  EXPECT_EQ(findProcessLaunch(flags, torchrun)->address->host, "::1");
}

TEST(ProcessLaunch, OfFlagsGoesBeforeVariables) {
  LaunchFlags flags{2, 9, std::nullopt, ""};
  EXPECT_EQ(textIn(openMpi, flags), "rank 2 of 9, by flags");
  flags.localRank = 0;
  EXPECT_EQ(textIn({}, flags), "rank 2 of 9, local rank 0, by flags");
  EXPECT_EQ(textIn({{"RANK", "what"}}, flags), "rank 2 of 9, local rank 0, by flags");
}

TEST(ProcessLaunch, OfSlurmIsThatOfAStepWithoutAnotherLauncher) {
  EXPECT_EQ(textIn(without(slurm, "SLURM_STEP_NODELIST")), "none"); // the script of a job
  EXPECT_EQ(findProcessLaunch({}, with(slurm, openMpi))->launcher, Launcher::OpenMpi);
  EXPECT_EQ(findProcessLaunch({}, with(slurm, torchrun))->rank, 3);
  Environment pmi = with(slurm, {{"PMI_RANK", "5"}, {"PMI_SIZE", "8"}}); // srun --mpi=pmi2
  EXPECT_EQ(findProcessLaunch({}, pmi)->launcher, Launcher::Slurm);
}

TEST(ProcessLaunch, RefusesContradictions) {
  EXPECT_EQ(
      errorIn(with(torchrun, openMpi)),
      "the variable RANK is 3, and OMPI_COMM_WORLD_RANK is 1: unset those of the launcher that did not start this "
      "process, or give flags");
  Environment sizes = with(with(torchrun, openMpi), {{"OMPI_COMM_WORLD_RANK", "3"}, {"OMPI_COMM_WORLD_SIZE", "8"}});
  EXPECT_NE(errorIn(sizes).find("WORLD_SIZE is 4, and OMPI_COMM_WORLD_SIZE is 8"), std::string::npos);
  EXPECT_NE(errorIn(with(openMpi, hydra)).find("OMPI_COMM_WORLD_RANK is 1, and PMI_RANK is 0"), std::string::npos);
  Environment agreed = with(openMpi, {{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}, {"MPI_LOCALRANKID", "1"}});
  EXPECT_EQ(findProcessLaunch({}, agreed)->launcher, Launcher::OpenMpi);
}

TEST(ProcessLaunch, RefusesRanksThatAreNone) {
  EXPECT_EQ(errorIn(with(torchrun, {{"RANK", "4"}})), "RANK is 4, and WORLD_SIZE is 4");
  EXPECT_EQ(errorIn(with(torchrun, {{"LOCAL_RANK", "2"}})), "LOCAL_RANK is 2, and LOCAL_WORLD_SIZE is 2");
  EXPECT_EQ(errorIn(with(torchrun, {{"LOCAL_WORLD_SIZE", "5"}})), "LOCAL_WORLD_SIZE is 5, and WORLD_SIZE is 4");
  EXPECT_EQ(errorIn(with(slurm, {{"SLURM_LOCALID", "8"}})), "SLURM_LOCALID is 8, and SLURM_NTASKS is 8");
  EXPECT_EQ(errorIn({}, {0, 0, std::nullopt, ""}), "--world-size is 0, expected at least 1");
  EXPECT_EQ(errorIn({}, {2, 2, std::nullopt, ""}), "--rank is 2, and --world-size is 2");
  EXPECT_EQ(errorIn({}, {-1, 2, std::nullopt, ""}), "--rank is -1, expected at least 0");
  EXPECT_EQ(errorIn({}, {2, std::nullopt, std::nullopt, ""}), "--rank is given, and --world-size is not");
  EXPECT_EQ(errorIn({}, {std::nullopt, 2, std::nullopt, ""}), "--world-size is given, and --rank is not");
}

TEST(ProcessLaunch, RefusesWhatIsNoNumber) {
  for (const char *text : {"-1", "+1", "1x", " 1", "99999999999", "0x1"})
    EXPECT_EQ(errorIn(with(openMpi, {{"OMPI_COMM_WORLD_RANK", text}})),
              std::string("the variable OMPI_COMM_WORLD_RANK is '") + text +
                  "', expected a whole number of at least 0");
  for (const char *text : {"0", "65536", "http", "-1"})
    EXPECT_EQ(errorIn(with(torchrun, {{"MASTER_PORT", text}})),
              std::string("the variable MASTER_PORT has the port '") + text + "', expected 1 to 65535");
}

TEST(ProcessLaunch, RefusesWhatIsTorn) {
  EXPECT_EQ(
      errorIn(without(torchrun, "WORLD_SIZE")),
      "the variable RANK is set, and WORLD_SIZE is not: torchrun sets both; give the rank and the number of ranks "
      "as flags");
  EXPECT_NE(errorIn(without(torchrun, "RANK")).find("WORLD_SIZE is set, and RANK is not"), std::string::npos);
  EXPECT_NE(errorIn(without(openMpi, "OMPI_COMM_WORLD_LOCAL_RANK")).find("OMPI_COMM_WORLD_LOCAL_RANK is not"),
            std::string::npos);
  EXPECT_NE(errorIn(without(hydra, "MPI_LOCALRANKID")).find("PMI_RANK is set, and MPI_LOCALRANKID is not"),
            std::string::npos);
  EXPECT_EQ(errorIn(with(openMpi, {{"MASTER_ADDR", "node1"}})),
            "the variable MASTER_ADDR is set, and MASTER_PORT is not");
}

TEST(ProcessLaunch, RefusesAddressesThatAreNone) {
  auto errorAt = [](const std::string &address) {
    LaunchFlags flags;
    flags.address = address;
    return errorIn(openMpi, flags);
  };
  EXPECT_EQ(errorAt("node1"), "the address 'node1' is not HOST:PORT");
  EXPECT_EQ(errorAt(":80"), "the address ':80' is not HOST:PORT");
  EXPECT_EQ(errorAt("node1:"), "the address 'node1:' has the port '', expected 1 to 65535");
  EXPECT_EQ(errorAt("::1:80"), "the address '::1:80' has several colons; IPv6 is written as [HOST]:PORT");
}

TEST(ProcessLaunch, ReadsTheFirstMachineOfAList) {
  auto hostIn = [](const std::string &list) {
    return findProcessLaunch({}, with(slurm, {{"SLURM_STEP_NODELIST", list}}))->address->host;
  };
  EXPECT_EQ(hostIn("node1"), "node1");
  EXPECT_EQ(hostIn("a,b"), "a");
  EXPECT_EQ(hostIn("rack[2,5]-n[07-12].local,z"), "rack2-n07.local");
  for (const char *list : {",a", "[", "node[", "node[]", "node[-2]", "a b", "a;reboot"})
    EXPECT_NE(errorIn(with(slurm, {{"SLURM_STEP_NODELIST", list}})).find("expected a list of nodes"), std::string::npos)
        << list;
}

TEST(ProcessLaunch, OfOpenMpiAloneIsJoinedByItsLibrary) {
  checkOpenMpiCanJoin(*findProcessLaunch({}, openMpi));
  checkOpenMpiCanJoin(*findProcessLaunch({}, slurm));
  EXPECT_EQ(errorOf([] { checkOpenMpiCanJoin(*findProcessLaunch({}, hydra)); }, ExitCode::unsupported),
            "the transport openmpi needs Open MPI's launcher, and this process was started by Hydra, the launcher of "
            "MPICH and "
            "Intel MPI: "
            "start it with Open MPI's mpirun, or use --transport tcp");
  EXPECT_NE(
      errorOf([] { checkOpenMpiCanJoin(*findProcessLaunch({}, torchrun)); }, ExitCode::unsupported).find("torchrun"),
      std::string::npos);
}

TEST(ProcessLaunch, ReadsTheEnvironmentOfThisProcess) {
  setenv("SLUICE_LAUNCH_TEST", "a=b", 1);
  EXPECT_EQ(processEnvironment().at("SLUICE_LAUNCH_TEST"), "a=b");
}
