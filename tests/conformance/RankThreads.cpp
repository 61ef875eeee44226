#include "tests/conformance/RankThreads.h"

#include <algorithm>
#include <thread>

namespace sluice::conformance {

void inThreads(int32_t size, const std::function<void(int32_t rank)> &body) {
  std::vector<std::string> failures(static_cast<size_t>(size));
  std::vector<std::thread> threads;
  for (int32_t rank = 0; rank < size; ++rank)
    threads.emplace_back([&, rank] {
      try {
        body(rank);
      } catch (const std::exception &why) {
        failures[static_cast<size_t>(rank)] = why.what();
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  for (const std::string &failure : failures)
    expect(failure.empty(), failure);
}

ManyThreads::ManyThreads(const Subject &subject, Places places, int32_t size)
    : group(subject), ranks(static_cast<size_t>(size)) {
  for (int32_t rank = 0; rank < size; ++rank)
    halves.push_back(contextFor(subject, places, size, group.get()));
  sluice_unique_id id;
  halves[0]->check(halves[0]->table().collectives->unique_id(halves[0]->get(), &id), "unique_id");
  inThreads(size, [&](int32_t rank) {
    auto at = static_cast<size_t>(rank);
    ranks[at] = std::make_unique<Rank>(*halves[at], id, rank, size, deviceOf(places, rank));
  });
}

Rounds::Rounds(Rank &rank)
    : rank(rank), task{SLUICE_ALL_REDUCE, SLUICE_DTYPE_f32, SLUICE_SUM, 0, 5000, {}},
      memory(rank.half().allocate(20000, rank.device())), work(rank.half().queue(rank.device())),
      received(kRounds, Bytes(20000)) {
  for (unsigned round = 0; round < kRounds; ++round)
    sent.push_back(elements(task.dtype, task.count, 100 * round + static_cast<unsigned>(rank.number())));
}

void Rounds::upload(unsigned round) {
  rank.half().upload(work, sent[round], memory, rank.device());
  rank.half().wait(rank.queue(), rank.half().record(work));
}

void Rounds::download(unsigned round) {
  rank.half().wait(work, rank.half().record(rank.queue()));
  rank.half().download(work, memory, received[round], rank.device());
}

void Rounds::check(const std::vector<std::unique_ptr<Rounds>> &ranks, unsigned rounds) {
  for (unsigned round = 0; round < rounds; ++round) {
    std::vector<Bytes> sent, received;
    for (const std::unique_ptr<Rounds> &rank : ranks) {
      sent.push_back(rank->sent[round]);
      received.push_back(rank->received[round]);
    }
    checkReceived(ranks.front()->task, sent, received);
  }
}

std::vector<std::unique_ptr<Rounds>> roundsOf(const std::vector<std::unique_ptr<Rank>> &ranks) {
  std::vector<std::unique_ptr<Rounds>> rounds;
  for (const std::unique_ptr<Rank> &rank : ranks)
    rounds.push_back(std::make_unique<Rounds>(*rank));
  return rounds;
}

} // namespace sluice::conformance
