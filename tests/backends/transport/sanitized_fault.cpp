// Faults that sanitized_test.py must detect: wrong uses of the exchanges' code.
#include "backends/exchange/Roster.h"
#include "backends/exchange/Transfer.h"

#include <cstring>
#include <thread>
#include <vector>

using namespace sluice::exchange;

/// A roster is for one thread at a time: two put in exchanges without a lock.
static void useRosterInTwoThreads() {
  Roster roster(1);
  roster.join(0, 0);
  auto putMany = [&] {
    for (int i = 0; i < 1000; ++i)
      roster.put(0);
  };
  std::thread other(putMany);
  putMany();
  other.join();
}

/// What is received is a float longer than its memory.
static void receiveTooMuch() {
  constexpr size_t kElements = 16;
  std::vector<float> sent(kElements, 1), received(kElements - 1);
  Signature signature{SLUICE_ALL_REDUCE, SLUICE_DTYPE_f32, SLUICE_SUM, 0, {kElements}, "test"};
  size_t bytes = kElements * sizeof(float);
  Transfer({{signature, sent.data(), bytes, received.data(), bytes}}).run(0, kElements);
}

int main(int, char **argv) {
  std::strcmp(argv[1], "thread") == 0 ? useRosterInTwoThreads() : receiveTooMuch();
  return 0;
}
