// The symbol through which the runner finds the hand-written artifact.
#include "LogisticRegression.h"

extern "C" const sluice_artifact *sluice_artifact_query(void) {
  static const std::string plan = sluice::test::logisticRegressionPlan();
  static const sluice_artifact artifact = sluice::test::logisticRegression(plan);
  return &artifact;
}
