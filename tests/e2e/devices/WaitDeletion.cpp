#include "tests/e2e/devices/WaitDeletion.h"

#include <algorithm>
#include <gtest/gtest.h>

using nlohmann::json;

namespace sluice::test {

namespace {

constexpr int kSeeds = 64;

/// One entry point of a model, and the order in which the host writes its inputs and reads its outputs.
struct Program {
  const WaitingModel &what;
  std::string entry;
  size_t first = 0;

  /// A buffer is used again, and so is the one that was used again; by then each copy of it has been in a call that was
  /// captured, and two in one that was replayed.
  int calls() const { return 2 * int(what.model.plan().inFlight) + 2; }
};

/// What some calls leave in states and outputs, or why they failed. Of all calls but the last, the outputs of one element
/// are looked at.
struct Outcome {
  std::vector<std::byte> states;
  Values outputs;
  std::vector<double> logged;
  std::string error;

  bool operator==(const Outcome &) const = default;
};

/// Tells the devices that the host writes the inputs of the next call, as work of a queue of its own: so a race with
/// what still reads them is reported like any other.
void showWrites(const Program &program) {
  sluice::runtime::Instance &instance = program.what.model.program();
  sluice::runtime::DeviceQueue host(instance.executor().devices().context(1), SLUICE_HOST, SLUICE_QUEUE_COMPUTE,
                                    "the host that writes inputs");
  const std::vector<sluice::runtime::Value> &inputs = instance.entry(program.entry).inputs;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const sluice::runtime::Value &input = inputs[(program.first + i) % inputs.size()];
    host.discard(instance.inputAddress(input), size_t(input.bytes));
    host.synchronize();
  }
}

/// The order of work of a run to come, and whether it tells of races.
struct Order {
  int seed;
  const char *races;

  std::string settingFor(Hostile devices) const {
    if (devices == Hostile::Simulator)
      return "seed=" + std::to_string(seed) + ",races=" + races;
    setenv("CUDA_EMU_SEED", std::to_string(seed).c_str(), /*overwrite=*/1);
    return "";
  }
};

/// The outputs of one element.
std::vector<const sluice::runtime::Value *> scalarsOf(const Program &program) {
  std::vector<const sluice::runtime::Value *> scalars;
  for (const sluice::runtime::Value &output : program.what.model.program().entry(program.entry).outputs)
    if (output.shape.empty())
      scalars.push_back(&output);
  return scalars;
}

void keepScalars(const Program &program) {
  sluice::runtime::Instance &instance = program.what.model.program();
  if (std::vector<const sluice::runtime::Value *> scalars = scalarsOf(program); !scalars.empty())
    instance.keepOutputs(instance.entry(program.entry), scalars);
}

std::vector<double> takeScalars(const Program &program) {
  sluice::runtime::Instance &instance = program.what.model.program();
  return scalarsOf(program).empty() ? std::vector<double>() : instance.takeOutputs(instance.entry(program.entry));
}

/// Calls that follow each other without a look at what they give, but for the last.
Outcome runCalls(const Program &program, const json &plan, const Order &order) {
  Compiled &model = program.what.model;
  Outcome outcome;
  try {
    model.restart({.threads = 1, .sim = order.settingFor(program.what.devices), .plan = plan.dump()});
    if (model.plan().findEntry("init"))
      model.init(5);
    keepScalars(program);
    for (int call = 0; call < program.calls(); ++call) {
      if (program.what.devices == Hostile::Simulator)
        showWrites(program);
      model.submit(program.entry, program.what.inputs(call), program.what.rows, program.first);
    }
    outcome.outputs = model.outputs(program.entry, program.what.rows, program.first);
    outcome.states = model.stateBytes();
    outcome.logged = takeScalars(program);
  } catch (const std::exception &error) {
    outcome.error = error.what();
  }
  return outcome;
}

enum class Notice { None, Race, Bits, Failure };

/// What notices that the plan lacks something.
Notice notice(const Program &program, const json &plan, const Outcome &expected) {
  if (program.what.devices == Hostile::Simulator &&
      runCalls(program, plan, {0, "report"}).error.find("race: ") != std::string::npos)
    return Notice::Race;
  for (int seed = 0; seed < kSeeds; ++seed) {
    Outcome outcome = runCalls(program, plan, {seed, "off"});
    if (!outcome.error.empty())
      return Notice::Failure; // of the plan or the test: a wait that is missing can only change bits
    if (outcome != expected)
      return Notice::Bits;
  }
  return Notice::None;
}

/// The actions that wait for something, in loops too.
void addWaiters(json &actions, std::vector<json *> &found) {
  for (json &action : actions) {
    if (action.contains("waits"))
      found.push_back(&action);
    if (action.contains("loop"))
      addWaiters(action.at("loop").at("actions"), found);
  }
}

/// The inputs and actions of an entry that wait for something.
std::vector<json *> waiters(json &entry) {
  std::vector<json *> found;
  for (json &input : entry.at("inputs"))
    if (input.contains("waits"))
      found.push_back(&input);
  addWaiters(entry.at("actions"), found);
  return found;
}

/// How the host may begin: with each of the inputs or outputs, since it need not touch them in their order.
size_t beginnings(const json &entry) {
  return std::max<size_t>({1, entry.at("inputs").size(), entry.at("outputs").size()});
}

/// Whether bits tell of what goes wrong in any call: outputs of more than one element are those of the last call, and an
/// entry without outputs writes over what the call before it wrote.
bool everyCallIsSeen(const Program &program) {
  size_t scalars = scalarsOf(program).size();
  return scalars > 0 && scalars == program.what.model.program().entry(program.entry).outputs.size();
}

/// Deletes each wait of one entry in turn.
void deleteEach(const WaitingModel &model, json &plan, json &entry, const Outcome &expected, NoticedWaits &count) {
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

} // namespace

NoticedWaits expectEveryWaitIsNeeded(const WaitingModel &model) {
  json plan = json::parse(model.model.planText());
  NoticedWaits count;
  for (json &entry : plan.at("entries")) {
    Outcome expected = runCalls({model, entry.at("name")}, plan, {0, "report"});
    EXPECT_EQ(expected.error, "") << entry.at("name");
    for (int seed = 1; seed < 8; ++seed)
      EXPECT_TRUE(runCalls({model, entry.at("name")}, plan, {seed, "report"}) == expected) << "seed " << seed;
    bool isTold = model.devices == Hostile::Simulator || everyCallIsSeen({model, entry.at("name")});
    if (isTold && !testing::Test::HasFailure())
      deleteEach(model, plan, entry, expected, count);
  }
  std::printf("%d waits whose absence is a race, %d that only bits tell of\n", count.races, count.bits);
  return count;
}

} // namespace sluice::test
