// Derived states, with a hand-written plan: `predict` reads `double`, which its derivation computes from `weight`.
#include "PlanJson.h"
#include "runtime/base/Status.h"
#include "runtime/instance/Instance.h"
#include "runtime/plan/WritePlan.h"

#include <gtest/gtest.h>

using namespace sluice;
using namespace sluice::runtime;
using test::buffer;
using test::Json;
using test::place;

namespace {

constexpr int weightAt = 0, doubleAt = 64, otherAt = 128; // states
constexpr int xAt = 0, yAt = 64;                          // transients

double &scalar(void *buffer) { return *static_cast<double *>(buffer); }

void twice(void *const *buffers, int64_t, int64_t, int64_t) { scalar(buffers[1]) = 2 * scalar(buffers[0]); }
void multiply(void *const *buffers, int64_t, int64_t, int64_t) {
  scalar(buffers[2]) = scalar(buffers[0]) * scalar(buffers[1]);
}
void increment(void *const *buffers, int64_t, int64_t, int64_t) { scalar(buffers[0]) += 1; }

/// An entry with one launch.
Json entryOf(const char *name, std::vector<Json> inputs, std::vector<Json> outputs, const std::vector<Json> &buffers,
             int kernel) {
  return test::entry(name, std::move(inputs), std::move(outputs), {test::launchAction(kernel, buffers, 0, {})});
}

/// `learn` adds 1 to `weight`, `note` adds 1 to `other`.
Json derivedPlan() {
  Json plan = test::cpuPlan("derived", /*stateBytes=*/192, /*transientBytes=*/128);
  plan["capacity"] = 0;
  plan["in_flight"] = 2;
  Json twice = test::state("double", "derived", "f64", place(0, doubleAt), 8);
  twice["sources"] = {0};
  plan["states"] = {test::state("weight", "parameter", "f64", place(0, weightAt), 8), twice,
                    test::state("other", "parameter", "f64", place(0, otherAt), 8)};
  plan["kernels"] = {test::kernel("twice", 0, 0, 0), test::kernel("multiply", 0, 1, 0),
                     test::kernel("increment", 0, 2, 0)};
  Json weight = buffer(place(0, weightAt), 8, "r"), written = buffer(place(0, weightAt), 8, "rw");
  Json predict =
      entryOf("predict", {test::scalarValue("x", place(1, xAt))}, {test::scalarValue("y", place(1, yAt))},
              {buffer(place(1, xAt), 8, "r"), buffer(place(0, doubleAt), 8, "r"), buffer(place(1, yAt), 8, "w")}, 1);
  predict["derivations"] = {3};
  plan["entries"] = {predict, entryOf("learn", {}, {}, {written}, 2),
                     entryOf("note", {}, {}, {buffer(place(0, otherAt), 8, "rw")}, 2),
                     entryOf("predict.derive", {}, {}, {weight, buffer(place(0, doubleAt), 8, "w")}, 0)};
  return plan;
}

sluice_artifact artifactOf(const std::string &plan) {
  static const sluice_stage_fn stages[] = {twice, multiply, increment};
  return test::artifactOf(plan, stages);
}

Plan parsed(const Json &plan) {
  std::string text = plan.dump();
  return readPlan(artifactOf(text));
}

struct Model {
  std::string text = derivedPlan().dump();
  sluice_artifact artifact = artifactOf(text);
  Instance instance{artifact, std::make_shared<DevicePool>(), {.threads = 1}};

  void set(const char *state, double value) {
    instance.setState(instance.state(state), std::as_bytes(std::span(&value, 1)));
  }
  void run(const char *entry) { instance.run(instance.entry(entry), 1); }
  double predict(double x) {
    const Entry &entry = instance.entry("predict");
    instance.setInput(entry.inputs[0], std::as_bytes(std::span(&x, 1)), 1);
    instance.run(entry, 1);
    double y = 0;
    instance.getOutput(entry.outputs[0], std::as_writable_bytes(std::span(&y, 1)), 1);
    return y;
  }
  int64_t derivations() const { return instance.calls(instance.plan().entries[3]); }
};

struct BadPlan {
  const char *name, *place, *value, *message;
};

class BadDerivations : public testing::TestWithParam<BadPlan> {};

} // namespace

TEST(Derivations, RunBeforeTheFirstCallOnly) {
  Model model;
  model.set("weight", 3);
  EXPECT_EQ(model.derivations(), 0);
  EXPECT_EQ(model.predict(5), 30);
  EXPECT_EQ(model.predict(7), 42);
  EXPECT_EQ(model.derivations(), 1);
}

