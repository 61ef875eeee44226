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

/// One entry point of a model, and the order of the host's input writes and output reads.
struct Program {
  const WaitingModel &what;
  std::string entry;
  size_t first = 0;

  /// Enough calls that each copy of a buffer was used in a captured call, and two copies in a replayed call.
  int calls() const { return 2 * int(what.model.plan().inFlight) + 2; }
};

/// States and outputs after several calls, or the calls' error. Only outputs of one element are read in all calls; the
/// others are read after the last.
struct Outcome {
  std::vector<std::byte> states;
  Values outputs;
  std::vector<double> logged;
  std::string error;

  bool operator==(const Outcome &) const = default;
};

/// Registers the host's writes of the next call's inputs as work of a separate device queue. Races with readers of
/// these inputs are then reported.
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

/// The execution order of a run, and whether it reports races.
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

/// Makes consecutive calls and reads the outputs of the last only.
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

/// The number of input or output orders of the host: it may start with any of them.
size_t beginnings(const json &entry) {
  return std::max<size_t>({1, entry.at("inputs").size(), entry.at("outputs").size()});
}

/// How a fault in an entry's plan is detected.
Notice notice(const WaitingModel &model, const json &entry, const json &plan, const Outcome &expected) {
  size_t begins = beginnings(entry);
  for (size_t first = 0; first < begins && model.devices == Hostile::Simulator; ++first)
    if (runCalls({model, entry.at("name"), first}, plan, {0, "report"}).error.find("race: ") != std::string::npos)
      return Notice::Race;
  for (int seed = 0; seed < kSeeds * int(begins); ++seed) {
    Outcome outcome = runCalls({model, entry.at("name"), size_t(seed) % begins}, plan, {seed, "off"});
    if (!outcome.error.empty())
      return Notice::Failure; // a failure of the plan or the test: a missing wait can only change bits
    if (outcome != expected)
      return Notice::Bits;
  }
  return Notice::None;
}

/// A wait of a plan: its entry, and the waiting input or action.
struct PlannedWait {
  const json *entry;
  json *waiter;
  size_t number; ///< index among the waiter's waits
};

void addWaits(const json &entry, json &waiters, std::vector<PlannedWait> &found) {
  for (json &waiter : waiters) {
    for (size_t i = 0; waiter.contains("waits") && i < waiter.at("waits").size(); ++i)
      found.push_back({&entry, &waiter, i});
    if (waiter.contains("loop"))
      addWaits(entry, waiter.at("loop").at("actions"), found);
  }
}

/// The issue order of several calls of an entry: for each action, the work that queue order and waits place before it.
class IssuedCalls {
public:
  IssuedCalls(const json &plan, const json &entry) : plan(plan), entry(entry) {}

  /// Whether an action, `callsAgo` calls earlier, is known to be complete when the host reaches the input or action
  /// `waiter`. The host's own work is complete when issued, including all work before it.
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
  std::map<Node, std::set<Node>> doneBefore; // work that precedes each action
  std::map<size_t, Node> lastOf;             // by queue
  std::set<Node> known;                      // known to the host to be complete
};

/// Whether differences in any call are visible. Outputs of more than one element are only read after the last call; an
/// entry without outputs overwrites the results of the previous call.
bool everyCallIsSeen(const Program &program) {
  size_t scalars = scalarsOf(program).size();
  return scalars > 0 && scalars == program.what.model.program().entry(program.entry).outputs.size();
}

/// Whether the host has already waited for the same action because of its own work. Only a host with delayed work needs
/// such a wait.
bool isImpliedByTheHost(const PlannedWait &wait, const json &plan) {
  json &waits = wait.waiter->at("waits");
  const json all = waits;
  waits.erase(wait.number);
  bool isKnown = IssuedCalls(plan, *wait.entry).isKnown(*wait.waiter, all[wait.number][0], all[wait.number][1]);
  waits = all;
  return isKnown;
}

/// The waits of an entry whose deletion is detectable.
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

/// Selects a random sample of `most` waits.
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
    if (!model.model.plan().findEntry(name)) // a derivation, which callers cannot call
      continue;
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
