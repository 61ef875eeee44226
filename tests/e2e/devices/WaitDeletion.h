// Whether every wait of a plan is needed: without it there is a race, or queues that run as late and in as hostile an
// order as events allow give other bits.
#pragma once

#include "tests/e2e/Harness.h"
#include <functional>
#include <nlohmann/json.hpp>

namespace sluice::test {

/// Whose queues run in an order that a seed chooses. Emulated CUDA devices report no races.
enum class Hostile { Simulator, EmulatedCuda };

/// A model, what its calls are given, and with how many rows.
struct WaitingModel {
  Compiled &model;
  std::function<Values(int call)> inputs;
  int64_t rows;
  Hostile devices = Hostile::Simulator;
  size_t most = SIZE_MAX; ///< waits that are deleted, drawn from all
};

struct NoticedWaits {
  int races = 0, bits = 0; ///< whose absence is a race, and whose absence only bits tell of
};

/// Runs every entry point under several seeds, which must not change a bit; then deletes each wait in turn, those in
/// loops too. A wait whose absence nothing notices fails the test. Emulated devices show it in entries whose outputs all have one
/// element; and not of what the host has waited for anyway, because what it computes is done when it is issued: there races
/// alone tell.
NoticedWaits expectEveryWaitIsNeeded(const WaitingModel &model);

} // namespace sluice::test