TEST(Derivations, RunAgainOnceACallHasWrittenASource) {
  Model model;
  model.set("weight", 3);
  EXPECT_EQ(model.predict(1), 6);
  model.run("learn");
  model.run("learn");
  EXPECT_EQ(model.derivations(), 1);
  EXPECT_EQ(model.predict(1), 10);
  EXPECT_EQ(model.predict(1), 10);
  EXPECT_EQ(model.derivations(), 2);
}

TEST(Derivations, RunAgainOnceTheHostHasWrittenASource) {
  Model model;
  model.set("weight", 3);
  EXPECT_EQ(model.predict(1), 6);
  model.set("weight", 4);
  EXPECT_EQ(model.predict(1), 8);
  EXPECT_EQ(model.derivations(), 2);
}

TEST(Derivations, DoNotRunForOtherStates) {
  Model model;
  model.set("weight", 3);
  model.set("other", 1);
  EXPECT_EQ(model.predict(1), 6);
  model.set("other", 2);
  model.run("note");
  EXPECT_EQ(model.predict(1), 6);
  EXPECT_EQ(model.derivations(), 1);
}

TEST(Derivations, AreNotForCallers) {
  Model model;
  EXPECT_EQ(model.instance.plan().entryNames(), (std::vector<std::string>{"predict", "learn", "note"}));
  EXPECT_EQ(guarded([&] { model.run("predict.derive"); }).message,
            "the model has no entry point 'predict.derive'; it has: predict, learn, note");
  EXPECT_EQ(guarded([&] { model.set("double", 1); }).message,
            "the state 'double' cannot be set: it is computed from 'weight'; set that");
}

TEST(Derivations, NeedTheValuesOfTheirSources) {
  Model model;
  EXPECT_EQ(guarded([&] { model.predict(1); }).message,
            "'predict' reads 'weight', which nothing has set: run 'init' first, or set states and load weights");
}

TEST(Derivations, AreNoPartOfCheckpoints) {
  Plan plan = parsed(derivedPlan());
  EXPECT_FALSE(plan.findState("double")->isKept());
  EXPECT_EQ(plan.findState("double")->derivation, 3u);
  EXPECT_TRUE(plan.entries[3].isDerivation);
}

TEST(Derivations, AreWrittenAsTheyAreRead) {
  Plan plan = parsed(derivedPlan());
  EXPECT_EQ(parsed(Json::parse(writePlan(plan))), plan);
}

TEST_P(BadDerivations, AreRefused) {
  Json plan = derivedPlan();
  plan[Json::json_pointer(GetParam().place)] = Json::parse(GetParam().value);
  Status status = guarded([&] { parsed(plan); });
  EXPECT_EQ(status.code, ExitCode::invalid);
  EXPECT_NE(status.message.find(GetParam().message), std::string::npos) << status.message;
}

INSTANTIATE_TEST_SUITE_P(
    Plans, BadDerivations,
    testing::Values(BadPlan{"NoSources", "/states/1/sources", "[]", "is derived, but has no 'sources'"},
                    BadPlan{"SourcesOfAParameter", "/states/2/sources", "[0]", "has 'sources', but is not derived"},
                    BadPlan{"SourceOutOfRange", "/states/1/sources", "[3]", "has 3, which is no state, or is derived"},
                    BadPlan{"SourceIsDerived", "/states/1/sources", "[1]", "has 1, which is no state, or is derived"},
                    BadPlan{"OtherSource", "/states/1/sources", "[2]",
                            "reads 'weight', which is no source of the derived states that it computes"},
                    BadPlan{"DerivationOutOfRange", "/entries/0/derivations", "[4]", "has entry 4 of 4"},
                    BadPlan{"DerivationWithInputs", "/entries/0/derivations", "[0]",
                            "which has inputs, outputs, parts"},
                    BadPlan{"DerivationOfAParameter", "/entries/0/derivations", "[3, 1]",
                            "a derivation writes only derived states"},
                    BadPlan{"NoDerivation", "/entries/0/derivations", "[]", "only a derivation writes a derived state"},
                    BadPlan{"OverwrittenInput", "/entries/3/actions/0/launch/buffers/2",
                            R"({"arena": 1, "offset": 0, "bytes": 8, "access": "w"})",
                            "has the input 'x', which the derivation 'predict.derive' overwrites"},
                    BadPlan{"UnlistedDerivation", "/entries/1/actions/0/launch/buffers/0/offset", "64",
                            "only a derivation writes a derived state"}),
    [](const auto &info) { return info.param.name; });
