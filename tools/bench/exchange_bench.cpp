// Measures an all-reduce in f32 between ranks in threads of one process and, for comparison, the time in which as many
// threads read and write the same bytes.
#include "runtime/help/Arguments.h"
#include "runtime/help/HelpFormatter.h"
#include "sluice/backend/collectives.h"
#include "sluice/backend/host.h"

#include <algorithm>
#include <barrier>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

static const sluice_backend_run &half() { return *sluice_host_backend()->run; }

static void runInOrder(void *, int64_t tasks, void (*function)(void *, int64_t, int64_t), void *argument) {
  function(argument, 0, tasks);
}

static const sluice_run_services inOrder{sizeof inOrder, nullptr, runInOrder};

static void need(sluice_status status, const char *what) {
  if (status == SLUICE_OK)
    return;
  fprintf(stderr, "exchange_bench: %s ends with status %d\n", what, static_cast<int>(status));
  exit(70);
}

/// One rank in a thread.
struct BenchRank {
  BenchRank(sluice_group *group, size_t count) : send(count, 1.0f), receive(count) {
    sluice_run_options options{sizeof options, &inOrder, "", group};
    need(half().open(&options, &run), "open");
    need(half().queue_create(run, SLUICE_HOST, SLUICE_QUEUE_COMMUNICATION, "bench", &queue), "queue_create");
  }
  ~BenchRank() {
    half().collectives->destroy(end);
    half().queue_destroy(queue);
    half().close(run);
  }
  BenchRank(const BenchRank &) = delete;

  void join(const sluice_unique_id &id, int32_t rank, int32_t size) {
    sluice_communicator_options options{sizeof options, &id, rank, size, SLUICE_HOST, nullptr};
    need(half().collectives->init(run, &options, &end), "init");
  }
  void exchange(bool inPlace) {
    sluice_exchange exchange{
        sizeof exchange, SLUICE_ALL_REDUCE, SLUICE_DTYPE_f32, SLUICE_SUM, 0, inPlace ? receive.data() : send.data(),
        receive.data(),  receive.size(),    nullptr,          "bench"};
    need(half().collectives->exchange(end, queue, &exchange), "exchange");
  }

  sluice_run *run = nullptr;
  sluice_queue *queue = nullptr;
  sluice_communicator *end = nullptr;
  std::vector<float> send, receive;
};

/// The shortest of several times, in seconds, in which all threads complete `body`.
template <typename Body> static double bestOf(size_t threads, int repetitions, const Body &body) {
  using Clock = std::chrono::steady_clock;
  std::barrier<> together(static_cast<std::ptrdiff_t>(threads));
  std::vector<double> best(threads, 1e9);
  std::vector<std::thread> all;
  for (size_t at = 0; at < threads; ++at)
    all.emplace_back([&, at] {
      for (int i = 0; i < repetitions; ++i) {
        together.arrive_and_wait();
        auto start = Clock::now();
        body(at);
        best[at] = std::min(best[at], std::chrono::duration<double>(Clock::now() - start).count());
      }
    });
  for (std::thread &thread : all)
    thread.join();
  return *std::max_element(best.begin(), best.end());
}

static void bench(size_t ranks, size_t bytes) {
  sluice_group *group = nullptr;
  need(half().group_create(&group), "group_create");
  {
    std::vector<std::unique_ptr<BenchRank>> all;
    for (size_t rank = 0; rank < ranks; ++rank)
      all.push_back(std::make_unique<BenchRank>(group, bytes / sizeof(float)));
    sluice_unique_id id;
    need(half().collectives->unique_id(all[0]->run, &id), "unique_id");
    for (size_t rank = 0; rank < ranks; ++rank)
      all[rank]->join(id, static_cast<int32_t>(rank), static_cast<int32_t>(ranks));
    int repetitions = bytes > (1 << 20) ? 20 : 2000;
    double apart = bestOf(ranks, repetitions, [&](size_t rank) { all[rank]->exchange(false); });
    double inPlace = bestOf(ranks, repetitions, [&](size_t rank) { all[rank]->exchange(true); });
    double copied = bestOf(ranks, repetitions,
                           [&](size_t rank) { memcpy(all[rank]->receive.data(), all[rank]->send.data(), bytes); });
    printf(
        "%zu ranks %10zu bytes: all-reduce %9.4f ms, in place %9.4f ms (%5.1f GB/s read and written), each copying as "
        "much %9.4f ms (%5.1f GB/s)\n",
        ranks, bytes, apart * 1e3, inPlace * 1e3, 2e-9 * static_cast<double>(ranks * bytes) / inPlace, copied * 1e3,
        2e-9 * static_cast<double>(ranks * bytes) / copied);
  }
  half().group_destroy(group);
}

int main(int argc, char **argv) {
  std::vector<size_t> ranks = {2, 4};
  CLI::App app("Measures all-reduce in f32 between ranks in threads of one process, and compares it with reading and "
               "writing the same bytes.",
               "exchange_bench");
  sluice::help::setHelp(app);
  app.add_option("ranks", ranks, "Numbers of ranks to measure (default: 2 4)")
      ->type_name("N...")
      ->check(sluice::help::wholeNumber(1, INT32_MAX));
  if (std::optional<int> code = sluice::help::parse(app, argc, argv))
    return *code;
  for (size_t size : ranks)
    for (size_t bytes : {size_t(4) << 10, size_t(1) << 20, size_t(25) << 20})
      bench(size, bytes);
}
