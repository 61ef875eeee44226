// A model like the hand-written one with other state names: its checkpoints must not be accepted.
#include "LogisticRegression.h"

static std::string otherPlan() {
  std::string plan = sluice::test::logisticRegressionPlan();
  for (size_t at = 0; (at = plan.find("fc.", at)) != std::string::npos;)
    plan.replace(at, 3, "gc.");
  return plan;
}

extern "C" const sluice_artifact *sluice_artifact_query(void) {
  static const std::string plan = otherPlan();
  static const sluice_artifact artifact = sluice::test::logisticRegression(plan);
  return &artifact;
}
