// A substitute for a compiled model: answers the query, and calls the mathematical functions that generated code uses.
#include "sluice/runtime/artifact.h"

#include <cmath>

static const char kPlan[] = R"({"format": 1, "model": "stub"})";

static void stage(void *const *buffers, int64_t, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; ++i)
    static_cast<double *>(buffers[0])[i] = std::exp(static_cast<double>(i));
}

static const sluice_stage_fn kStages[] = {stage};

extern "C" const sluice_artifact *sluice_artifact_query() {
  static const sluice_artifact artifact{sizeof(sluice_artifact),
                                        SLUICE_ARTIFACT_ABI,
                                        kPlan,
                                        sizeof kPlan - 1,
                                        kStages,
                                        1,
                                        nullptr,
                                        0,
                                        nullptr,
                                        0,
                                        0,
                                        nullptr};
  return &artifact;
}
