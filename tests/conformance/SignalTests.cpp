// Queues that tell queues of another backend how far they have come, by a number in the host's memory.
#include "tests/conformance/RunHalf.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

namespace sluice::conformance {

namespace {

/// A number in memory that the backend gave, which is the process's until its end. After this nothing waits for it any more.
class Number {
public:
  explicit Number(RunHalf &half) {
    half.check(half.table().host_allocate(half.get(), sizeof(uint64_t), &address_), "host_allocate");
  }
  Number(const Number &) = delete;
  ~Number() { write(uint64_t(1) << 40); }

  uint64_t *place() const { return static_cast<uint64_t *>(address_); }
  void write(uint64_t number) { std::atomic_ref(*place()).store(number); }
  uint64_t read() const { return std::atomic_ref(*place()).load(); }

private:
  void *address_ = nullptr;
};

/// A context and a number that it waits for, or that others write for it.
struct Waiter {
  explicit Waiter(const Subject &subject) : half(subject) {
    if (!half.table().signal)
      throw Skipped("it does not signal");
    if (!half.table().wait_for_signal)
      throw Skipped("it does not wait for signals");
  }

  void waitFor(sluice_queue *queue, const Number &number, uint64_t least) {
    sluice_status status = half.table().wait_for_signal(queue, number.place(), least);
    if (status == SLUICE_UNSUPPORTED)
      throw Skipped("its device does not wait for signals: " + half.lastError());
    half.check(status, "wait_for_signal");
  }
  void signal(sluice_queue *queue, const Number &number, uint64_t value) {
    half.check(half.table().signal(queue, number.place(), value), "signal");
  }
  bool isDone(sluice_event *event) {
    int done = 0;
    half.check(half.table().query(event, &done), "query");
    return done != 0;
  }

