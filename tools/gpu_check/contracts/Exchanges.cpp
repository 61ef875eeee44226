// NCCL: its presence, and non-blocking communicators of one rank and of two devices.
#include "backends/cuda/runtime/Nccl.h"
#include "tools/gpu_check/contracts/Machine.h"

#include <chrono>
#include <thread>

namespace sluice::gpu_check {

using namespace cuda;

static const Nccl &library() {
  try {
    return Nccl::get();
  } catch (const cuda::Error &error) {
    throw NotTried(error.what());
  }
}

static bool isFine(NcclResult result) { return result == NcclResult::Success || result == NcclResult::InProgress; }

static void check(NcclResult result, const std::string &what) {
  expect(isFine(result), what + " gives " + library().resultText(result) + ": " + library().lastError(nullptr));
}

/// The communicator's state after it is no longer in progress.
static NcclResult finalStateOf(NcclCommunicator communicator) {
  auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  NcclResult state = NcclResult::InProgress;
  while (state == NcclResult::InProgress) {
    expect(std::chrono::steady_clock::now() < end, "a communicator is in progress for half a minute");
    std::this_thread::sleep_for(std::chrono::microseconds(50));
    check(library().asyncError(communicator, &state), "ncclCommGetAsyncError");
  }
  return state;
}

static void waitUntilReady(NcclCommunicator communicator, const std::string &what) {
  check(finalStateOf(communicator), what);
}

namespace {

/// Ranks on the devices from 0, created in one group.
struct Ranks {
  explicit Ranks(Machine &machine, int size = 1) : machine(machine), communicators(size_t(size)) {
    NcclId id;
    NcclConfig config;
    check(library().makeId(&id), "ncclGetUniqueId");
    check(library().groupStart(), "ncclGroupStart");
    for (int rank = 0; rank < size; ++rank) {
      machine.makeCurrent(rank);
      streams.push_back(machine.stream());
      check(library().init(&communicators[size_t(rank)], size, id, rank, &config), "ncclCommInitRankConfig");
    }
    check(library().groupEnd(), "ncclGroupEnd");
    for (NcclCommunicator its : communicators)
      waitUntilReady(its, "a new communicator");
    machine.makeCurrent(0);
  }

  /// On one rank, in floats.
  void allReduce(DeviceAddress from, DeviceAddress to, size_t count) {
    check(library().allReduce(pointer(from), pointer(to), count, NcclType::F32, NcclReduction::Sum, communicators[0],
                              streams[0]),
          "ncclAllReduce");
    waitUntilReady(communicators[0], "an all-reduce");
  }
  static void *pointer(DeviceAddress address) { return reinterpret_cast<void *>(address); }

