// Faults of the properties that devices report, and of version 2.1's additions to memory and queues; otherwise like
// `sim`.
#include "tests/conformance/faulty/Faulty.h"

#include <cstring>
#include <deque>
#include <map>
#include <string>

namespace sluice::faulty {

static sluice_backend_run sound; // without the fault

static sluice_status fillBeyond(sluice_run *run, int32_t device, sluice_device_info *info) {
  info->alignment = 64;
  info->compute_major = 1;
  return sound.device_info(run, device, info);
}

static sluice_status likeLargeMultiples(sluice_run *run, int32_t device, sluice_device_info *info) {
  sluice_status status = sound.device_info(run, device, info);
  if (SLUICE_HAS_MEMBER(sluice_device_info, info, alignment))
    info->alignment = size_t(1) << 40;
  return status;
}

static sluice_status nameAllAlike(sluice_run *run, int32_t device, sluice_device_info *info) {
  sluice_status status = sound.device_info(run, device, info);
  if (SLUICE_HAS_MEMBER(sluice_device_info, info, identity))
    info->identity = "the device";
  return status;
}

static sluice_status nameByTheContext(sluice_run *run, int32_t device, sluice_device_info *info) {
  static std::map<sluice_run *, std::deque<std::string>> names;
  sluice_status status = sound.device_info(run, device, info);
  if (SLUICE_HAS_MEMBER(sluice_device_info, info, identity))
    info->identity = names[run].emplace_back(info->identity + std::to_string(reinterpret_cast<uintptr_t>(run))).c_str();
  return status;
}

static sluice_status haveNoMajorVersion(sluice_run *run, int32_t device, sluice_device_info *info) {
  sluice_status status = sound.device_info(run, device, info);
  if (SLUICE_HAS_MEMBER(sluice_device_info, info, compute_minor))
    info->compute_minor = 9;
  return status;
}

static sluice_status giveUsed(sluice_run *run, size_t bytes, void **address) {
  sluice_status status = sound.host_allocate(run, bytes, address);
  if (status == SLUICE_OK)
    std::memset(*address, 1, bytes);
  return status;
}

static sluice_status linkAll(sluice_run *, int32_t, int32_t, sluice_peer_link *link) {
  link->direct = 1;
  return SLUICE_OK;
}

static sluice_status refuseCommunication(sluice_run *run, int32_t device, sluice_queue_kind kind, const char *name,
                                         sluice_queue **queue) {
  if (kind == SLUICE_QUEUE_COMMUNICATION)
    return SLUICE_UNSUPPORTED;
  return sound.queue_create(run, device, kind, name, queue);
}

const sluice_backend_compile *addFault(sluice_backend_run &run) {
  run = sound = loadRunHalf(SIM_RUN_HALF);
  if (kFault == "overfull_infos")
    run.device_info = fillBeyond;
  else if (kFault == "unaligned_memory")
    run.device_info = likeLargeMultiples;
  else if (kFault == "shared_identities")
    run.device_info = nameAllAlike;
  else if (kFault == "separate_identities")
    run.device_info = nameByTheContext;
  else if (kFault == "minor_versions_alone")
    run.device_info = haveNoMajorVersion;
  else if (kFault == "used_host_memory")
    run.host_allocate = giveUsed;
  else if (kFault == "endless_peers")
    run.peer_link = linkAll;
  else if (kFault == "no_communication")
    run.queue_create = refuseCommunication;
  return nullptr;
}

} // namespace sluice::faulty