  RunHalf half;
};

} // namespace

static void comeAfterTheWork(const Subject &subject) {
  Waiter waiter(subject);
  RunHalf &half = waiter.half;
  Number number(half);
  Bytes sent = pattern(1 << 20), found(sent.size());
  void *address = half.allocate(sent.size());
  sluice_queue *queue = half.queue();
  half.upload(queue, sent, address);
  half.download(queue, address, found);
  waiter.signal(queue, number, 3);
  sluice_event *event = half.record(queue);
  for (bool isDone = false; !isDone;) {
    bool isGiven = number.read() == 3;
    expect(!isGiven || found == sent, "a signal comes before the work that it stands behind");
    isDone = half.table().query ? waiter.isDone(event) : (half.finish(queue), true);
  }
  expect(number.read() == 3, "a signal never comes");
  waiter.signal(queue, number, 7);
  half.finish(queue);
  expect(number.read() == 7, "a second signal in one place never comes");
}

static void areWaitedFor(const Subject &subject) {
  constexpr int kLooks = 200;
  Waiter waiter(subject);
  RunHalf &half = waiter.half;
  if (!half.table().query)
    throw Skipped("it cannot be asked whether an event is done");
  Bytes data = pattern(1000, 1);
  const Bytes later = pattern(1000, 2);
  void *address = half.allocate(data.size());
  sluice_queue *queue = half.queue(), *other = half.queue();
  Number number(half);
  waiter.waitFor(queue, number, 2);
  half.upload(queue, data, address);
  sluice_event *event = half.record(queue);
  for (uint64_t early : {0, 1}) {
    number.write(early);
    for (int look = 0; look < kLooks; ++look)
      expect(!waiter.isDone(event), "a queue goes on at number " + std::to_string(early) + ", and waits for 2");
  }
  half.finish(other); // which nothing holds
  std::copy(later.begin(), later.end(), data.begin());
  number.write(5);
  half.check(half.table().synchronize(event), "synchronize");
  expect(half.read(address, data.size()) == later, "a queue went on before its signal came");
  waiter.waitFor(queue, number, 4);
  half.finish(queue);
}

static void endAtDeadlines(const Subject &subject) {
  Waiter waiter(subject);
  RunHalf &half = waiter.half;
  if (!half.table().synchronize_until)
    throw Skipped("it does not wait until a deadline");
  sluice_queue *queue = half.queue();
  Number number(half);
  waiter.waitFor(queue, number, 1);
  sluice_event *event = half.record(queue);
  for (double seconds : {0.0, 0.05}) {
    sluice_status status = half.table().synchronize_until(event, seconds);
    expect(status == SLUICE_DEADLINE,
           "waiting for a signal that does not come ends with status " + std::to_string(status));
  }
  number.write(1);
  half.check(half.table().synchronize_until(event, 30), "synchronize_until");
}

/// As two backends do, neither of which knows of the other's work. The host waits for what is behind each signal, in order.
static void joinContexts(const Subject &subject) {
  constexpr size_t kBytes = 100000, kRounds = 20;
  Waiter first(subject), second(subject);
  Number there(second.half), back(first.half);
  void *from = first.half.allocate(kBytes), *to = second.half.allocate(kBytes);
  sluice_queue *in = first.half.queue(), *out = second.half.queue();
  Bytes between(kBytes);
  std::vector<Bytes> sent, received(kRounds, Bytes(kBytes));
  for (unsigned i = 0; i < kRounds; ++i)
    sent.push_back(pattern(kBytes, i));
  std::vector<std::pair<Waiter *, sluice_event *>> signals;
  for (size_t i = 0; i < kRounds; ++i) {
    first.waitFor(in, back, i);
    first.half.upload(in, sent[i], from);
    first.half.download(in, from, between);
    first.signal(in, there, i + 1);
    signals.emplace_back(&first, first.half.record(in));
    second.waitFor(out, there, i + 1);
    second.half.upload(out, between, to);
    second.half.download(out, to, received[i]);
    second.signal(out, back, i + 1);
    signals.emplace_back(&second, second.half.record(out));
  }
  sluice_queue *idle = second.half.queue();
  void *elsewhere = second.half.allocate(kBytes);
  for (auto [waiter, event] : signals) {
    second.half.upload(idle, sent[0], elsewhere);
    second.half.finish(idle); // which lets it do what it can
    waiter->half.check(waiter->half.table().synchronize(event), "synchronize");
  }
  expect(sent == received, "signals did not order the work of two contexts");
}

/// What one thread waits for may be up to another, whose context it must not hold: that of the other device, if there is one.
static void keepNobodyElseWaiting(const Subject &subject) {
  constexpr auto kMeanwhile = std::chrono::milliseconds(100); // in which the thread comes to its wait
  Waiter waiter(subject);
  RunHalf &half = waiter.half, other(subject);
  if (!half.table().synchronize_until)
    throw Skipped("it does not wait until a deadline");
  sluice_queue *queue = half.queue();
  Number number(half);
  waiter.waitFor(queue, number, 1);
  sluice_event *event = half.record(queue);
  int32_t device = other.devices() - 1;
  sluice_queue *its = other.queue(device);
  Bytes sent = pattern(1000), found(sent.size());
  void *address = other.allocate(sent.size(), device);
  std::atomic<bool> waits = false;
  sluice_status status = SLUICE_OK;
  {
    std::jthread thread([&] {
      waits = true;
      waits.notify_one();
      status = half.table().synchronize_until(event, half.patience());
    });
    waits.wait(false);
    for (auto end = std::chrono::steady_clock::now() + kMeanwhile; std::chrono::steady_clock::now() < end;) {
      other.upload(its, sent, address, device);
      other.download(its, address, found, device);
      other.finish(its);
    }
    number.write(1);
  }
  half.check(status, "waiting while another thread uses another context");
  expect(found == sent, "work of another context is not done while a thread waits");
}

std::vector<Test> signalTests() {
  return {{"signal.comes_after_the_work", comeAfterTheWork},
          {"signal.is_waited_for", areWaitedFor},
          {"signal.deadline", endAtDeadlines},
          {"signal.keeps_nobody_else", keepNobodyElseWaiting},
          {"signal.between_contexts", joinContexts}};
}

} // namespace sluice::conformance
