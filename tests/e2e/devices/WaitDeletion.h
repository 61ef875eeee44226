// Tests that every wait of a plan is needed. Deleting a wait causes a race, or changes bits when queues run as late and
// in as adverse an order as events allow.
#pragma once

#include "tests/e2e/Harness.h"
#include <functional>
#include <nlohmann/json.hpp>

namespace sluice::test {

/// Devices whose queues run in an order determined by a seed. Emulated CUDA devices report no races.
enum class Hostile { Simulator, EmulatedCuda };

/// A model, with the inputs and rows of its calls.
struct WaitingModel {
  Compiled &model;
  std::function<Values(int call)> inputs;
  int64_t rows;
  Hostile devices = Hostile::Simulator;
  size_t most = SIZE_MAX; ///< number of deleted waits, sampled from all
};

struct NoticedWaits {
  int races = 0, bits = 0; ///< waits whose deletion causes a race, and waits whose deletion only changes bits
};

/// Runs every entry point with several seeds, which must not change a bit. Then deletes each wait in turn, including
/// waits in loops; an undetected deletion fails the test. Emulated devices detect deletions only in entries whose
/// outputs all have one element. They do not detect waits that the host's own work implies, because it is complete when
/// issued; only races reveal these.
NoticedWaits expectEveryWaitIsNeeded(const WaitingModel &model);

} // namespace sluice::test
