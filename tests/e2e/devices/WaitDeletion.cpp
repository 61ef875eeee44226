#include "tests/e2e/devices/WaitDeletion.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <map>
#include <random>
#include <set>

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

/// How the host may begin: with each of the inputs or outputs, since it need not touch them in their order.
size_t beginnings(const json &entry) {
  return std::max<size_t>({1, entry.at("inputs").size(), entry.at("outputs").size()});
}

/// What notices that the plan of an entry lacks something.
Notice notice(const WaitingModel &model, const json &entry, const json &plan, const Outcome &expected) {
  size_t begins = beginnings(entry);
  for (size_t first = 0; first < begins && model.devices == Hostile::Simulator; ++first)
    if (runCalls({model, entry.at("name"), first}, plan, {0, "report"}).error.find("race: ") != std::string::npos)
      return Notice::Race;
  for (int seed = 0; seed < kSeeds * int(begins); ++seed) {
    Outcome outcome = runCalls({model, entry.at("name"), size_t(seed) % begins}, plan, {seed, "off"});
    if (!outcome.error.empty())
      return Notice::Failure; // of the plan or the test: a wait that is missing can only change bits
    if (outcome != expected)
      return Notice::Bits;
  }
  return Notice::None;
}

/// A wait of a plan: the entry it is in, and the input or action that waits.
struct PlannedWait {
  const json *entry;
  json *waiter;
  size_t number; ///< among those of the waiter
};

void addWaits(const json &entry, json &waiters, std::vector<PlannedWait> &found) {
  for (json &waiter : waiters) {
    for (size_t i = 0; waiter.contains("waits") && i < waiter.at("waits").size(); ++i)
      found.push_back({&entry, &waiter, i});
    if (waiter.contains("loop"))
      addWaits(entry, waiter.at("loop").at("actions"), found);
  }
}

/// The order of issue of some calls of an entry: what is done before each action begins, by the order of the queues and by waits.
class IssuedCalls {
public:
  IssuedCalls(const json &plan, const json &entry) : plan(plan), entry(entry) {}

  /// Whether the host knows that an action of a call so many calls ago is done, when it has come to the input or action
  /// `waiter` of a call; what it computes is done when it is issued, and so is all before it.
  bool isKnown(const json &waiter, size_t action, size_t callsAgo) {
    while (call <= callsAgo)
      issue(/*until=*/nullptr);
    issue(&waiter);
    return known.contains({call - callsAgo, action});
  }

private:
  using Node = std::pair<size_t, size_t>; // call and action

  void awaitAll(const json &waiter, std::set<Node> &done) const {
    for (const json &wait : waiter.value("waits", json::array()))
      if (size_t ago = wait[1]; ago <= call) {
        Node awaited{call - ago, wait[0]};
        done.insert(awaited);
        if (auto before = doneBefore.find(awaited); before != doneBefore.end())
          done.insert(before->second.begin(), before->second.end());
      }
  }

  bool isOfTheHost(const json &queue) const { return plan.at("queues").at(size_t(queue)).at("device") == 0; }

  void issue(const json *until) {
    for (const json &input : entry.at("inputs")) // in any order
      if (&input == until)
        return;
    for (const json &input : entry.at("inputs"))
      awaitAll(input, known);
    for (size_t number = 0; number < entry.at("actions").size(); ++number) {
      const json &action = entry.at("actions")[number];
      if (&action == until)
        return;
      std::set<Node> &done = doneBefore[{call, number}];
      awaitAll(action, done);
      for (const json &queue : action.at("queues")) {
        auto [last, isFirst] = lastOf.try_emplace(size_t(queue), Node{call, number});
        if (!isFirst) {
          done.insert(last->second);
          done.insert(doneBefore[last->second].begin(), doneBefore[last->second].end());
        }
        last->second = {call, number};
      }
      if (std::ranges::all_of(action.at("queues"), [&](const json &queue) { return isOfTheHost(queue); })) {
        known.insert(done.begin(), done.end());
        known.insert({call, number});
      }
    }
    ++call;
  }

