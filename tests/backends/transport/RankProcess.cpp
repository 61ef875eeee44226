#include "tests/backends/transport/RankProcess.h"

#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <type_traits>

namespace sluice::test {

using conformance::Bytes;
using conformance::Task;

static void runInOrder(void *, int64_t tasks, void (*function)(void *, int64_t, int64_t), void *argument) {
  function(argument, 0, tasks);
}

static const sluice_run_services inOrder{sizeof inOrder, nullptr, runInOrder};

RankProcess::RankProcess(const std::string &library, int32_t rank, int32_t size) : rank_(rank), size_(size) {
  void *handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  auto query = handle ? reinterpret_cast<sluice_transport_query_fn>(dlsym(handle, "sluice_transport_query")) : nullptr;
  if (!query) {
    std::fprintf(stderr, "%s: %s\n", library.c_str(), dlerror());
    std::exit(70);
  }
  library_ = query();
}

RankProcess::~RankProcess() {
  if (communicator_)
    half().collectives->destroy(communicator_);
  if (queue_)
    half().queue_destroy(queue_);
  if (run_)
    half().close(run_);
  if (transport_)
    library_->close(transport_);
}

Outcome RankProcess::open(const char *address, const char *secret, double deadline) {
  sluice_transport_options options{sizeof options, rank_, size_, address, secret, deadline};
  sluice_status status = library_->open(&options, &transport_);
  return {status, status == SLUICE_OK ? "" : library_->last_error(transport_)};
}

Outcome RankProcess::outcome(sluice_status status) {
  return {status, status == SLUICE_OK ? "" : half().last_error(run_)};
}

void RankProcess::join(double deadline) {
  sluice_run_options runOptions{sizeof runOptions, &inOrder, "", nullptr};
  sluice_transport_link link{sizeof link, library_, transport_, deadline};
  sluice_communicator_options options{sizeof options, nullptr, rank_, size_, SLUICE_HOST, &link};
  if (half().open(&runOptions, &run_) != SLUICE_OK ||
      half().queue_create(run_, SLUICE_HOST, SLUICE_QUEUE_COMMUNICATION, "exchanges", &queue_) != SLUICE_OK ||
      half().collectives->init(run_, &options, &communicator_) != SLUICE_OK) {
    std::fprintf(stderr, "no communicator: %s\n", half().last_error(run_));
    std::exit(70);
  }
}

Outcome RankProcess::exchange(const Task &task, const void *send, void *receive) {
  sluice_exchange exchange{sizeof exchange, task.kind,  task.dtype,
                           task.reduction,  task.root,  send,
                           receive,         task.count, task.counts.empty() ? nullptr : task.counts.data(),
                           task.label};
  return outcome(half().collectives->exchange(communicator_, queue_, &exchange));
}

Outcome RankProcess::error() { return outcome(half().collectives->error(communicator_)); }
void RankProcess::abort() { half().collectives->abort(communicator_); }

int64_t RankProcess::exchanges(int32_t kind) {
  int64_t exchanges = -1, bytes = -1;
  half().collectives->counts(communicator_, kind, &exchanges, &bytes);
  return exchanges;
}

Outcome RankProcess::wait(sluice_transfer *transfer, double seconds) {
  auto start = std::chrono::steady_clock::now();
  while (std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() < seconds) {
    int done = 0;
    sluice_status status = library_->test(transport_, transfer, &done);
    if (status != SLUICE_OK)
      return {status, library_->last_error(transport_)};
    if (done)
      return {SLUICE_OK, ""};
  }
  return {SLUICE_DEADLINE, "nothing came"};
}

//===- what must be received --------------------------------------------------------------------------------------===//

template <typename T> static T elementAt(const Bytes &bytes, size_t at) {
  T element;
  std::memcpy(&element, bytes.data() + at * sizeof(T), sizeof(T));
  return element;
}

/// ((first + second) + third) and so on, of halves in float, of integers as they wrap around.
template <typename T> static T reducedInOrder(int32_t reduction, const std::vector<Bytes> &sent, size_t at) {
  if constexpr (std::is_integral_v<T>) {
    auto total = static_cast<std::make_unsigned_t<T>>(elementAt<T>(sent[0], at));
    for (size_t rank = 1; rank < sent.size(); ++rank) {
      T next = elementAt<T>(sent[rank], at);
      if (reduction == SLUICE_SUM)
        total += static_cast<std::make_unsigned_t<T>>(next);
      else if (next > static_cast<T>(total))
        total = static_cast<std::make_unsigned_t<T>>(next);
    }
    return static_cast<T>(total);
  } else {
    using Wide = std::conditional_t<std::is_same_v<T, double>, double, float>;
    Wide total = elementAt<T>(sent[0], at);
    for (size_t rank = 1; rank < sent.size(); ++rank) {
      Wide next = elementAt<T>(sent[rank], at);
      total = reduction == SLUICE_SUM ? total + next : std::fmax(total, next);
    }
    return T(total);
  }
}

template <typename T>
static Bytes reduceInOrder(const Task &task, const std::vector<Bytes> &sent, size_t first, size_t count) {
  Bytes result(count * sizeof(T));
  for (size_t i = 0; i < count; ++i) {
    T element = reducedInOrder<T>(task.reduction, sent, first + i);
    std::memcpy(result.data() + i * sizeof(T), &element, sizeof(T));
  }
  return result;
}

static Bytes reduceOfType(const Task &task, const std::vector<Bytes> &sent, size_t first, size_t count) {
#define SLUICE_REDUCE(name, number, T, ...)                                                                            \
  case SLUICE_DTYPE_##name:                                                                                            \
    return reduceInOrder<T>(task, sent, first, count);
  switch (task.dtype) { SLUICE_FOR_EACH_DTYPE(SLUICE_REDUCE) }
#undef SLUICE_REDUCE
  return {};
}

/// The elements of the ranks before `rank`.
static size_t before(const Task &task, int32_t rank) {
  size_t elements = 0;
  for (int32_t other = 0; other < rank; ++other)
    elements += task.countOf(other);
  return elements;
}

static Bytes expected(const Task &task, const std::vector<Bytes> &sent, int32_t rank) {
  if (task.kind == SLUICE_BROADCAST)
    return sent[static_cast<size_t>(task.root)];
  if (task.kind == SLUICE_ALL_GATHER) {
    Bytes all;
    for (const Bytes &of : sent)
      all.insert(all.end(), of.begin(), of.end());
    return all;
  }
  size_t first = task.kind == SLUICE_ALL_REDUCE ? 0 : before(task, rank);
  return reduceOfType(task, sent, first, task.countOf(rank));
}

/// Beside sums in double precision.
static std::string nearDoubles(const Task &task, const std::vector<Bytes> &sent, const Bytes &received, size_t first) {
  bool isReduced = task.kind == SLUICE_ALL_REDUCE || task.kind == SLUICE_REDUCE_SCATTER;
  for (size_t i = 0; isReduced && i < received.size() / conformance::bytesOf(task.dtype); ++i) {
    conformance::Reduced wanted = conformance::reduced(task.dtype, task.reduction, sent, first + i);
    double found = conformance::valueOf(task.dtype, received, i);
    if (!(std::abs(found - wanted.value) <= wanted.allowed))
      return "element " + std::to_string(i) + " is " + std::to_string(found) + ", not " + std::to_string(wanted.value);
  }
  return "";
}

std::string RankProcess::check(const Task &task, unsigned seed, bool inPlace) {
  size_t element = conformance::bytesOf(task.dtype);
  std::vector<Bytes> sent;
  for (int32_t rank = 0; rank < size_; ++rank)
    sent.push_back(conformance::elements(task.dtype, task.sent(rank, size_), seed * 64 + static_cast<unsigned>(rank)));
  Bytes own = sent[static_cast<size_t>(rank_)], received(task.received(rank_, size_) * element, 0xa5);
  const void *send = own.data();
  void *receive = received.data();
  size_t place = before(task, rank_) * element;
  if (inPlace && task.kind == SLUICE_REDUCE_SCATTER) {
    receive = own.data() + place;
  } else if (inPlace && !own.empty()) {
    size_t at = task.kind == SLUICE_ALL_GATHER ? place : 0;
    std::memcpy(received.data() + at, own.data(), own.size());
    send = received.data() + at;
  }
  std::string what = "exchange of kind " + std::to_string(task.kind) + " of " + std::to_string(task.count) + " " +
                     conformance::textOf(task.dtype) + (inPlace ? " in place: " : ": ");
  if (auto [status, why] = exchange(task, send, receive); status != SLUICE_OK)
    return what + why;
  if (!received.empty())
    std::memmove(received.data(), receive, received.size());
  if (received != expected(task, sent, rank_))
    return what + "other bits";
  std::string far = nearDoubles(task, sent, received, task.kind == SLUICE_ALL_REDUCE ? 0 : before(task, rank_));
  return far.empty() ? "" : what + far;
}

} // namespace sluice::test
