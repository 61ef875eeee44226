// sluice::compile: a graph built and run in one program.
#include <cstdlib>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <set>
#include <sluice/compile.h>
#include <sluice/sluice.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace sluice;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {

/// y = relu(x w + b), trained towards a target by the mean square error.
struct Line : nn::Module {
  using Module::Module;
  nn::Linear fc{this, "fc", 3, 2};
  Tensor forward(Tensor x) override { return relu(fc(x)); }
};

Graph lineGraph(int64_t capacity = 4) {
  Graph g{"line"};
  g.set_capacity(capacity);
  Tensor x = g.input("x", f32, {Dim{"batch"}, 3});
  Tensor target = g.input("target", f32, {Dim{"batch"}, 2});
  Line line{g};
  Tensor y = line(x);
  g.output("y", y);
  g.minimize(mean((y - target) * (y - target)), optim::SGD{.lr = 0.1});
  return g;
}

void initialise(Program &program) {
  program.seed(1);
  program.run("init", 1);
}

void setWeights(Program &program) {
  program.set_state("fc.weight", std::vector<float>{1, 2, 3, -1, 0, 1});
  program.set_state("fc.bias", std::vector<float>{0.5F, -0.5F});
}

std::string messageOf(const std::function<void()> &body) {
  try {
    body();
  } catch (const Error &error) {
    return error.what();
  }
  return "no error";
}

} // namespace

TEST(InProcess, PredictsOnAnyNumberOfRows) {
  Program program = compile(lineGraph());
  setWeights(program);

  program.set_input("x", std::vector<float>{1, 0, 0, 0, 1, 1, 1, 1, 1});
  program.run("predict", 3);
  EXPECT_THAT(program.output<float>("y"), ElementsAre(1.5F, 0.0F, 5.5F, 0.5F, 6.5F, 0.0F));

  program.set_input("x", std::vector<float>{0, 0, 1});
  program.run("predict", 1);
  EXPECT_THAT(program.output<float>("y"), ElementsAre(3.5F, 0.5F));
}

TEST(InProcess, TrainingLowersTheLoss) {
  Program program = compile(lineGraph());
  program.seed(1);
  program.run("init", 1);
  program.set_input("x", std::vector<float>{1, 0, 0, 0, 1, 0});
  program.set_input("target", std::vector<float>{1, 2, 3, 4});

  program.run("train_step", 2);
  float first = program.output<float>("loss")[0];
  for (int step = 0; step < 50; ++step)
    program.run("train_step", 2);

  EXPECT_LT(program.output<float>("loss")[0], first * 0.8F);
}

TEST(InProcess, TheSeedDecidesTheInitialValues) {
  Program a = compile(lineGraph()), b = compile(lineGraph());
  a.seed(7);
  b.seed(7);
  a.run("init", 1);
  b.run("init", 1);
  std::vector<float> first = a.state<float>("fc.weight");
  EXPECT_EQ(first, b.state<float>("fc.weight"));

  b.seed(8);
  b.run("init", 1);
  EXPECT_NE(first, b.state<float>("fc.weight"));
}

TEST(InProcess, ProgramsAreIndependent) {
  Program a = compile(lineGraph()), b = compile(lineGraph());
  setWeights(a);

  EXPECT_THAT(b.state<float>("fc.bias"), ElementsAre(0.0F, 0.0F));
}

TEST(InProcess, ComputesInDoubleWhenAsked) {
  Program program = compile(lineGraph(), {.dtype = f64});
  program.set_state("fc.weight", std::vector<double>{0.1, 0, 0, 0, 0, 0});
  program.set_state("fc.bias", std::vector<double>{0, 0});
  program.set_input("x", std::vector<double>{0.1, 0, 0});
  program.run("predict", 1);

  EXPECT_DOUBLE_EQ(program.output<double>("y")[0], 0.1 * 0.1);
}

TEST(InProcess, TheCapacityCanBeReplaced) {
  Program program = compile(lineGraph(4), {.capacity = 8});
  initialise(program);
  program.set_input("x", std::vector<float>(24, 1));
  program.run("predict", 8);

  EXPECT_EQ(program.output<float>("y").size(), 16U);
}

TEST(InProcess, WrongUseIsAnError) {
  Program program = compile(lineGraph());

  EXPECT_THAT(messageOf([&] { program.run("predict", 1); }), HasSubstr("needs the input 'x'"));
  EXPECT_THAT(messageOf([&] { program.run("no_such_entry", 1); }), HasSubstr("no_such_entry"));
  EXPECT_THAT(messageOf([&] { program.output<float>("y"); }), HasSubstr("nothing has run yet"));
  EXPECT_THAT(messageOf([&] { program.state<float>("no_such_state"); }), HasSubstr("no_such_state"));
  EXPECT_THAT(messageOf([&] { program.state<double>("fc.bias"); }), HasSubstr("'fc.bias' is f32, not f64"));
  EXPECT_THAT(messageOf([&] { program.set_state("fc.bias", std::vector<float>{1}); }),
              HasSubstr("'fc.bias' has 2 elements, not 1"));
  program.set_input("x", std::vector<double>{1, 2, 3});
  EXPECT_THAT(messageOf([&] { program.run("predict", 1); }), HasSubstr("'x' is f32, not f64"));
  program.set_input("x", std::vector<float>{1, 2});
  EXPECT_THAT(messageOf([&] { program.run("predict", 1); }), HasSubstr("'x' has 3 elements, not 2"));
  program.set_input("x", std::vector<float>(15));
  EXPECT_THAT(messageOf([&] { program.run("predict", 5); }), HasSubstr("5"));
}

TEST(InProcess, AGraphThatCannotBeCompiledIsAnError) {
  EXPECT_THAT(messageOf([] { compile(lineGraph(), {.dtype = i32}); }), HasSubstr("cannot be computed in i32"));
  EXPECT_THAT(messageOf([] { compile(lineGraph(), {.capacity = -1}); }), HasSubstr("-1 rows"));
}

/// How a child ends that compiles and runs with `extra` bytes more of address space than this process has: 0, 5 if an
/// Error said that memory ran out, 1 if it said something else; a signal is 1000 and more.
static int endWithMemory(uint64_t extra) {
  pid_t child = fork();
  if (child == 0) {
    uint64_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    uint64_t bytes = pages * uint64_t(sysconf(_SC_PAGESIZE)) + extra;
    rlimit limit{bytes, bytes};
    setrlimit(RLIMIT_AS, &limit);
    std::string message = messageOf([] { compile(lineGraph()).run("init", 1); });
    _exit(message == "no error" ? 0 : message.find("out of memory") != std::string::npos ? 5 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

TEST(InProcess, LittleMemoryIsAnError) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "a sanitizer's shadow memory exceeds any such limit";
#endif
  bool isFull = std::getenv("SLUICE_TEST_FULL") != nullptr;
  std::set<int> ends;
  for (uint64_t mb = 8; mb <= 400; mb += isFull ? 4 : 56) {
    int end = endWithMemory(mb << 20);
    EXPECT_TRUE(end == 0 || end == 5) << end << " with " << mb << " MB more";
    ends.insert(end);
  }
  EXPECT_THAT(ends, testing::Contains(5));
}