  Machine &machine;
  std::vector<NcclCommunicator> communicators;
  std::vector<DriverStream> streams;
};

} // namespace

static void isThere(Machine &) { expect(!library().versionText.empty(), "NCCL has no version"); }

/// With one rank every exchange is a bitwise copy, or nothing if in place.
static void copiesAlone(Machine &machine) {
  Ranks one(machine);
  const Nccl &nccl = library();
  NcclCommunicator its = one.communicators[0];
  DriverStream stream = one.streams[0];
  constexpr size_t kCount = 1000;
  for (auto [type, bytes] : {std::pair(NcclType::F32, 4),
                             {NcclType::F64, 8},
                             {NcclType::I32, 4},
                             {NcclType::I64, 8},
                             {NcclType::F16, 2},
                             {NcclType::BF16, 2}})
    for (NcclReduction reduction : {NcclReduction::Sum, NcclReduction::Max})
      for (int kind = 0; kind < 5; ++kind)
        for (bool inPlace : {false, true}) {
          std::vector<unsigned char> data(kCount * size_t(bytes));
          for (size_t i = 0; i < data.size(); ++i)
            data[i] = static_cast<unsigned char>(i % 61); // no element is NaN
          DeviceAddress from = machine.place(stream, data), to = inPlace ? from : machine.allocate(data.size());
          void *send = Ranks::pointer(from), *receive = Ranks::pointer(to);
          check(kind == 0   ? nccl.allReduce(send, receive, kCount, type, reduction, its, stream)
                : kind == 1 ? nccl.broadcast(send, receive, kCount, type, 0, its, stream)
                : kind == 2 ? nccl.reduce(send, receive, kCount, type, reduction, 0, its, stream)
                : kind == 3 ? nccl.allGather(send, receive, kCount, type, its, stream)
                            : nccl.reduceScatter(send, receive, kCount, type, reduction, its, stream),
                "an exchange of one rank");
          waitUntilReady(its, "an exchange of one rank");
          expect(machine.read<unsigned char>(stream, to, data.size()) == data,
                 "exchange " + std::to_string(kind) + " of one rank, of type " + std::to_string(int(type)) +
                     ", is no copy");
          machine.check(machine.driver.release(from), "cuMemFree");
          if (!inPlace)
            machine.check(machine.driver.release(to), "cuMemFree");
        }
}

/// An exchange waits for an event of work in another stream, and a third stream waits for an event after the exchange.
static void keepsTheOrderOfStreams(Machine &machine) {
  Ranks one(machine);
  DriverStream work = machine.stream(), reader = machine.stream();
  DeviceAddress first = machine.place(work, std::vector<float>{3}), second = machine.place(work, std::vector<float>{0}),
                third = machine.place(work, std::vector<float>{0});
  int turns = machine.turns(), zero = 0;
  machine.launch(work, "copy_late", 1, 1, {&second, &first, &turns, &zero});
  DriverEvent worked = machine.event(), exchanged = machine.event();
  machine.check(machine.driver.eventRecord(worked, work), "cuEventRecord");
  machine.waitFor(one.streams[0], worked);
  one.allReduce(second, third, 1);
  machine.check(machine.driver.eventRecord(exchanged, one.streams[0]), "cuEventRecord behind an exchange");
  machine.waitFor(reader, exchanged);
  expect(machine.read<float>(reader, third, 1)[0] == 3, "events do not order an exchange");
}

static void mayBeAborted(Machine &machine) {
  Ranks one(machine);
  DeviceAddress number = machine.place(one.streams[0], std::vector<float>{3});
  one.allReduce(number, number, 1);
  check(library().abort(one.communicators[0]), "ncclCommAbort");
  machine.finish(one.streams[0]);
  machine.makeCurrent(0);
  int value = 7;
  machine.launch(one.streams[0], "store", 1, 1, {&number, &value});
  expect(machine.read<int>(one.streams[0], number, 1)[0] == 7, "a stream does no work behind a communicator's abort");
}

static void isDestroyedWhenFinalized(Machine &machine) {
  Ranks one(machine);
  DeviceAddress number = machine.place(one.streams[0], std::vector<float>{3});
  one.allReduce(number, number, 1);
  check(library().finalize(one.communicators[0]), "ncclCommFinalize");
  waitUntilReady(one.communicators[0], "a communicator that is finalized");
  check(library().destroy(one.communicators[0]), "ncclCommDestroy");
  machine.makeCurrent(0);
  expect(machine.read<float>(one.streams[0], number, 1)[0] == 3, "an exchange is lost with its communicator");
}

/// Permanently, and visible to the backend.
static void errorsStay(Machine &machine) {
  Ranks one(machine);
  DeviceAddress number = machine.place(one.streams[0], std::vector<float>{3});
  constexpr int kNoRank = 7;
  NcclResult result = library().broadcast(Ranks::pointer(number), Ranks::pointer(number), 1, NcclType::F32, kNoRank,
                                          one.communicators[0], one.streams[0]);
  expect(result == NcclResult::InvalidArgument,
         "a root that is no rank gives " + std::string(library().resultText(result)));
  NcclResult state = finalStateOf(one.communicators[0]);
  expect(state == NcclResult::InvalidArgument,
         "a communicator that was used wrongly is in the state " + std::string(library().resultText(state)));
  check(library().abort(one.communicators[0]), "ncclCommAbort");
}

static void oneRankADevice(Machine &machine) {
  NcclId id;
  NcclConfig config;
  NcclCommunicator both[2] = {};
  check(library().makeId(&id), "ncclGetUniqueId");
  check(library().groupStart(), "ncclGroupStart");
  for (int rank = 0; rank < 2; ++rank)
    check(library().init(&both[rank], 2, id, rank, &config), "ncclCommInitRankConfig");
  bool isRefused = !isFine(library().groupEnd());
  machine.makeCurrent(0);
  for (NcclCommunicator its : both)
    isRefused = isRefused || finalStateOf(its) != NcclResult::Success;
  expect(isRefused, "two ranks have one device");
  for (NcclCommunicator its : both)
    if (its)
      library().abort(its);
}

static void twoDevicesExchange(Machine &machine) {
  machine.needDevices(2);
  Ranks two(machine, 2);
  std::vector<DeviceAddress> numbers;
  for (int rank = 0; rank < 2; ++rank) {
    machine.makeCurrent(rank);
    numbers.push_back(machine.place(two.streams[size_t(rank)], std::vector<float>{float(1 + rank), 10}));
  }
  check(library().groupStart(), "ncclGroupStart");
  for (size_t rank = 0; rank < 2; ++rank)
    check(library().allReduce(Ranks::pointer(numbers[rank]), Ranks::pointer(numbers[rank]), 2, NcclType::F32,
                              NcclReduction::Sum, two.communicators[rank], two.streams[rank]),
          "ncclAllReduce");
  check(library().groupEnd(), "ncclGroupEnd");
  for (NcclCommunicator its : two.communicators)
    waitUntilReady(its, "an all-reduce of two ranks");
  for (size_t rank = 0; rank < 2; ++rank) {
    machine.makeCurrent(int(rank));
    expect(machine.read<float>(two.streams[rank], numbers[rank], 2) == std::vector<float>{3, 20},
           "a sum over two devices is wrong");
  }
}

std::vector<Contract> exchangeContracts() {
  return {{"exchange.library", isThere},
          {"exchange.alone", copiesAlone},
          {"exchange.order", keepsTheOrderOfStreams},
          {"exchange.abort", mayBeAborted},
          {"exchange.finalize", isDestroyedWhenFinalized},
          {"exchange.errors_stay", errorsStay},
          {"exchange.one_rank_a_device", oneRankADevice},
          {"exchange.two_devices", twoDevicesExchange}};
}

} // namespace sluice::gpu_check
