#include "LogisticRegression.h"

#include "runtime/plan/ArtifactChecksum.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

namespace sluice::test {

// Byte offsets in the transient arena of the plan below.
static constexpr int imageAt = 0, labelAt = 50176, logitsAt = 50432, deltaAt = 52992, lossesAt = 55552, hitsAt = 55808,
                     lossAt = 56064, accuracyAt = 56128, keyAt = 56192;

/// A buffer of a launch.
static std::string buffer(const char *access, int arena, int offset, int bytes) {
  return "{\"arena\": " + std::to_string(arena) + ", \"offset\": " + std::to_string(offset) +
         ", \"bytes\": " + std::to_string(bytes) + ", \"access\": \"" + access + "\"}";
}

static std::string launch(int kernel, const std::vector<std::string> &buffers) {
  std::string list;
  for (const std::string &item : buffers)
    list += (list.empty() ? "" : ", ") + item;
  return "{\"launch\": {\"kernel\": " + std::to_string(kernel) + ", \"buffers\": [" + list +
         "]}, \"queues\": [0], \"waits\": []}";
}

static std::string value(const char *name, const char *type, const char *shape, int rowsDim, int offset, int bytes) {
  return std::string("{\"name\": \"") + name + "\", \"dtype\": \"" + type + "\", \"shape\": " + shape +
         ", \"rows_dim\": " + std::to_string(rowsDim) + ", \"arena\": 1, \"offset\": " + std::to_string(offset) +
         ", \"bytes\": " + std::to_string(bytes) + "}";
}

std::string logisticRegressionPlan() {
  auto state = [](int offset, int bytes) {
    return [=](const char *access) { return buffer(access, 0, offset, bytes); };
  };
  auto transient = [](int offset, int bytes) {
    return [=](const char *access) { return buffer(access, 1, offset, bytes); };
  };
  auto weight = state(0, 50176), bias = state(50176, 64), rate = state(50240, 4), velocity = state(50304, 50176),
       steps = state(100480, 8);
  auto pixelsIn = transient(imageAt, 50176), labels = transient(labelAt, 256), logits = transient(logitsAt, 2560),
       delta = transient(deltaAt, 2560), losses = transient(lossesAt, 256), hits = transient(hitsAt, 256),
       meanLoss = transient(lossAt, 4), meanHits = transient(accuracyAt, 4), key = transient(keyAt, 8);
  const std::string image = value("image", "u8", "[64, 1, 28, 28]", 0, imageAt, 50176);
  std::string label = value("label", "i32", "[64]", 0, labelAt, 256);
  label.insert(label.size() - 1, ", \"below\": 10");
  const std::string results =
      value("loss", "f32", "[]", -1, lossAt, 4) + ", " + value("accuracy", "f32", "[]", -1, accuracyAt, 4);
  const std::string init = launch(0, {key("r"), weight("w"), bias("w"), rate("w"), velocity("w"), steps("w")});
  const std::string forward = launch(1, {pixelsIn("r"), weight("r"), bias("r"), logits("w")});
  const std::string loss =
      launch(2, {logits("r"), labels("r"), delta("w"), losses("w"), hits("w"), meanLoss("w"), meanHits("w")});
  const std::string update =
      launch(3, {pixelsIn("r"), delta("r"), rate("r"), weight("rw"), velocity("rw"), bias("rw"), steps("rw")});
  return R"({"format": 11, "in_flight": 1, "model": "logreg",
 "build": {"compiler": "by hand", "cpu": "any", "vector_bits": 128, "math": "strict"},
 "capacity": 64, "devices": [{"name": "cpu", "backend": "cpu", "compiled_for": 0}],
 "arenas": [{"name": "state", "device": 0, "bytes": 100544}, {"name": "transient", "device": 0, "bytes": 56256},
            {"name": "constants", "device": 0, "bytes": 0}],
 "queues": [{"name": "cpu", "device": 0, "kind": "compute"}],
 "states": [
  {"name": "fc.weight", "kind": "parameter", "dtype": "f32", "shape": [10, 784], "of": null,
   "layout": [[0, "div", 8], [1], [0, "mod", 8]], "arena": 0, "offset": 0, "bytes": 50176},
  {"name": "fc.bias", "kind": "parameter", "dtype": "f32", "shape": [10], "of": null, "arena": 0, "offset": 50176, "bytes": 64},
  {"name": "lr", "kind": "hyperparameter", "dtype": "f32", "shape": [], "of": null, "arena": 0, "offset": 50240, "bytes": 4},
  {"name": "fc.weight.momentum", "kind": "slot", "dtype": "f32", "shape": [10, 784], "of": "fc.weight",
   "layout": [[0, "div", 8], [1], [0, "mod", 8]], "arena": 0, "offset": 50304, "bytes": 50176},
  {"name": "step", "kind": "step", "dtype": "i64", "shape": [], "of": null, "arena": 0, "offset": 100480, "bytes": 8}],
 "kernels": [
  {"name": "init", "ops": ["sluice.uniform"], "source": "logreg.cpp:1:1", "stages": [{"fn": 0, "tasks": 1, "rows_per_task": 0}]},
  {"name": "linear", "ops": ["sluice.einsum"], "source": "logreg.cpp:2:1", "stages": [{"fn": 1, "tasks": 1, "rows_per_task": 4}],
   "cost": {"flops": 0, "flops_per_row": 15680, "bytes": 50240, "bytes_per_row": 824}, "lanes": 0.625},
  {"name": "cross_entropy", "ops": ["sluice.softmax_cross_entropy"], "source": "logreg.cpp:3:1",
   "stages": [{"fn": 2, "tasks": 1, "rows_per_task": 8}, {"fn": 3, "tasks": 1, "rows_per_task": 0}],
   "cost": {"flops": 0, "flops_per_row": 100, "bytes": 0, "bytes_per_row": 80}, "lanes": 1},
  {"name": "update", "ops": ["sluice.einsum", "sluice.sgd"], "source": "logreg.cpp:4:1",
   "stages": [{"fn": 4, "tasks": 49, "rows_per_task": 0}, {"fn": 5, "tasks": 1, "rows_per_task": 0}],
   "cost": {"flops": 31360, "flops_per_row": 15680, "bytes": 150000, "bytes_per_row": 824}, "lanes": 0.625}],
 "entries": [
  {"name": "init", "inputs": [)" +
         value("key", "i32", "[2]", -1, keyAt, 8) + R"(], "outputs": [], "actions": [)" + init +
         R"(], "peak_bytes": [100608]},
  {"name": "train_step", "inputs": [)" +
         image + ", " + label + "], \"outputs\": [" + results + "], \"actions\": [" + forward + ", " + loss + ", " +
         update + R"(], "peak_bytes": [156800]},
  {"name": "eval_step", "inputs": [)" +
         image + ", " + label + "], \"outputs\": [" + results + "], \"actions\": [" + forward + ", " + loss +
         R"(], "peak_bytes": [156800]},
  {"name": "predict", "inputs": [)" +
         image + "], \"outputs\": [" + value("logits", "f32", "[64, 10]", 0, logitsAt, 2560) + "], \"actions\": [" +
         forward + R"(], "peak_bytes": [156800]}]})";
}

/// An element of the tiled weight.
static float &tiled(float *weight, int64_t row, int64_t column) {
  return weight[((row / tile) * pixels + column) * tile + row % tile];
}

static void initStage(void *const *buffers, int64_t, int64_t, int64_t) {
  const uint32_t *key = static_cast<const uint32_t *>(buffers[0]);
  float *weight = static_cast<float *>(buffers[1]);
  uint64_t state = static_cast<uint64_t>(key[0]) << 32 | key[1];
  for (int row = 0; row < classes; ++row) {
    for (int column = 0; column < pixels; ++column) {
      state += 0x9e3779b97f4a7c15u; // splitmix64
      uint64_t z = (state ^ state >> 30) * 0xbf58476d1ce4e5b9u;
      z = (z ^ z >> 27) * 0x94d049bb133111ebu;
      tiled(weight, row, column) = (static_cast<float>(z >> 40) * 0x1p-24f - 0.5f) * 0.02f;
    }
  }
  std::memset(buffers[2], 0, classes * sizeof(float));
  *static_cast<float *>(buffers[3]) = 0.05f;
  std::memset(buffers[4], 0, tiles * tile * pixels * sizeof(float));
  std::memset(buffers[5], 0, sizeof(int64_t));
}

/// Tasks of four rows: logits = image / 255 * weight' + bias.
static void forwardStage(void *const *buffers, int64_t rows, int64_t begin, int64_t end) {
  const uint8_t *image = static_cast<const uint8_t *>(buffers[0]);
  float *weight = static_cast<float *>(buffers[1]);
  const float *bias = static_cast<const float *>(buffers[2]);
  float *logits = static_cast<float *>(buffers[3]);
  for (int64_t row = begin * 4; row < std::min(end * 4, rows); ++row) {
    for (int64_t c = 0; c < classes; ++c) {
      float sum = bias[c];
      for (int64_t k = 0; k < pixels; ++k)
        sum += static_cast<float>(image[row * pixels + k]) * (1.0f / 255) * tiled(weight, c, k);
      logits[row * classes + c] = sum;
    }
  }
}

/// Tasks of eight rows: the gradient of the mean loss with respect to the logits, and each row's loss and hit.
static void lossStage(void *const *buffers, int64_t rows, int64_t begin, int64_t end) {
  const float *logits = static_cast<const float *>(buffers[0]);
  const int32_t *label = static_cast<const int32_t *>(buffers[1]);
  float *delta = static_cast<float *>(buffers[2]), *losses = static_cast<float *>(buffers[3]),
        *hits = static_cast<float *>(buffers[4]);
  for (int64_t row = begin * 8; row < std::min(end * 8, rows); ++row) {
    const float *x = logits + row * classes;
    float highest = *std::max_element(x, x + classes), sum = 0;
    for (int c = 0; c < classes; ++c)
      sum += std::exp(x[c] - highest);
    for (int c = 0; c < classes; ++c)
      delta[row * classes + c] =
          (std::exp(x[c] - highest) / sum - (c == label[row] ? 1.0f : 0.0f)) / static_cast<float>(rows);
    losses[row] = std::log(sum) + highest - x[label[row]];
    hits[row] = std::max_element(x, x + classes) - x == label[row] ? 1.0f : 0.0f;
  }
}

static void meanStage(void *const *buffers, int64_t rows, int64_t, int64_t) {
  const float *losses = static_cast<const float *>(buffers[3]), *hits = static_cast<const float *>(buffers[4]);
  float loss = 0, accuracy = 0;
  for (int64_t row = 0; row < rows; ++row) {
    loss += losses[row];
    accuracy += hits[row];
  }
  *static_cast<float *>(buffers[5]) = loss / static_cast<float>(rows);
  *static_cast<float *>(buffers[6]) = accuracy / static_cast<float>(rows);
}

/// Tasks of 16 columns: momentum and weight.
static void weightStage(void *const *buffers, int64_t rows, int64_t begin, int64_t end) {
  const uint8_t *image = static_cast<const uint8_t *>(buffers[0]);
  const float *delta = static_cast<const float *>(buffers[1]);
  float rate = *static_cast<const float *>(buffers[2]);
  float *weight = static_cast<float *>(buffers[3]), *velocity = static_cast<float *>(buffers[4]);
  for (int64_t k = begin * 16; k < end * 16; ++k) {
    for (int64_t c = 0; c < classes; ++c) {
      float gradient = 0;
      for (int64_t row = 0; row < rows; ++row)
        gradient += static_cast<float>(image[row * pixels + k]) * (1.0f / 255) * delta[row * classes + c];
      float &v = tiled(velocity, c, k);
      v = 0.9f * v + gradient;
      tiled(weight, c, k) -= rate * v;
    }
  }
}

static void biasStage(void *const *buffers, int64_t rows, int64_t, int64_t) {
  const float *delta = static_cast<const float *>(buffers[1]);
  float rate = *static_cast<const float *>(buffers[2]);
  float *bias = static_cast<float *>(buffers[5]);
  for (int64_t c = 0; c < classes; ++c) {
    float gradient = 0;
    for (int64_t row = 0; row < rows; ++row)
      gradient += delta[row * classes + c];
    bias[c] -= rate * gradient;
  }
  ++*static_cast<int64_t *>(buffers[6]);
}

static const sluice_stage_fn stages[] = {initStage, forwardStage, lossStage, meanStage, weightStage, biasStage};

sluice_artifact logisticRegression(const std::string &plan) {
  alignas(64) static const char nothing[64] = {};
  sluice_artifact artifact{sizeof(sluice_artifact),
                           SLUICE_ARTIFACT_ABI,
                           plan.data(),
                           plan.size(),
                           stages,
                           std::size(stages),
                           nothing,
                           0,
                           nullptr,
                           0,
                           0,
                           nullptr};
  artifact.checksum = runtime::checksumOf(artifact);
  return artifact;
}

} // namespace sluice::test
