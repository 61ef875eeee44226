// Measures calls on arrays: the time of cached calls, the time and memory of the first call of new functions, and the
// first backward of long records.
#include "runtime/help/Arguments.h"
#include "runtime/help/HelpFormatter.h"
#include "sluice/array.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <string>
#include <unistd.h>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

/// Microseconds of a call, the median of several rounds.
double timeOf(const std::function<void()> &call, int calls) {
  std::vector<double> rounds;
  for (int round = 0; round < 11; ++round) {
    auto start = Clock::now();
    for (int i = 0; i < calls; ++i)
      call();
    sluice::wait_all();
    rounds.push_back(std::chrono::duration<double, std::micro>(Clock::now() - start).count() / calls);
  }
  std::sort(rounds.begin() + 1, rounds.end()); // the first one warms up
  return rounds[6];
}

/// Resident memory in kB.
double resident() {
  std::ifstream file("/proc/self/statm");
  long size = 0, pages = 0;
  file >> size >> pages;
  return double(pages) * double(sysconf(_SC_PAGESIZE)) / 1e3;
}

void measureCached(const sluice::Device &device) {
  for (std::int64_t elements : {1, 1000, 1000000}) {
    sluice::Array a = sluice::ones({elements}, sluice::f32, device), b = a * 2.0;
    int calls = elements < 100000 ? 20000 : 200;
    std::printf("%s: add of %lld elements: %.2f us\n", device.str().c_str(), static_cast<long long>(elements),
                timeOf([&] { sluice::Array c = a + b; }, calls));
  }
}

void measureFirst(const sluice::Device &device, int functions) {
  std::vector<double> times;
  double before = 0;
  for (int i = 0; i < functions; ++i) {
    if (i == 10)
      before = resident();
    sluice::Array x = sluice::empty({8 + i}, sluice::f32, device);
    auto start = Clock::now();
    sluice::Array y = i % 3 == 0 ? sluice::exp(x) : i % 3 == 1 ? x * x : sluice::sum(x);
    sluice::wait_all();
    times.push_back(std::chrono::duration<double, std::milli>(Clock::now() - start).count());
  }
  std::sort(times.begin(), times.end());
  std::printf("%s: first call of %d functions: median %.2f ms, worst %.2f ms; %.0f kB of memory for each\n",
              device.str().c_str(), functions, times[times.size() / 2], times.back(),
              (resident() - before) / (functions - 10));
}

/// Measures the first backward of records of several lengths. The time should grow linearly with the number of calls.
void measureRecord(const sluice::Device &device) {
  sluice::Array w = sluice::full({8, 8}, 0.1, sluice::f32, device);
  w.attach_grad();
  for (int calls : {1000, 4000, 16000}) {
    auto tape = sluice::record();
    sluice::Array x = sluice::ones({8, 8}, sluice::f32, device);
    for (int i = 0; i < calls; i += 4)
      x = sluice::tanh(sluice::matmul(x, w)) / x.sum();
    auto start = Clock::now();
    x.backward();
    sluice::wait_all();
    std::printf("%s: first backward of %d calls: %.0f ms\n", device.str().c_str(), calls,
                std::chrono::duration<double, std::milli>(Clock::now() - start).count());
  }
}

} // namespace

int main(int argc, char **argv) {
  setenv("SLUICE_CACHE", "off", /*overwrite=*/1); // every run compiles its functions
  CLI::App app("Measures calls of functions on arrays. A benchmark: it has no pass criterion.", "arrays_bench");
  sluice::help::setHelp(app);
  std::string devices = "cpu";
  int functions = 300;
  app.add_option("--devices", devices, "Devices, e.g. cpu,sim:0 (default: cpu)")->type_name("LIST");
  app.add_option("--functions", functions, "Number of functions to compile (default: 300)")
      ->type_name("N")
      ->check(sluice::help::wholeNumber(20, 100'000));
  if (std::optional<int> code = sluice::help::parse(app, argc, argv))
    return *code;
  sluice::set_devices(devices);
  std::vector<sluice::Device> all{sluice::cpu()};
  for (int i = 0; i < sluice::gpu_count(); ++i)
    all.push_back(sluice::gpu(i));
  for (const sluice::Device &device : all) {
    measureCached(device);
    measureFirst(device, functions);
    measureRecord(device);
  }
  return 0;
}
