// transport_rank LIBRARY SCENARIO RANK SIZE ADDRESS SECRET DEADLINE: one of several processes, which plays its part and
// prints how it ends. Open MPI's ranks take their numbers, and the rest, from their launcher, and leave these out.
#include "tests/backends/transport/RankProcess.h"

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <thread>
#include <unistd.h>

using namespace sluice::test;
using sluice::conformance::exchangedTypes;
using sluice::conformance::Task;

static constexpr int32_t kKinds[] = {SLUICE_ALL_REDUCE, SLUICE_BROADCAST, SLUICE_ALL_GATHER, SLUICE_REDUCE_SCATTER};

static void say(const RankProcess &process, const std::string &text) {
  std::string line = "rank " + std::to_string(process.rank()) + ": " + text + "\n";
  [[maybe_unused]] ssize_t written = write(STDOUT_FILENO, line.data(), line.size());
}

static void say(const RankProcess &process, const Outcome &outcome) {
  say(process, std::to_string(outcome.first) + " " + outcome.second);
}

/// Some have more than others, and some nothing.
static std::vector<size_t> unevenCounts(size_t about, int32_t size) {
  std::vector<size_t> counts;
  for (int32_t rank = 0; rank < size; ++rank)
    counts.push_back(rank == 1 ? 0 : about + static_cast<size_t>(rank) * 37);
  return counts;
}

static std::string checkEveryWay(RankProcess &process, Task task, unsigned seed) {
  for (int32_t reduction : {SLUICE_SUM, SLUICE_MAX})
    for (bool inPlace : {false, true})
      for (task.root = 0; task.root < (task.kind == SLUICE_BROADCAST ? process.size() : 1); ++task.root) {
        task.reduction = reduction;
        if (std::string wrong = process.check(task, seed, inPlace); !wrong.empty())
          return wrong;
      }
  return "";
}

static std::string everything(RankProcess &process) {
  unsigned seed = 0;
  for (int32_t kind : kKinds)
    for (sluice_dtype type : exchangedTypes())
      for (size_t count : {size_t(0), size_t(1), size_t(300), size_t(3001)}) {
        std::string wrong = checkEveryWay(process, {kind, type, SLUICE_SUM, 0, count, {}}, ++seed);
        bool isShared = kind == SLUICE_ALL_GATHER || kind == SLUICE_REDUCE_SCATTER;
        if (wrong.empty() && isShared)
          wrong = checkEveryWay(process, {kind, type, SLUICE_SUM, 0, 0, unevenCounts(count, process.size())}, ++seed);
        if (!wrong.empty())
          return wrong;
      }
  for (int32_t kind : kKinds) // many pieces of each rank, and no whole number of them
    if (std::string wrong = checkEveryWay(process, {kind, SLUICE_DTYPE_f32, SLUICE_SUM, 0, 700001, {}}, ++seed);
        !wrong.empty())
      return wrong;
  return "all is right";
}

static std::string randomly(RankProcess &process) {
  std::mt19937 random(11); // the same on all ranks
  for (unsigned i = 0; i < 100; ++i) {
    int32_t kind = kKinds[random() % 4];
    sluice_dtype type = exchangedTypes()[random() % exchangedTypes().size()];
    auto root = static_cast<int32_t>(random() % static_cast<unsigned>(process.size()));
    size_t count = random() % (size_t(1) << random() % 18);
    bool inPlace = random() % 2;
    if (std::string wrong = process.check({kind, type, SLUICE_SUM, root, count, {}}, i, inPlace); !wrong.empty())
      return wrong;
  }
  int64_t done = 0;
  for (int32_t kind : kKinds)
    done += process.exchanges(kind);
  return "all is right, after " + std::to_string(done);
}

static Outcome allReduce(RankProcess &process, size_t count = 100000) {
  std::vector<float> values(count, 1.0f);
  return process.exchange({SLUICE_ALL_REDUCE, SLUICE_DTYPE_f32, SLUICE_SUM, 0, count, {}, "gradient of fc1.weight"},
                          values.data(), values.data());
}

