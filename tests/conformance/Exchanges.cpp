#include "tests/conformance/Exchanges.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <type_traits>

namespace sluice::conformance {

//===- elements ---------------------------------------------------------------------------------------------------===//

const std::vector<sluice_dtype> &exchangedTypes() {
  static const std::vector<sluice_dtype> types = {SLUICE_DTYPE_f32, SLUICE_DTYPE_f64, SLUICE_DTYPE_i32,
                                                  SLUICE_DTYPE_i64, SLUICE_DTYPE_f16, SLUICE_DTYPE_bf16};
  return types;
}

/// Calls `use` with a null pointer to the C type of a type.
template <typename Use> static auto withType(sluice_dtype type, Use use) {
#define SLUICE_USE(name, number, T, ...)                                                                               \
  case SLUICE_DTYPE_##name:                                                                                            \
    return use(static_cast<T *>(nullptr));
  switch (type) { SLUICE_FOR_EACH_DTYPE(SLUICE_USE) }
#undef SLUICE_USE
  throw Failed("there is no such type");
}

size_t bytesOf(sluice_dtype type) {
  return withType(type, [](auto *element) { return sizeof *element; });
}

std::string textOf(sluice_dtype type) {
#define SLUICE_TEXT(name, number, T, text, ...)                                                                        \
  case SLUICE_DTYPE_##name:                                                                                            \
    return text;
  switch (type) { SLUICE_FOR_EACH_DTYPE(SLUICE_TEXT) }
#undef SLUICE_TEXT
  return "no type";
}

Bytes elements(sluice_dtype type, size_t count, unsigned seed) {
  return withType(type, [&](auto *element) {
    using T = std::remove_pointer_t<decltype(element)>;
    Bytes bits = pattern(4 * count, seed), data(count * sizeof(T));
    for (size_t i = 0; i < count; ++i) {
      uint32_t drawn = 0;
      std::memcpy(&drawn, bits.data() + 4 * i, sizeof drawn);
      double value = static_cast<double>(drawn) / 0x1p28 - 8;
      auto stored = static_cast<T>(std::is_integral_v<T> ? std::floor(value * 1000) : value);
      std::memcpy(data.data() + i * sizeof(T), &stored, sizeof(T));
    }
    return data;
  });
}

double valueOf(sluice_dtype type, const Bytes &elements, size_t at) {
  return withType(type, [&](auto *element) {
    std::remove_pointer_t<decltype(element)> stored;
    std::memcpy(&stored, elements.data() + at * sizeof stored, sizeof stored);
    return static_cast<double>(stored);
  });
}

/// The most that one rounding moves a number, as a share of it.
static double roundingOf(sluice_dtype type) {
  switch (type) {
  case SLUICE_DTYPE_f16:
    return 0x1p-11;
  case SLUICE_DTYPE_bf16:
    return 0x1p-8;
  case SLUICE_DTYPE_f32:
    return 0x1p-24;
  case SLUICE_DTYPE_f64:
    return 0x1p-53;
  case SLUICE_DTYPE_i32:
  case SLUICE_DTYPE_i64:
  case SLUICE_DTYPE_u8:
  case SLUICE_DTYPE_boolean:
    return 0;
  }
  return 0;
}

/// A sum of n numbers is rounded n times at most, each time by no more than a share of the sum of the sizes; the sum in double
/// precision that it is compared with is, too.
Reduced reduced(sluice_dtype type, int32_t reduction, const std::vector<Bytes> &sent, size_t at) {
  double sum = 0, sizes = 0, largest = -INFINITY;
  for (const Bytes &of : sent) {
    double value = valueOf(type, of, at);
    sum += value;
    sizes += std::abs(value);
    largest = std::max(largest, value);
  }
  if (reduction == SLUICE_MAX)
    return {largest, 0};
  auto terms = static_cast<double>(sent.size());
  return {sum, sizes * terms * roundingOf(type) * (type == SLUICE_DTYPE_f64 ? 2 : 1)};
}

template <typename T> static T added(T one, T other) {
  if constexpr (sizeof(T) < sizeof(float))
    return T(static_cast<float>(one) + static_cast<float>(other));
  else
    return one + other;
}

template <typename T> static T addedInATree(std::vector<T> terms) {
  while (terms.size() > 1) {
    std::vector<T> sums;
    for (size_t i = 0; i < terms.size(); i += 2)
      sums.push_back(i + 1 < terms.size() ? added(terms[i], terms[i + 1]) : terms[i]);
    terms = std::move(sums);
  }
  return terms.front();
}

/// Of elements of T, with sums of `Sum`.
template <typename T, typename Sum> static Bytes treeSum(const std::vector<Bytes> &sent) {
  Bytes sums(sent.front().size());
  for (size_t at = 0; at < sums.size(); at += sizeof(T)) {
    std::vector<Sum> terms;
    for (const Bytes &of : sent) {
      T term;
      std::memcpy(&term, of.data() + at, sizeof term);
      terms.push_back(static_cast<Sum>(term));
    }
    auto sum = static_cast<T>(addedInATree(terms));
    std::memcpy(sums.data() + at, &sum, sizeof sum);
  }
  return sums;
}

std::vector<Bytes> treeSums(sluice_dtype type, const std::vector<Bytes> &sent) {
  switch (type) {
  case SLUICE_DTYPE_f16:
    return {treeSum<sluice_f16, float>(sent), treeSum<sluice_f16, sluice_f16>(sent)};
  case SLUICE_DTYPE_bf16:
    return {treeSum<sluice_bf16, float>(sent), treeSum<sluice_bf16, sluice_bf16>(sent)};
  case SLUICE_DTYPE_f64:
    return {treeSum<double, double>(sent)};
  default:
    return {treeSum<float, float>(sent)};
  }
}

//===- exchanges --------------------------------------------------------------------------------------------------===//

size_t Task::whole(int32_t size) const {
  bool isShared = kind == SLUICE_ALL_GATHER || kind == SLUICE_REDUCE_SCATTER;
  if (!isShared)
    return count;
  return counts.empty() ? count * static_cast<size_t>(size) : std::accumulate(counts.begin(), counts.end(), size_t(0));
}

size_t Task::sent(int32_t rank, int32_t size) const {
  if (kind == SLUICE_BROADCAST && rank != root)
    return 0;
  return kind == SLUICE_REDUCE_SCATTER ? whole(size) : countOf(rank);
}

size_t Task::received(int32_t rank, int32_t size) const {
  return kind == SLUICE_ALL_GATHER ? whole(size) : countOf(rank);
}

static std::string kindText(const Task &task) {
  static const char *const names[] = {"all-reduce", "broadcast", "all-gather", "reduce-scatter"};
  return std::string(names[task.kind]) + " of " + std::to_string(task.count) + " " + textOf(task.dtype);
}

static void checkReduced(const Task &task, const std::vector<Bytes> &sent, const Bytes &received, size_t first) {
  for (size_t i = 0; i < received.size() / bytesOf(task.dtype); ++i) {
    Reduced expected = reduced(task.dtype, task.reduction, sent, first + i);
    double found = valueOf(task.dtype, received, i);
    expect(std::abs(found - expected.value) <= expected.allowed, kindText(task) + ": element " + std::to_string(i) +
                                                                     " is " + std::to_string(found) + ", not " +
                                                                     std::to_string(expected.value));
  }
}

void checkReceived(const Task &task, const std::vector<Bytes> &sent, const std::vector<Bytes> &received) {
  size_t first = 0; // element of the whole, of a rank's share
  Bytes all;
  for (const Bytes &of : sent)
    all.insert(all.end(), of.begin(), of.end());
  for (size_t rank = 0; rank < received.size(); ++rank) {
    bool reduces = task.kind == SLUICE_ALL_REDUCE || task.kind == SLUICE_REDUCE_SCATTER;
    if (reduces)
      checkReduced(task, sent, received[rank], first);
    else
      expect(received[rank] == all,
             kindText(task) + ": rank " + std::to_string(rank) + " did not receive what was sent");
    expect(task.kind == SLUICE_REDUCE_SCATTER || received[rank] == received[0],
           kindText(task) + ": rank " + std::to_string(rank) + " received other bits than rank 0");
    first += task.kind == SLUICE_REDUCE_SCATTER ? task.countOf(static_cast<int32_t>(rank)) : 0;
  }
}

//===- ranks ------------------------------------------------------------------------------------------------------===//

void atPlaces(const Subject &subject, int32_t least, const std::function<void(Places places, int32_t most)> &body) {
  if (!subject.run)
    throw Skipped("there is no run half");
  RunHalf half(subject, 0);
  if (!half.table().collectives)
    throw Skipped("it has no exchanges");
  sluice_unique_id id;
  if (half.table().collectives->unique_id(half.get(), &id) == SLUICE_UNSUPPORTED)
    throw Skipped("it has no exchanges here: " + half.lastError());
  bool takesHost = half.table().takes_host_queues != 0;
  if (half.devices() < least && !takesHost)
    throw Skipped("there are " + std::to_string(half.devices()) + " devices, and the test needs " +
                  std::to_string(least));
  if (half.devices() >= least)
    body(Places::Devices, std::min(half.devices(), kMostRanks));
  if (takesHost)
    body(Places::Host, kMostRanks);
}

std::unique_ptr<RunHalf> contextFor(const Subject &subject, Places places, int32_t size, sluice_group *group) {
  return std::make_unique<RunHalf>(subject, places == Places::Devices ? size : 0, group);
}

Rank::Rank(RunHalf &half, const sluice_unique_id &id, int32_t rank, int32_t size, int32_t device)
    : half_(half), rank_(rank), device_(device), queue_(half.queue(device, SLUICE_QUEUE_COMMUNICATION)) {
  sluice_communicator_options options{sizeof options, &id, rank, size, device, nullptr};
  half.check(table().init(half.get(), &options, &communicator_), "init of rank " + std::to_string(rank));
}

Rank::~Rank() { leave(); }

void Rank::leave() {
  if (sluice_communicator *mine = std::exchange(communicator_, nullptr))
    table().destroy(mine);
}

sluice_status Rank::put(const Task &task, const void *send, void *receive, sluice_queue *queue) {
  Larger<sluice_exchange> larger;
  larger.known = {sizeof larger,  task.kind,  task.dtype,
                  task.reduction, task.root,  send,
                  receive,        task.count, task.counts.empty() ? nullptr : task.counts.data(),
                  task.label};
  return table().exchange(communicator_, queue ? queue : queue_, &larger.known);
}

OneThread::OneThread(const Subject &subject, Places places, int32_t size)
    : context_(contextFor(subject, places, size)), half(*context_) {
  const sluice_backend_collectives &table = *half.table().collectives;
  sluice_unique_id id;
  half.check(table.unique_id(half.get(), &id), "unique_id");
  half.check(table.begin(half.get()), "begin");
  for (int32_t rank = 0; rank < size; ++rank)
    ranks.push_back(std::make_unique<Rank>(half, id, rank, size, deviceOf(places, rank)));
  half.check(table.end(half.get()), "the end of init");
}

sluice_status OneThread::together(const std::function<void(Rank &)> &call) {
  const sluice_backend_collectives &table = *half.table().collectives;
  half.check(table.begin(half.get()), "begin");
  for (const std::unique_ptr<Rank> &rank : ranks)
    call(*rank);
  return table.end(half.get());
}

/// The first byte, of what a rank sends or receives as a whole, that is its own part.
static size_t placeOf(const Task &task, int32_t rank) {
  size_t place = 0;
  for (int32_t earlier = 0; earlier < rank; ++earlier)
    place += task.countOf(earlier) * bytesOf(task.dtype);
  return task.kind == SLUICE_ALL_GATHER || task.kind == SLUICE_REDUCE_SCATTER ? place : 0;
}

std::vector<Bytes> OneThread::exchange(const Task &task, const std::vector<Bytes> &sent, bool inPlace) {
  std::vector<Bytes> received;
  std::vector<unsigned char *> from, to;
  size_t element = bytesOf(task.dtype);
  for (const std::unique_ptr<Rank> &rank : ranks) {
    received.emplace_back(task.received(rank->number(), size()) * element);
    size_t bytes = std::max(task.whole(size()) * element, size_t(1)), place = placeOf(task, rank->number());
    auto *source = static_cast<unsigned char *>(half.allocate(bytes, rank->device()));
    auto *target = inPlace ? source : static_cast<unsigned char *>(half.allocate(bytes, rank->device()));
    from.push_back(source + (inPlace && task.kind == SLUICE_ALL_GATHER ? place : 0));
    to.push_back(target + (inPlace && task.kind == SLUICE_REDUCE_SCATTER ? place : 0));
    if (!sent[static_cast<size_t>(rank->number())].empty())
      half.upload(rank->queue(), sent[static_cast<size_t>(rank->number())], from.back(), rank->device());
  }
  half.check(together([&](Rank &rank) {
               auto at = static_cast<size_t>(rank.number());
               half.check(rank.put(task, from[at], to[at]), "exchange");
             }),
             "the end of an exchange");
  for (const std::unique_ptr<Rank> &rank : ranks)
    if (auto at = static_cast<size_t>(rank->number()); !received[at].empty())
      half.download(rank->queue(), to[at], received[at], rank->device());
  for (const std::unique_ptr<Rank> &rank : ranks)
    half.finish(rank->queue());
  return received;
}

void OneThread::check(const Task &task, unsigned seed, bool inPlace) {
  std::vector<Bytes> sent;
  for (const std::unique_ptr<Rank> &rank : ranks)
    sent.push_back(
        elements(task.dtype, task.sent(rank->number(), size()), seed + static_cast<unsigned>(rank->number())));
  checkReceived(task, sent, exchange(task, sent, inPlace));
}

} // namespace sluice::conformance
