// The symbol through which the runner finds the hand-written artifact, for AVERAGER_REPLICAS replicas.
#include "Averager.h"

#include <cstdlib>

extern "C" const sluice_artifact *sluice_artifact_query(void) {
  static const char *replicas = std::getenv("AVERAGER_REPLICAS");
  static const std::string plan = sluice::test::averagerPlan(replicas ? std::atoi(replicas) : 1).dump();
  static const sluice_artifact artifact = sluice::test::averager(plan);
  return &artifact;
}