  const json &plan, &entry;
  size_t call = 0;
  std::map<Node, std::set<Node>> doneBefore; // before each begins
  std::map<size_t, Node> lastOf;             // of each queue
  std::set<Node> known;                      // to the host
};

/// Whether bits tell of what goes wrong in any call: outputs of more than one element are those of the last call, and an
/// entry without outputs writes over what the call before it wrote.
bool everyCallIsSeen(const Program &program) {
  size_t scalars = scalarsOf(program).size();
  return scalars > 0 && scalars == program.what.model.program().entry(program.entry).outputs.size();
}

/// Whether the host has waited for the same anyway, for what it computes. Only a host that computes later needs such a wait.
bool isImpliedByTheHost(const PlannedWait &wait, const json &plan) {
  json &waits = wait.waiter->at("waits");
  const json all = waits;
  waits.erase(wait.number);
  bool isKnown = IssuedCalls(plan, *wait.entry).isKnown(*wait.waiter, all[wait.number][0], all[wait.number][1]);
  waits = all;
  return isKnown;
}

/// The waits of an entry whose absence something can tell of.
std::vector<PlannedWait> waitsOf(const WaitingModel &model, json &plan, json &entry) {
  std::vector<PlannedWait> waits;
  bool isEmulated = model.devices == Hostile::EmulatedCuda;
  if (isEmulated && !everyCallIsSeen({model, entry.at("name")}))
    return waits;
  addWaits(entry, entry.at("inputs"), waits);
  addWaits(entry, entry.at("actions"), waits);
  std::erase_if(waits, [&](const PlannedWait &wait) { return isEmulated && isImpliedByTheHost(wait, plan); });
  return waits;
}

/// Draws so many.
void drawSample(std::vector<PlannedWait> &waits, size_t most) {
  std::mt19937 random(7);
  for (size_t i = 0; i < most && i < waits.size(); ++i)
    std::swap(waits[i], waits[i + random() % (waits.size() - i)]);
  waits.resize(std::min(most, waits.size()));
}

void deleteWait(const WaitingModel &model, const json &plan, const PlannedWait &wait, const Outcome &expected,
                NoticedWaits &count) {
  json &waits = wait.waiter->at("waits");
  const json all = waits;
  waits.erase(wait.number);
  Notice best = notice(model, *wait.entry, plan, expected);
  EXPECT_TRUE(best == Notice::Race || best == Notice::Bits)
      << wait.entry->at("name") << ": " << (best == Notice::None ? "nothing noticed" : "the runs fail without")
      << " the wait " << all[wait.number] << " of " << *wait.waiter;
  (best == Notice::Race ? count.races : count.bits) += best == Notice::Race || best == Notice::Bits;
  waits = all;
}

} // namespace

NoticedWaits expectEveryWaitIsNeeded(const WaitingModel &model) {
  json plan = json::parse(model.model.planText());
  std::map<std::string, Outcome> expected;
  std::vector<PlannedWait> waits;
  for (json &entry : plan.at("entries")) {
    std::string name = entry.at("name");
    std::vector<PlannedWait> its = waitsOf(model, plan, entry);
    if (model.devices == Hostile::EmulatedCuda && its.empty())
      continue;
    Outcome outcome = expected[name] = runCalls({model, name}, plan, {0, "report"});
    EXPECT_EQ(outcome.error, "") << name;
    for (int seed = 1; seed < (model.devices == Hostile::EmulatedCuda ? 3 : 8); ++seed)
      EXPECT_TRUE(runCalls({model, name}, plan, {seed, "report"}) == outcome) << name << ", seed " << seed;
    waits.insert(waits.end(), its.begin(), its.end());
  }
  NoticedWaits count;
  if (testing::Test::HasFailure())
    return count;
  size_t all = waits.size();
  drawSample(waits, model.most);
  for (const PlannedWait &wait : waits)
    deleteWait(model, plan, wait, expected.at(wait.entry->at("name")), count);
  std::printf("of %zu waits %d whose absence is a race, %d that only bits tell of\n", all, count.races, count.bits);
  return count;
}

} // namespace sluice::test
