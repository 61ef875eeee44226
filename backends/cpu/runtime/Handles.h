// What the C tables' handles are.
#pragma once

#include "backends/cpu/runtime/HostInfo.h"
#include "backends/cpu/runtime/HostMemory.h"
#include "backends/cpu/runtime/Rendezvous.h"
#include "backends/cpu/runtime/Together.h"

#include <map>
#include <memory>
#include <string>
#include <utility>

struct sluice_group {
  std::shared_ptr<sluice::cpu::Hall> hall;
};

struct sluice_run {
  const sluice_run_services *services;
  std::shared_ptr<sluice::cpu::Hall> hall; // the group's, or its own
  sluice::cpu::HostInfo host;              // as last asked for: reading it takes longer than opening
  std::string error;
  std::map<void *, sluice::cpu::HostMemory> blocks;
  sluice::cpu::Together together;

  sluice_status fail(sluice_status status, std::string why) {
    error = std::move(why);
    return status;
  }
  sluice_status checkDevice(int32_t device) {
    return device == 0
               ? SLUICE_OK
               : fail(SLUICE_UNSUPPORTED, "there is no device cpu:" + std::to_string(device) + "; there is one");
  }
};

struct sluice_queue {
  sluice_run *run;
  int32_t device;
};

struct sluice_event {};
