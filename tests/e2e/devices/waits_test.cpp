// Every wait of a plan is needed: without it there is a race, or queues that run as late and in as hostile an order as
// events allow give other bits.
#include "tests/e2e/Harness.h"
#include "tests/e2e/devices/LeNetBatches.h"
#include <algorithm>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

using namespace sluice::test;
using nlohmann::json;

namespace {

constexpr int64_t kBatch = 8;
constexpr int kSeeds = 64;

/// One entry point of a model, and the order in which the host writes its inputs and reads its outputs.
struct Program {
  Compiled &model;
  std::string entry;
  size_t first = 0;

  /// A buffer is used again, and so is the one that was used again.
  int calls() const { return int(model.plan().inFlight) + 2; }
};

/// What some calls leave in states and outputs, or why they failed.
struct Outcome {
  std::vector<std::byte> states;
  Values outputs;
  std::string error;

  bool operator==(const Outcome &) const = default;
};

Values inputsFor(int call) {
  Values inputs = lenetBatch(call, kBatch);
  inputs["key"] = {double(call), 7};
  return inputs;
}

/// Tells the devices that the host writes the inputs of the next call, as work of a queue of its own: so a race with
/// what still reads them is reported like any other.
void showWrites(const Program &program) {
  sluice::runtime::Instance &instance = program.model.program();
  sluice::runtime::DeviceQueue host(instance.executor().devices().context(1), SLUICE_HOST, SLUICE_QUEUE_COMPUTE,
                                    "the host that writes inputs");
  const std::vector<sluice::runtime::Value> &inputs = instance.entry(program.entry).inputs;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const sluice::runtime::Value &input = inputs[(program.first + i) % inputs.size()];
    host.discard(instance.inputAddress(input), size_t(input.bytes));
    host.synchronize();
  }
}

/// Calls that follow each other without a look at what they give, but for the last.
Outcome runCalls(const Program &program, const json &plan, const std::string &settings) {
  Compiled &model = program.model;
  Outcome outcome;
  try {
    model.restart({.threads = 1, .sim = settings, .plan = plan.dump()});
    model.init(5);
    for (int call = 0; call < program.calls(); ++call) {
      showWrites(program);
      model.submit(program.entry, inputsFor(call), kBatch, program.first);
    }
    outcome.outputs = model.outputs(program.entry, kBatch, program.first);
    outcome.states = model.stateBytes();
  } catch (const std::exception &error) {
    outcome.error = error.what();
  }
  return outcome;
}

std::string seeded(int seed, const char *races) { return "seed=" + std::to_string(seed) + ",races=" + races; }

enum class Notice { None, Race, Bits, Failure };

/// What notices that the plan lacks something.
Notice notice(const Program &program, const json &plan, const Outcome &expected) {
  Outcome watched = runCalls(program, plan, seeded(0, "report"));
  if (watched.error.find("race: ") != std::string::npos)
    return Notice::Race;
  for (int seed = 0; seed < kSeeds; ++seed) {
    Outcome outcome = runCalls(program, plan, seeded(seed, "off"));
    if (!outcome.error.empty())
      return Notice::Failure; // of the plan or the test: a wait that is missing can only change bits
    if (outcome != expected)
      return Notice::Bits;
  }
  return Notice::None;
}

/// The inputs and actions of an entry that wait for something.
std::vector<json *> waiters(json &entry) {
  std::vector<json *> found;
  for (const char *part : {"inputs", "actions"})
    for (json &item : entry.at(part))
      if (item.contains("waits"))
        found.push_back(&item);
  return found;
}

/// How the host may begin: with each of the inputs or outputs, since it need not touch them in their order.
size_t beginnings(const json &entry) {
  return std::max<size_t>({1, entry.at("inputs").size(), entry.at("outputs").size()});
}

struct Count {
  int races = 0, bits = 0;
};

/// Deletes each wait of one entry in turn.
void deleteEach(Compiled &model, json &plan, json &entry, const Outcome &expected, Count &count) {
  std::string name = entry.at("name");
  for (json *waiter : waiters(entry)) {
    json &waits = waiter->at("waits");
    const json all = waits;
    for (size_t i = 0; i < all.size(); ++i) {
      waits.erase(i);
      Notice best = Notice::None;
      for (size_t first = 0; first < beginnings(entry) && best == Notice::None; ++first)
        best = notice({model, name, first}, plan, expected);
      EXPECT_TRUE(best == Notice::Race || best == Notice::Bits)
          << name << ": " << (best == Notice::None ? "nothing noticed" : "the runs fail without") << " the wait "
          << all[i] << " of " << *waiter;
      (best == Notice::Race ? count.races : count.bits) += best != Notice::None;
      waits = all;
    }
  }
}

struct Placement {
  const char *name, *devices;
  int inFlight = 2;
};
constexpr Placement kPlacements[] = {{"OnOneAccelerator", "sim:0"},
                                     {"Split", "cpu,sim:0 --pin conv=gpu:0"},
                                     {"OverTwoAccelerators", "cpu,sim:0,sim:1 --pin conv=gpu:0 --pin fc=gpu:1"},
                                     {"OneCallInFlight", "cpu,sim:0 --pin conv=gpu:0", 1},
                                     {"ThreeCallsInFlight", "cpu,sim:0 --pin conv=gpu:0", 3}};

std::string textOf(const Placement &placement) {
  std::string text =
      modelText("lenet", "--input f32 --batch 8 --copies insert --devices " + std::string(placement.devices));
  return replaced(text, " capacity 8", " capacity 8 in_flight " + std::to_string(placement.inFlight));
}

class Waits : public testing::TestWithParam<int> {};

} // namespace

TEST_P(Waits, NoneCanBeLeftOut) {
  Compiled model(textOf(kPlacements[GetParam()]));
  json plan = json::parse(model.planText());
  ASSERT_EQ(plan.at("in_flight"), kPlacements[GetParam()].inFlight);
  Count count;
  for (json &entry : plan.at("entries")) {
    Outcome expected = runCalls({model, entry.at("name")}, plan, seeded(0, "report"));
    ASSERT_EQ(expected.error, "") << entry.at("name");
    for (int seed = 1; seed < 8; ++seed)
      ASSERT_TRUE(runCalls({model, entry.at("name")}, plan, seeded(seed, "report")) == expected) << "seed " << seed;
    deleteEach(model, plan, entry, expected, count);
  }
  std::printf("%d waits whose absence is a race, %d that only bits tell of\n", count.races, count.bits);
  EXPECT_GT(count.races, 0);
}

INSTANTIATE_TEST_SUITE_P(LeNet, Waits, testing::Range(0, int(std::size(kPlacements))),
                         [](const auto &info) { return kPlacements[info.param].name; });

// Inputs that exist as often as calls may be in flight are the same inputs.
TEST(CallsInFlight, ChangeNoBit) {
  constexpr int kRuns = 7;
  std::vector<std::vector<std::byte>> states;
  for (int inFlight : {1, 2, 3, 5}) {
    Compiled model(textOf({"", "cpu,sim:0 --pin conv=gpu:0", inFlight}), {},
                   {.threads = 1, .sim = "seed=3,races=report"});
    ASSERT_EQ(model.plan().inFlight, inFlight);
    ASSERT_EQ(model.plan().findEntry("train_step")->inputs[0].slot.stride > 0, inFlight > 1);
    model.init(5);
    for (int call = 0; call < kRuns; ++call)
      model.submit("train_step", inputsFor(call), kBatch);
    states.push_back(model.stateBytes());
  }
  for (const std::vector<std::byte> &state : states)
    EXPECT_TRUE(state == states.front());
}
