#include "Scaler.h"

#include "PlanJson.h"

#include <algorithm>
#include <cstring>
#include <vector>

namespace sluice::test {

// Arenas.
static constexpr int hostState = 0, hostTransient = 1, deviceState = 2, deviceTransient = 3;
// Queues.
static constexpr int cpu = 0, acc = 1, accIn = 2, accOut = 3;

static constexpr int rowBytes = 4, batchBytes = scalerCapacity * rowBytes;

Json scalerPlan() {
  Json factor = place(hostState, 0), calls = place(hostState, 64), total = place(deviceState, 0),
       mirror = place(deviceState, 64);
  Json xOnHost = place(hostTransient, 0, batchBytes), yOnHost = place(hostTransient, 512),
       sumOnHost = place(hostTransient, 768), largest = place(hostTransient, 832);
  Json x = place(deviceTransient, 0, batchBytes), y = place(deviceTransient, 512), sum = place(deviceTransient, 768);

  Json factorState = state("factor", "hyperparameter", "i32", factor, 4);
  factorState["mirrors"] = Json::array({mirror});
  Json input = value("x", "i32", Json::array({scalerCapacity}), 0, xOnHost, batchBytes);
  input["waits"] = Waits{{bringX, 2}};
  std::vector<Json> scaleBuffers = {buffer(x, batchBytes, "r"), buffer(mirror, 4, "r"), buffer(total, 4, "rw"),
                                    buffer(y, batchBytes, "w"), buffer(sum, 4, "w")};
  std::vector<Json> countBuffers = {buffer(yOnHost, batchBytes, "r"), buffer(calls, 8, "rw"), buffer(largest, 4, "w")};
  Json none = Json::array();

  Json plan;
  plan["format"] = runtime::planFormat;
  plan["model"] = "scaler";
  plan["build"] = Json::object();
  plan["capacity"] = scalerCapacity;
  plan["in_flight"] = 2;
  plan["devices"] = {{{"name", "cpu"}, {"backend", "cpu"}, {"compiled_for", 0}},
                     {{"name", "acc0"}, {"backend", "sim"}, {"compiled_for", 0}, {"settings", "seed=7"}}};
  plan["arenas"] = {{{"name", "state"}, {"device", 0}, {"bytes", 128}},
                    {{"name", "transient"}, {"device", 0}, {"bytes", 896}},
                    {{"name", "state"}, {"device", 1}, {"bytes", 128}},
                    {{"name", "transient"}, {"device", 1}, {"bytes", 8192}}};
  plan["queues"] = {{{"name", "cpu"}, {"device", 0}, {"kind", "compute"}},
                    {{"name", "acc0"}, {"device", 1}, {"kind", "compute"}},
                    {{"name", "acc0.in"}, {"device", 1}, {"kind", "copy"}},
                    {{"name", "acc0.out"}, {"device", 1}, {"kind", "copy"}}};
  plan["states"] = {factorState, state("calls", "step", "i64", calls, 8), state("total", "parameter", "i32", total, 4)};
  plan["kernels"] = {kernel("zero_total", 1, 0, 0), kernel("zero_calls", 0, 1, 0), kernel("scale", 1, 2, 200000),
                     kernel("count", 0, 3, 100)};
  Json init, step;
  init["name"] = "init";
  init["inputs"] = init["outputs"] = none;
  init["actions"] = {launchAction(0, {buffer(total, 4, "w")}, acc, {}),
                     launchAction(1, {buffer(factor, 4, "w"), buffer(calls, 8, "w")}, cpu, {})};
  init["peak_bytes"] = {1024, 16512};
  step["name"] = "step";
  step["inputs"] = Json::array({input});
  step["outputs"] = {value("sum", "i32", none, -1, sumOnHost, 4), value("largest", "i32", none, -1, largest, 4)};
  step["actions"] = {
      copyAction("factor", factor, mirror, {4, 0, 4}, "stale", "state", acc, {}),
      copyAction("x", xOnHost, x, {0, rowBytes, batchBytes}, "step", "input", accIn, {{scale, 2}}),
      launchAction(2, scaleBuffers, acc, {{bringX, 0}, {returnY, 1}}),
      copyAction("y", y, yOnHost, {0, rowBytes, batchBytes}, "step", "use", accOut, {{scale, 0}, {count, 1}}),
      launchAction(3, countBuffers, cpu, {{returnY, 0}}),
      copyAction("sum", sum, sumOnHost, {4, 0, 4}, "asked", "output", accOut, {{scale, 0}})};
  step["actions"][scale]["last_uses"] = Json::array({buffer(x, batchBytes, "r")});
  step["actions"][count]["last_uses"] = Json::array({buffer(yOnHost, batchBytes, "r")});
  step["peak_bytes"] = {1024, 16512};
  plan["entries"] = {init, step};
  return plan;
}

template <typename T> static T &scalar(void *buffer) { return *static_cast<T *>(buffer); }

static void zeroTotal(void *const *buffers, int64_t, int64_t, int64_t) { scalar<int32_t>(buffers[0]) = 0; }

static void zeroCalls(void *const *buffers, int64_t, int64_t, int64_t) {
  scalar<int32_t>(buffers[0]) = 3;
  scalar<int64_t>(buffers[1]) = 0;
}

static void scaleStage(void *const *buffers, int64_t rows, int64_t, int64_t) {
  const int32_t *x = static_cast<const int32_t *>(buffers[0]);
  int32_t *y = static_cast<int32_t *>(buffers[3]), sum = 0;
  for (int64_t i = 0; i < rows; ++i)
    sum += y[i] = x[i] * scalar<int32_t>(buffers[1]);
  scalar<int32_t>(buffers[2]) += sum;
  scalar<int32_t>(buffers[4]) = sum;
}

static void countStage(void *const *buffers, int64_t rows, int64_t, int64_t) {
  const int32_t *y = static_cast<const int32_t *>(buffers[0]);
  ++scalar<int64_t>(buffers[1]);
  scalar<int32_t>(buffers[2]) = *std::max_element(y, y + rows);
}

static const sluice_stage_fn stages[] = {zeroTotal, zeroCalls, scaleStage, countStage};

sluice_artifact scaler(const std::string &plan) { return artifactOf(plan, stages); }

runtime::Plan parsed(const nlohmann::ordered_json &plan) {
  std::string text = plan.dump();
  return runtime::readPlan(scaler(text));
}

} // namespace sluice::test
