// Batches for LeNet with f32 images that differ in every step.
#pragma once

#include "tests/e2e/Harness.h"
#include "tests/e2e/Portable.h"

namespace sluice::test {

inline Values lenetBatch(int step, int64_t rows) {
  std::string key = "devices/step" + std::to_string(step);
  std::vector<float> pixels = portableUniform(key, size_t(rows) * 784);
  std::vector<int64_t> labels = portableIntegers(key + "/label", size_t(rows), 10);
  return {{"image", {pixels.begin(), pixels.end()}}, {"label", {labels.begin(), labels.end()}}};
}

} // namespace sluice::test
