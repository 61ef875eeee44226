// Measures the time from a graph of one op to its result, for many different graphs in one process: building, compiling,
// loading and running. Also prints resident memory, open files and threads after the second and the last graph. Then
// measures the same graphs again, whose kernels the compiler has cached.
#include "runtime/help/Arguments.h"
#include "runtime/help/HelpFormatter.h"
#include "sluice/compile.h"
#include "sluice/sluice.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace {

using Function = sluice::Tensor (*)(const sluice::Tensor &);
const Function kFunctions[] = {
    [](const sluice::Tensor &x) { return sluice::exp(x); },  [](const sluice::Tensor &x) { return sluice::tanh(x); },
    [](const sluice::Tensor &x) { return sluice::relu(x); }, [](const sluice::Tensor &x) { return x + x; },
    [](const sluice::Tensor &x) { return x * x; },
};

/// The number of entries of a folder of /proc/self.
long countOf(const char *folder) {
  return std::distance(std::filesystem::directory_iterator(folder), std::filesystem::directory_iterator());
}

/// Resident memory in MB.
double resident() {
  std::ifstream file("/proc/self/statm");
  long size = 0, pages = 0;
  file >> size >> pages;
  return double(pages) * 4096 / 1e6;
}

/// Milliseconds for the graph with this number. Each number gives a different shape.
double runOne(int number, const std::string &devices) {
  auto start = std::chrono::steady_clock::now();
  sluice::Graph graph("one_op");
  std::int64_t size = 8 + number;
  sluice::Tensor x = graph.input("x", sluice::f32, {size});
  graph.output("y", kFunctions[size_t(number) % std::size(kFunctions)](x));
  sluice::Program program = sluice::compile(graph, {.devices = devices});
  program.set_input<float>("x", std::vector<float>(size_t(size), 1));
  program.run("predict", 1);
  if (program.output<float>("y").size() != size_t(size))
    std::abort();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

void printState(int graphs) {
  std::printf("after %3d graphs: resident %.1f MB, %ld open files, %ld threads\n", graphs, resident(),
              countOf("/proc/self/fd"), countOf("/proc/self/task"));
}

void printTimes(std::vector<double> times) {
  std::sort(times.begin(), times.end());
  std::printf("median %.1f ms, worst %.1f ms\n", times[times.size() / 2], times.back());
}

} // namespace

int main(int argc, char **argv) {
  CLI::App app("Measures the time from a graph of one op to its result. A benchmark: it has no pass criterion.",
               "one_op_bench");
  sluice::help::setHelp(app);
  int graphs = 200;
  std::string devices;
  app.add_option("--graphs", graphs, "Number of different graphs (default: 200)")
      ->type_name("N")
      ->check(sluice::help::wholeNumber(2, 100'000));
  app.add_option("--devices", devices, "Devices of the programs, e.g. cpu,sim:0 (default: cpu)")->type_name("LIST");
  if (std::optional<int> code = sluice::help::parse(app, argc, argv))
    return *code;
  std::vector<double> times;
  for (int number = 0; number < graphs; ++number) {
    times.push_back(runOne(number, devices));
    if (number == 1 || number + 1 == graphs)
      printState(number + 1);
  }
  std::printf("first %.1f ms, then ", times.front());
  printTimes({times.begin() + 1, times.end()});
  for (int number = 0; number < graphs; ++number)
    times[size_t(number)] = runOne(number, devices);
  std::printf("the same graphs again, with kernels of the cache: ");
  printTimes(times);
  return 0;
}
