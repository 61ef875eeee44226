// The symbol through which the runner finds the hand-written artifact.
#include "Scaler.h"

extern "C" const sluice_artifact *sluice_artifact_query(void) {
  static const std::string plan = sluice::test::scalerPlan().dump();
  static const sluice_artifact artifact = sluice::test::scaler(plan);
  return &artifact;
}
