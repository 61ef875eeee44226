// Threads that compile, load and run programs at the same time, all in the default pool of the process.
#include <gtest/gtest.h>
#include <sluice/compile.h>
#include <sluice/sluice.h>
#include <thread>

using namespace sluice;

namespace {

/// y = x * number + x, with a shape and a constant that differ between programs.
void runOne(const std::string &devices, std::int64_t size, float number) {
  Graph graph("one_op");
  Tensor x = graph.input("x", f32, {size});
  graph.output("y", x * number + x);
  Program program = compile(graph, {.devices = devices});
  std::vector<float> values(std::size_t(size), 2), expected(std::size_t(size), 2 * number + 2);
  program.set_input<float>("x", values);
  program.run("predict", 1);
  EXPECT_EQ(program.output<float>("y"), expected);
  std::int64_t copies = 0;
  for (const TransferCount &count : program.transfers())
    copies += count.copies;
  EXPECT_EQ(copies, devices == "cpu" ? 0 : 2) << "of this program alone";
}

} // namespace

TEST(CompileThreads, RunProgramsInOnePool) {
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 2; ++thread)
    threads.emplace_back([thread] {
      for (int i = 0; i < 8; ++i)
        runOne(i % 2 ? "sim:0" : "cpu", 8 + i + 100 * thread, float(i + 1));
    });
  for (std::thread &thread : threads)
    thread.join();
}