/// The last rank submits a different second exchange.
static void differ(RankProcess &process, const std::string &what) {
  allReduce(process);
  Task task{SLUICE_ALL_REDUCE, SLUICE_DTYPE_f32, SLUICE_SUM, 0, 5000, {}, "dw1"};
  if (process.rank() == process.size() - 1) {
    task.label = what == "label" ? "dw2" : task.label;
    task.count = what == "count" ? 4999 : what == "small" ? 3 : task.count;
    task.kind = what == "kind" ? SLUICE_BROADCAST : task.kind;
    task.dtype = what == "type" ? SLUICE_DTYPE_i32 : task.dtype;
    task.reduction = what == "reduction" ? SLUICE_MAX : task.reduction;
  }
  std::vector<float> values(task.count);
  Outcome first = process.exchange(task, values.data(), values.data());
  say(process, first);
  if (allReduce(process) != first || process.error() != first)
    say(process, "a later call has another error");
}

/// The last rank ends, as given by `what`, in the middle of exchanges.
static void until(RankProcess &process, const std::string &what) {
  bool isLast = process.rank() == process.size() - 1;
  for (int i = 0; i < 3; ++i)
    allReduce(process);
  say(process, "has begun");
  if (isLast && what == "killed")
    raise(SIGKILL);
  if (isLast && what == "stopped")
    raise(SIGSTOP);
  if (isLast && what == "aborts") {
    std::thread other([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(300));
      process.abort();
    });
    say(process, process.rank() == 0 ? Outcome() : allReduce(process)); // the others do not come
    other.join();
    return;
  }
  if (what == "aborts" && process.rank() == 0) // it says nothing, and comes to nothing
    std::this_thread::sleep_for(std::chrono::milliseconds(1500));
  say(process, allReduce(process));
}

/// Properties of the transport itself, between ranks 0 and 1.
static void messages(RankProcess &process) {
  const sluice_transport_library &library = process.library();
  int32_t other = 1 - process.rank();
  std::vector<int> numbers(1000, -1), own(1000);
  std::vector<sluice_transfer *> transfers;
  for (int i = 0; i < 1000; ++i) { // a thousand at once, of four bytes or none
    own[static_cast<size_t>(i)] = i + process.rank();
    auto at = static_cast<size_t>(i);
    size_t bytes = i % 3 == 0 ? 0 : sizeof(int);
    library.receive(process.transport(), other, &numbers[at], bytes, &transfers.emplace_back());
    library.send(process.transport(), other, &own[at], bytes, &transfers.emplace_back());
  }
  for (auto at = transfers.rbegin(); at != transfers.rend(); ++at)
    if (Outcome outcome = process.wait(*at, 20); outcome.first != SLUICE_OK)
      return say(process, outcome);
  for (int i = 0; i < 1000; ++i)
    if (numbers[static_cast<size_t>(i)] != (i % 3 == 0 ? -1 : i + other))
      return say(process, "message " + std::to_string(i) + " is another one");
  sluice_transfer *transfer = nullptr;
  if (process.rank() == 0) { // 12 bytes, where 8 are to come
    library.send(process.transport(), 1, own.data(), 12, &transfer);
    process.wait(transfer, 5);
    library.receive(process.transport(), 1, numbers.data(), 4, &transfer);
    process.wait(transfer, 5); // its end
    return say(process, "sent 12 bytes");
  }
  library.receive(process.transport(), 0, numbers.data(), 8, &transfer);
  say(process, process.wait(transfer, 20));
}

static void play(RankProcess &process, const std::string &scenario) {
  if (scenario == "everything")
    return say(process, everything(process));
  if (scenario == "randomly")
    return say(process, randomly(process));
  if (scenario == "messages")
    return messages(process);
  if (scenario.rfind("differ ", 0) == 0)
    return differ(process, scenario.substr(7));
  until(process, scenario);
}

static int numberIn(const char *text) { return text ? std::atoi(text) : -1; }

int main(int argc, char **argv) {
  bool byLauncher = argc == 4; // LIBRARY SCENARIO DEADLINE
  if (argc != 8 && !byLauncher)
    return 2;
  int rank = numberIn(byLauncher ? std::getenv("OMPI_COMM_WORLD_RANK") : argv[3]);
  int size = numberIn(byLauncher ? std::getenv("OMPI_COMM_WORLD_SIZE") : argv[4]);
  double deadline = std::atof(argv[argc - 1]);
  RankProcess process(argv[1], rank, size);
  Outcome opened = process.open(byLauncher ? nullptr : argv[5], byLauncher ? "secret" : argv[6], deadline);
  if (opened.first != SLUICE_OK) {
    say(process, opened);
    return opened.first;
  }
  process.join(deadline);
  play(process, argv[2]);
  return 0;
}
