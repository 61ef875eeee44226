#include "PlanJson.h"

#include "runtime/plan/ArtifactChecksum.h"
#include "runtime/plan/Plan.h"

namespace sluice::test {

Json place(int arena, int offset, int stride) {
  Json json = {{"arena", arena}, {"offset", offset}};
  if (stride > 0)
    json["stride"] = stride;
  return json;
}

Json buffer(Json place, int bytes, const char *access) {
  place["bytes"] = bytes;
  place["access"] = access;
  return place;
}

Json copyAction(const char *value, const Json &from, const Json &to, const CopyBytes &bytes, const char *when,
                const char *reason, int queue, const Waits &waits) {
  return {{"copy",
           {{"value", value},
            {"from", from},
            {"to", to},
            {"bytes", bytes.fixed},
            {"bytes_per_row", bytes.perRow},
            {"capacity_bytes", bytes.capacity},
            {"when", when},
            {"reason", reason},
            {"source", "model.cpp:1:1"}}},
          {"queues", {queue}},
          {"waits", waits}};
}

Json launchAction(int kernel, const std::vector<Json> &buffers, int queue, const Waits &waits) {
  return {{"launch", {{"kernel", kernel}, {"buffers", buffers}}}, {"queues", {queue}}, {"waits", waits}};
}

Json value(const char *name, const char *dtype, const Json &shape, int rowsDim, const Json &place, int bytes) {
  Json json = {{"name", name}, {"dtype", dtype}, {"shape", shape}, {"rows_dim", rowsDim}, {"bytes", bytes}};
  json.update(place);
  return json;
}

Json state(const char *name, const char *kind, const char *dtype, const Json &place, int bytes) {
  Json json = {{"name", name}, {"kind", kind}, {"dtype", dtype}, {"shape", Json::array()}, {"bytes", bytes}};
  json.update(place);
  return json;
}

Json scalarValue(const char *name, const Json &place) { return value(name, "f64", Json::array(), -1, place, 8); }

Json entry(const char *name, std::vector<Json> inputs, std::vector<Json> outputs, std::vector<Json> actions) {
  Json entry = {{"name", name}};
  entry["inputs"] = std::move(inputs);
  entry["outputs"] = std::move(outputs);
  entry["actions"] = std::move(actions);
  entry["peak_bytes"] = Json::array({1024});
  return entry;
}

Json cpuPlan(const char *model, int stateBytes, int transientBytes) {
  Json plan;
  plan["format"] = runtime::planFormat;
  plan["model"] = model;
  plan["build"] = Json::object();
  plan["devices"] = Json::array({{{"name", "cpu"}, {"backend", "cpu"}, {"compiled_for", 0}}});
  plan["arenas"] = {{{"name", "state"}, {"device", 0}, {"bytes", stateBytes}},
                    {{"name", "transient"}, {"device", 0}, {"bytes", transientBytes}}};
  plan["queues"] = Json::array({{{"name", "cpu"}, {"device", 0}, {"kind", "compute"}}});
  return plan;
}

Json kernel(const char *name, int device, int function, double flopsPerRow) {
  return {{"name", name},
          {"device", device},
          {"stages", Json::array({{{"fn", function}, {"tasks", 1}, {"rows_per_task", 0}}})},
          {"cost", {{"flops", 0}, {"flops_per_row", flopsPerRow}, {"bytes", 0}, {"bytes_per_row", 8}}}};
}

sluice_artifact artifactOf(const std::string &plan, std::span<const sluice_stage_fn> stages) {
  alignas(64) static const char nothing[64] = {};
  static const sluice_code_section section{nothing, 4};
  sluice_artifact artifact{sizeof(sluice_artifact),
                           SLUICE_ARTIFACT_ABI,
                           plan.data(),
                           plan.size(),
                           stages.data(),
                           stages.size(),
                           nothing,
                           0,
                           &section,
                           1,
                           0,
                           nullptr};
  artifact.checksum = runtime::checksumOf(artifact);
  return artifact;
}

} // namespace sluice::test
