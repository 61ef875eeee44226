#include "runtime/runner/processes/Processes.h"

#include "runtime/base/Status.h"
#include "runtime/instance/Variants.h"
#include "runtime/plugins/BackendFolders.h"
#include "runtime/plugins/Transports.h"
#include "runtime/runner/report/Terminal.h"
#include "runtime/runner/session/Session.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <span>
#include <unistd.h>
#include <zlib.h>

namespace sluice::runtime {

//===- connection -------------------------------------------------------------------------------------------------===//

/// Whether the launcher set the process up for Open MPI's library to connect to the other ranks.
static bool isForOpenMpi(const ProcessLaunch &launch) {
  return launch.launcher == Launcher::OpenMpi || (launch.launcher == Launcher::Slurm && std::getenv("PMIX_RANK"));
}

static const sluice_transport_library &chooseTransport(const Options &options, const ProcessLaunch &launch,
                                                       const Plan &plan) {
  std::vector<std::string> folders = backendFoldersFor(plan, "");
  if (options.transport == "openmpi")
    checkOpenMpiCanJoin(launch);
  if (!options.transport.empty())
    return findTransport(options.transport, folders);
  if (isForOpenMpi(launch))
    if (TransportSearch search = searchTransport("openmpi", folders); search.found)
      return *search.found;
  return findTransport("tcp", folders);
}

static std::string textOfVariables(std::initializer_list<const char *> names) {
  std::string text;
  for (const char *name : names)
    if (const char *value = std::getenv(name))
      text += concat(value, " ");
  return text;
}

/// The launcher's job identifier.
static std::string jobOf(const ProcessLaunch &launch) {
  switch (launch.launcher) {
  case Launcher::Torchrun:
    return textOfVariables({"TORCHELASTIC_RUN_ID"});
  case Launcher::OpenMpi:
    return textOfVariables({"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid"});
  case Launcher::Slurm:
    return textOfVariables({"SLURM_JOB_ID", "SLURM_STEP_ID"});
  case Launcher::Flags:
  case Launcher::Hydra:
    return "";
  }
  return "";
}

/// The secret keeps runs apart that would connect by mistake. Attackers can compute it; SLUICE_SECRET protects against
/// them. The artifact is not part of the secret, so that a rank with another artifact receives an error that describes
/// the difference.
static std::string secretOf(const ProcessLaunch &launch) {
  if (const char *secret = std::getenv("SLUICE_SECRET"); secret && *secret)
    return secret;
  std::string text = concat(getuid(), " ", launch.address ? launch.address->text() : "", " ", jobOf(launch));
  return concat("sluice ", crc32_z(0, reinterpret_cast<const Bytef *>(text.data()), text.size()), " ", text.size());
}

//===- agreement --------------------------------------------------------------------------------------------------===//

static void addCollectives(const Entry &entry, int64_t replicas, std::vector<NamedText> &lines) {
  int64_t number = 0;
  for (auto [action, times] : entry.allActions())
    if (const Collective *collective = action->collective())
      lines.push_back({concat("collective ", number++, " of ", entry.name),
                       concat(Collective::kindNames[static_cast<size_t>(collective->kind)], " of ",
                              collective->bytesFor(replicas), " bytes, ", collective->name, ", ", collective->source)});
}

/// The lines that must be equal in all processes. The error contains only the first difference, so the lines that help
/// users most come first, and the checksum comes last.
static std::vector<NamedText> linesOf(const Options &options, const Plan &plan, const sluice_artifact &artifact) {
  static constexpr const char *verbs[] = {"train", "eval", "predict", "generate", "bench", "info"};
  std::vector<std::string> backends;
  for (const Device &device : plan.devices)
    backends.push_back(device.backend);
  std::vector<NamedText> lines = {{"the verb", verbs[static_cast<size_t>(options.verb)]},
                                  {"the model", plan.model},
                                  {"the compiler", plan.build.compiler},
                                  {"the CPU of the build", plan.build.cpu},
                                  {"the precision", plan.build.precision},
                                  {"the kinds of devices", listed(backends)},
                                  {"the number of replicas", std::to_string(plan.replicas)},
                                  {"the number of microbatches", std::to_string(plan.microbatches)},
                                  {"the number of logical shards", std::to_string(plan.logicalShards)},
                                  {"the capacity", std::to_string(plan.capacity)}};
  for (const State &state : plan.states)
    if (state.isKept())
      lines.push_back({concat("the state ", quote(state.name)), typeText(state.dtype, state.shape)});
  for (const Entry &entry : plan.entries)
    addCollectives(entry, std::max<int64_t>(plan.replicas, 1), lines);
  lines.push_back({"the checksum of the artifact", std::to_string(artifact.checksum)});
  return lines;
}

static std::string stateChecksum(const Instance &instance, const State &state) {
  uLong sum = 0;
  instance.getState(state, [&](std::span<const std::byte> bytes) {
    sum = crc32_z(sum, reinterpret_cast<const Bytef *>(bytes.data()), bytes.size());
  });
  return std::to_string(sum);
}

//===- the run ----------------------------------------------------------------------------------------------------===//

Processes::Processes(const Options &options) : launch_(findProcessLaunch(options.launch, processEnvironment())) {
  if (!launch_ && (options.launch.localRank || !options.launch.address.empty()))
    failUsage("--local-rank and --address are for several processes: no launcher started this one; give --rank and "
              "--world-size");
  bool isAlone = !launch_ || launch_->size == 1;
  const sluice_artifact &first = *sluice_artifact_query();
  artifact_ = &first; // if no variant can be chosen, the error is reported later, in all ranks
  std::string why;
  Status status = guarded([&] {
    artifact_ =
        &chooseVariant(first, *DevicePool::ofProcess(), instanceOptions(options),
                       isAlone ? std::nullopt : std::optional(launch_->localRank.value_or(launch_->rank)), &why);
  });
  if (isAlone && !status.ok())
    throw Error(status.code, status.message);
  if (isAlone)
    return;
  Plan plan = readPlan(*artifact_);
  const sluice_transport_library &transport = chooseTransport(options, *launch_, plan);
  if (launch_->rank == 0)
    talk(concat(launch_->text(), "; transport ", transport.name));
  group_.emplace(transport,
                 ProcessGroupOptions{launch_->rank, launch_->size, launch_->localRank.value_or(launch_->rank),
                                     launch_->address ? launch_->address->text() : "", secretOf(*launch_),
                                     options.deadline});
  std::string choice = first.next ? Variant{artifact_, plan}.devices() : "";
  group_->agreeOnChoice("the list of devices", status.ok() ? choice : ProcessGroup::nothing,
                        status.ok() ? why : status.message);
  group_->agree("the start of the run", linesOf(options, plan, *artifact_));
}

Options Processes::optionsHere(const Options &options) const {
  Options here = options;
  here.artifact = artifact_;
  if (here.threads == 0)
    here.threads = threads();
  if (isFirst())
    return here;
  here.quiet = true;
  here.report = false;
  for (std::string *file : {&here.save, &here.log, &here.trace})
    file->clear();
  return here;
}

int Processes::threads() const {
  int processors = static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
  bool isShared = group_ && launch_->localSize.value_or(1) > 1 && availableThreads() == processors;
  return isShared ? std::max(processors / *launch_->localSize, 1) : 0;
}

void Processes::agree(std::vector<NamedText> lines, const Instance &instance) {
  if (!group_)
    return;
  for (const State &state : instance.plan().states)
    if (state.isKept() && !state.isSharded()) // each rank has a separate shard
      lines.push_back({concat("the checksum of ", quote(state.name)), stateChecksum(instance, state)});
  group_->agree("what all start from", lines);
}

bool Processes::decide(bool here) {
  if (!group_)
    return here;
  std::byte decision{here};
  group_->broadcast("whether to go on", std::span(&decision, 1));
  return decision != std::byte{0};
}

int64_t Processes::agreeOnEnding(int signal, int64_t steps) {
  static const std::string what = "whether to go on";
  struct {
    int64_t steps;
    Ending ending;
  } decision{group_ ? steps : 1, {signal, 0}};
  if (group_) {
    std::vector<size_t> sizes(static_cast<size_t>(group_->size()), sizeof signal);
    std::vector<std::vector<std::byte>> all = group_->gather(what, std::as_bytes(std::span(&signal, 1)), sizes);
    for (size_t rank = all.size(); rank-- > 0;) { // the lowest rank with a signal wins
      std::memcpy(&signal, all[rank].data(), sizeof signal);
      if (signal != 0)
        decision.ending = {signal, static_cast<int32_t>(rank)};
    }
    group_->broadcast(what, std::as_writable_bytes(std::span(&decision, 1)));
  }
  ending_ = decision.ending;
  return decision.steps;
}

Status Processes::explained(const Status &status) {
  std::string silent = group_ && status.code == ExitCode::deadline ? group_->whoIsSilent() : "";
  return silent.empty() ? status : Status{status.code, concat(status.message, "; ", silent)};
}

void Processes::abort() {
  if (group_)
    group_->abort();
}

void Processes::finish() {
  if (group_)
    group_->meet("the end of the run");
}

} // namespace sluice::runtime
