// sluice::compile: a graph built and run in one program.
#include "tests/TemporaryFolder.h"
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

#include <cstdint>
#include <cstdio>

using namespace sluice;
using sluice::test::TemporaryFolder;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

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

/// logits = x w + b against labels of four classes.
Graph classifierGraph() {
  Graph g{"classifier"};
  g.set_capacity(4);
  Tensor x = g.input("x", f32, {Dim{"batch"}, 3}), label = g.input("label", i32, {Dim{"batch"}});
  nn::Module root{g};
  nn::Linear fc{&root, "fc", 3, 4};
  Tensor logits = fc(x);
  g.output("logits", logits);
  g.minimize(cross_entropy(logits, label.to(i64)), optim::SGD{.lr = 0.1});
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

/// Running means and variances after two steps on five rows, which three replicas share unevenly.
static std::vector<float> statisticsOf(CompileOptions options) {
  Graph g{"norm"};
  g.set_capacity(6);
  nn::Module root{g};
  nn::BatchNorm2d norm{&root, "bn", 2};
  Tensor y = norm(g.input("x", f32, {Dim{"batch"}, 2}));
  g.minimize(mean(y * y * y), optim::SGD{.lr = 0.1});
  Program program = compile(g, options);
  initialise(program);
  program.set_input("x", std::vector<float>{1, 200, -1, 201, 4, 199, 2, 203, 0.5F, 200});
  program.run("train_step", 5);
  program.run("train_step", 5);
  std::vector<float> statistics = program.state<float>("bn.running_mean"), var = program.state<float>("bn.running_var");
  statistics.insert(statistics.end(), var.begin(), var.end());
  return statistics;
}

TEST(InProcess, SynchronisedNormsHaveTheStatisticsOfAllRows) {
  using testing::FloatNear;
  using testing::Pointwise;
  std::vector<float> one = statisticsOf({});
  EXPECT_THAT(statisticsOf({.devices = "sim:0-2", .replicas = 3, .batch_norm = "sync"}),
              Pointwise(FloatNear(1e-5F), one));
  EXPECT_THAT(statisticsOf({.devices = "sim:0-2", .replicas = 3, .batch_norm = "local"}),
              testing::Not(Pointwise(FloatNear(1e-2F), one)));
}

TEST(InProcess, LogicalShardsHaveTheSameStatisticsForAnyNumberOfReplicas) {
  std::vector<float> one = statisticsOf({.devices = "sim:0", .deterministic = 4});
  EXPECT_EQ(statisticsOf({.devices = "sim:0-1", .replicas = 2, .deterministic = 4}), one);
  EXPECT_EQ(statisticsOf({.devices = "sim:0-3", .replicas = 4, .deterministic = 4}), one);
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

/// Checks that `x` is rounded to `rounded` for its product with 1, and that the state keeps its value.
static void expectProductsIn(DType precision, float x, float rounded) {
  Program program = compile(lineGraph(), {.precision = precision});
  program.set_state("fc.weight", std::vector<float>{1, 0, 0, 0.3F, 0, 0});
  program.set_state("fc.bias", std::vector<float>{0, 0});
  program.set_input("x", std::vector<float>{x, 0, 0});
  program.run("predict", 1);

  EXPECT_EQ(program.output<float>("y")[0], rounded);
  EXPECT_EQ(program.state<float>("fc.weight")[3], 0.3F);
}

TEST(InProcess, ComputesProductsInBf16WhenAsked) { expectProductsIn(bf16, 1.01F, 1.0078125F); }

TEST(InProcess, ComputesProductsInF16WhenAsked) { expectProductsIn(f16, 1.001F, 1.0009765625F); }

TEST(InProcess, TheCapacityCanBeReplaced) {
  Program program = compile(lineGraph(4), {.capacity = 8});
  initialise(program);
  program.set_input("x", std::vector<float>(24, 1));
  program.run("predict", 8);

  EXPECT_EQ(program.output<float>("y").size(), 16U);
}

TEST(InProcess, WrongUseIsAnError) {
  Program program = compile(lineGraph());

  // Each error names the method and this file's line.
  auto says = [](const std::string &text) {
    return AllOf(StartsWith("InProcessTest.cpp:"), HasSubstr("error: " + text));
  };

  EXPECT_THAT(messageOf([&] { program.run("predict", 1); }),
              says("run: 'predict' needs the input 'x', which has no value: call set_input(\"x\", values) before run"));
  EXPECT_THAT(messageOf([&] { program.run("init", 1); }),
              says("run: 'init' draws random numbers and has no seed: call seed(n) before run(\"init\", rows)"));
  EXPECT_THAT(messageOf([&] { program.run("fit", 1); }), says("run: the model has no entry point 'fit'"));
  EXPECT_THAT(messageOf([&] { program.output<float>("y"); }), says("output: nothing has run yet"));
  EXPECT_THAT(messageOf([&] { program.state<float>("mass"); }), says("state: the model has no state 'mass'"));
  EXPECT_THAT(messageOf([&] { program.state<double>("fc.bias"); }),
              says("state: state 'fc.bias' is f32, and was called with f64"));
  EXPECT_THAT(messageOf([&] { program.set_state("fc.bias", std::vector<float>{}); }),
              says("set_state: state 'fc.bias' has 2 elements, and 0 were given"));
  EXPECT_THAT(messageOf([&] { program.set_input("z", std::vector<float>{1}); }),
              says("set_input: no entry point has an input 'z'; they have: x, target, key"));
  EXPECT_THAT(messageOf([&] { program.set_input("x", std::vector<double>{1, 2, 3}); }),
              says("set_input: input 'x' is f32, and was called with f64"));
  program.set_input("x", std::vector<float>{});
  EXPECT_THAT(messageOf([&] { program.run("predict", 1); }),
              says("run: input 'x' has 3 elements in 1 rows of 'predict', and set_input gave 0"));
  program.set_input("x", std::vector<float>(15));
  EXPECT_THAT(messageOf([&] { program.run("predict", 5); }),
              says("run: a call of 'predict' has 5 rows, outside [1, 4]"));
  EXPECT_THAT(messageOf([&] { program.load_weights("/no/such/file"); }), says("load_weights: /no/such/file"));
  EXPECT_THAT(messageOf([&] { program.save_weights("/no/such/folder/w"); }), says("save_weights: /no/such/folder"));
}

TEST(InProcess, WithoutWeightsNothingRuns) {
  Program program = compile(lineGraph());
  program.set_input("x", std::vector<float>{1, 2, 3});
  program.set_input("target", std::vector<float>{1, 2});
  for (const char *entry : {"train_step", "eval_step", "predict"})
    EXPECT_THAT(messageOf([&] { program.run(entry, 1); }), HasSubstr("which nothing has set: run 'init' first"));
  setWeights(program);
  EXPECT_EQ(messageOf([&] { program.run("predict", 1); }), "no error");
  EXPECT_EQ(messageOf([&] { program.run("eval_step", 1); }), "no error");
  EXPECT_THAT(messageOf([&] { program.run("train_step", 1); }), HasSubstr("reads 'lr', which nothing has set"));
  program.set_state("lr", std::vector<float>{0.1F});
  EXPECT_EQ(messageOf([&] { program.run("train_step", 1); }), "no error");
}

TEST(InProcess, AMemoryLimitIsCheckedAgainstThePlan) {
  EXPECT_THAT(messageOf([] { compile(lineGraph(), {.devices = "cpu,sim:0=1MB"}); }), "no error");
  EXPECT_THAT(messageOf([] { compile(lineGraph(), {.devices = "cpu=10B,sim:0=1MB"}); }),
              AllOf(HasSubstr("cannot fit the model into cpu: its planned peak memory is "),
                    HasSubstr(" bytes, and --devices allows 10; use fewer rows (--batch)")));
}

TEST(InProcess, LabelsNameClasses) {
  Program program = compile(classifierGraph());
  initialise(program);
  program.set_input("x", std::vector<float>{1, 2, 3, 4, 5, 6});
  for (int wrong : {4, -1, 1 << 30}) {
    program.set_input("label", std::vector<std::int32_t>{3, wrong});
    for (const char *entry : {"train_step", "eval_step"})
      EXPECT_THAT(
          messageOf([&] { program.run(entry, 2); }),
          HasSubstr("run: input 'label', row 1: " + std::to_string(wrong) + " is none of the 4 classes 0 to 3"));
  }
  EXPECT_EQ(messageOf([&] { program.run("predict", 2); }), "no error"); // reads no labels
  program.set_input("label", std::vector<std::int32_t>{3, 0});
  EXPECT_EQ(messageOf([&] { program.run("train_step", 2); }), "no error");
}

TEST(InProcess, BytesOfImagesAreDividedTruly) {
  Graph g{"scale"};
  g.set_capacity(4);
  Tensor image = g.input("image", u8, {Dim{"batch"}, 2});
  g.output("y", image / 255);
  g.output("sum", image.sum(1));
  Program program = compile(g);
  program.set_input("image", std::vector<std::uint8_t>{255, 51, 0, 102});
  program.run("predict", 2);
  EXPECT_THAT(program.output<float>("y"), ElementsAre(1.0F, 0.2F, 0.0F, 0.4F));
  EXPECT_THAT(program.output<std::int64_t>("sum"), ElementsAre(306, 102));
}

TEST(InProcess, IntegersAreClippedAndNegated) {
  Graph g{"integers"};
  g.set_capacity(4);
  Tensor x = g.input("x", i32, {Dim{"batch"}, 3}), bytes = g.input("bytes", u8, {Dim{"batch"}, 3});
  g.output("abs", abs(x));
  g.output("neg", -bytes);
  g.output("clip", clip(x, -2, 2));
  g.output("absBytes", abs(bytes));
  Program program = compile(g);
  program.set_input("x", std::vector<std::int32_t>{-5, INT32_MIN, 1});
  program.set_input("bytes", std::vector<std::uint8_t>{0, 200, 1});
  program.run("predict", 1);
  EXPECT_THAT(program.output<std::int32_t>("abs"), ElementsAre(5, INT32_MIN, 1));
  EXPECT_THAT(program.output<std::uint8_t>("neg"), ElementsAre(0, 56, 255));
  EXPECT_THAT(program.output<std::int32_t>("clip"), ElementsAre(-2, -2, 1));
  EXPECT_THAT(program.output<std::uint8_t>("absBytes"), ElementsAre(0, 200, 1));
}

TEST(InProcess, BoolsComeInAndGoOut) {
  Graph g{"flags"};
  g.set_capacity(4);
  Tensor flag = g.input("flag", boolean, {Dim{"batch"}});
  g.output("not", !flag);
  g.output("number", where(flag, 1.0, 0.5));
  Program program = compile(g);
  program.set_input("flag", std::vector<bool>{true, false, true});
  program.run("predict", 3);
  EXPECT_THAT(program.output<bool>("not"), ElementsAre(false, true, false));
  EXPECT_THAT(program.output<float>("number"), ElementsAre(1.0F, 0.5F, 1.0F));
}

TEST(InProcess, PoolsHangOverTheirInput) {
  Graph g{"pools"};
  g.set_capacity(2);
  Tensor x = g.input("x", f32, {Dim{"batch"}, 1, 2, 2});
  g.output("mean", avg_pool2d(x, 3, {.stride = 2, .ceil_mode = true}));
  g.output("max", max_pool2d(x, 4, {.stride = 3, .ceil_mode = true}));
  g.output("row", x.permute({1, 2, 0, 3}).select(0, 0).select(0, 1));
  Program program = compile(g);
  program.set_input("x", std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8});
  program.run("predict", 2);
  EXPECT_THAT(program.output<float>("mean"), ElementsAre(2.5F, 6.5F));
  EXPECT_THAT(program.output<float>("max"), ElementsAre(4.0F, 8.0F));
  EXPECT_THAT(program.output<float>("row"), ElementsAre(3.0F, 4.0F, 7.0F, 8.0F));
}

TEST(InProcess, AnInputThatNothingReadsNeedsNoValue) {
  Graph g{"unread"};
  g.output("y", g.input("x", f32, {2}) * 2);
  g.input("spare name:0", i32, {3});
  Program program = compile(g);
  program.set_input("x", std::vector<float>{1, 2});
  program.run("predict", 1);
  EXPECT_THAT(program.output<float>("y"), testing::ElementsAre(2, 4));
  program.set_input("spare name:0", std::vector<std::int32_t>{1, 2, 3});
  program.run("predict", 1);
  program.set_input("spare name:0", std::vector<std::int32_t>{1, 2});
  EXPECT_THAT(messageOf([&] { program.run("predict", 1); }), testing::HasSubstr("'spare name:0' has 3 elements"));
}

//===- several sizes ----------------------------------------------------------------------------------------------===//

/// y = the sums of x w over T, for several sizes T.
static Graph sized() {
  Graph g{"sized"};
  nn::Module root{g};
  Tensor w = root.parameter("w", {3}, init::constant(2));
  g.sizes("T", {4, 6}, [&](std::int64_t t) {
    Tensor x = g.input("x", f32, {1, t, 3}), scale = g.input("scale", f32, {1});
    g.output("y", (x * w * scale).sum(1));
  });
  return g;
}

TEST(InProcess, PredictTakesTheSizeThatFits) {
  Program program = compile(sized());
  program.set_state("w", std::vector<float>{1, 2, 3});
  program.set_input("scale", std::vector<float>{10});
  for (size_t size : {6, 4, 6}) {
    program.set_input("x", std::vector<float>(size * 3, 1));
    program.run("predict", 1);
    float each = 10 * float(size);
    EXPECT_THAT(program.output<float>("y"), testing::ElementsAre(each, 2 * each, 3 * each));
  }
  program.run("predict-T6", 1);
  program.set_input("x", std::vector<float>(15, 1));
  EXPECT_THAT(
      messageOf([&] { program.run("predict", 1); }),
      testing::HasSubstr(
          "run: no size of 'predict' takes 1 elements of 'scale', 15 elements of 'x'; it has: predict-T4 (x: f32[1, 4, "
          "3], scale: f32[1]), predict-T6 (x: f32[1, 6, 3], scale: f32[1])"));
}

TEST(InProcess, SizesOfTwoDimensionsMayHaveEquallyManyElements) {
  Graph g{"sized"};
  g.sizes("H", {2, 4}, [&](std::int64_t h) {
    g.sizes("W", {2, 4}, [&](std::int64_t w) { g.output("y", g.input("x", f32, {h, w}).sum(0)); });
  });
  Program program = compile(g);
  program.set_input("x", std::vector<float>(16, 1));
  program.run("predict", 1);
  EXPECT_THAT(program.output<float>("y"), testing::ElementsAre(4, 4, 4, 4));
  program.set_input("x", std::vector<float>(8, 1));
  EXPECT_THAT(messageOf([&] { program.run("predict", 1); }),
              testing::HasSubstr("several sizes of 'predict' take 8 elements of 'x': predict-H2-W4 (x: f32[2, 4]), "
                                 "predict-H4-W2 (x: f32[4, 2]); give the name of one"));
  program.run("predict-H2-W4", 1);
  EXPECT_THAT(program.output<float>("y"), testing::ElementsAre(2, 2, 2, 2));
}

TEST(InProcess, WeightsGoToAFileAndComeBack) {
  TemporaryFolder folder;
  std::string path = folder / "weights.safetensors";
  Program a = compile(lineGraph()), b = compile(lineGraph());
  setWeights(a);
  a.save_weights(path);
  b.load_weights(path);
  EXPECT_EQ(b.state<float>("fc.weight"), a.state<float>("fc.weight"));
  b.set_input("x", std::vector<float>{1, 0, 0});
  b.run("predict", 1);
  EXPECT_THAT(b.output<float>("y"), ElementsAre(1.5F, 0.0F));
  Program other = compile(classifierGraph());
  EXPECT_THAT(messageOf([&] { other.load_weights(path); }), HasSubstr("'fc.weight' is f32[2, 3], but the model has"));
}

TEST(InProcess, WeightsOfAWiderTypeAreRounded) {
  TemporaryFolder folder;
  std::string path = folder / "weights.safetensors";
  Program wide = compile(lineGraph(), {.dtype = f64}), narrow = compile(lineGraph());
  wide.set_state("fc.weight", std::vector<double>{0.1, 1, -2, 1.0 / 3, 1e-50, 3});
  wide.set_state("fc.bias", std::vector<double>{0.5, 0x1p25 + 1});
  wide.save_weights(path);
  narrow.load_weights(path);
  EXPECT_EQ(narrow.state<float>("fc.weight"), (std::vector<float>{0.1F, 1, -2, 1.0F / 3, 0, 3}));
  EXPECT_EQ(narrow.state<float>("fc.bias"), (std::vector<float>{0.5F, 0x1p25F}));
  wide.set_state("fc.bias", std::vector<double>{0, 1e40});
  wide.save_weights(path);
  EXPECT_THAT(messageOf([&] { narrow.load_weights(path); }), HasSubstr("'fc.bias' has 1e+40, which f32 does not hold"));
}

TEST(InProcess, AGraphThatCannotBeCompiledIsAnError) {
  EXPECT_THAT(messageOf([] { compile(lineGraph(), {.dtype = i32}); }), HasSubstr("dtype: 'i32' is none of f32, f64"));
  EXPECT_THAT(messageOf([] { compile(lineGraph(), {.precision = i32}); }),
              HasSubstr("precision: 'i32' is none of f32, bf16, f16"));
  EXPECT_THAT(messageOf([] { compile(lineGraph(), {.capacity = -1}); }),
              HasSubstr("capacity: '-1' is not a whole number from 1 to 2147483647"));
}

/// How a child ends that compiles and runs with `extra` bytes of address space beyond this process: 0; 5 for an
/// out-of-memory Error; 1 for another Error; 1000 or more for a signal.
static int endWithMemory(uint64_t extra) {
  pid_t child = fork();
  if (child == 0) {
    uint64_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    uint64_t bytes = pages * uint64_t(sysconf(_SC_PAGESIZE)) + extra;
    rlimit limit{bytes, bytes};
    setrlimit(RLIMIT_AS, &limit);
    std::string message = messageOf([] {
      Program program = compile(lineGraph());
      program.set_input("key", std::vector<int32_t>{0, 0});
      program.run("init", 1);
    });
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

/// The output of a model that adds a constant to x, for x of zeros.
template <class T> static std::vector<float> addedTo(const std::vector<T> &values) {
  Graph g{"constant"};
  g.set_capacity(2);
  Tensor x = g.input("x", f32, {Dim{"batch"}, std::int64_t(values.size())});
  g.output("y", x + g.constant(values, {std::int64_t(values.size())}).to(f32));
  Program program = compile(g);
  program.set_input("x", std::vector<float>(values.size()));
  program.run("predict", 1);
  return program.output<float>("y");
}

template <class T> class InProcessConstant : public testing::Test {};
using ConstantTypes =
    testing::Types<float, double, sluice_f16, sluice_bf16, std::int32_t, std::int64_t, std::uint8_t, bool>;
TYPED_TEST_SUITE(InProcessConstant, ConstantTypes);

TYPED_TEST(InProcessConstant, IsAsItWasGiven) {
  for (std::size_t count : {std::size_t(5), std::size_t(1500)}) { // in the text, and in a separate file
    std::vector<TypeParam> values;
    for (std::size_t i = 0; i < count; ++i)
      values.push_back(TypeParam(std::is_same_v<TypeParam, bool> ? float(i % 3 == 0) : float(i % 120)));
    std::vector<float> expected(values.begin(), values.end());
    EXPECT_EQ(addedTo(values), expected);
  }
}

TEST(InProcess, BeginsWithDataOfAFile) {
  TemporaryFolder folder;
  {
    Program writer = compile(lineGraph());
    setWeights(writer);
    writer.save_weights(folder / "w.safetensors");
  }
  Graph g{"line"};
  Tensor x = g.input("x", f32, {Dim{"batch"}, 3});
  Line line{g};
  line.initialize("*", init::from_file(folder / "w.safetensors"));
  g.output("y", line(x));
  Program program = compile(g);
  initialise(program);
  EXPECT_THAT(program.state<float>("fc.bias"), ElementsAre(0.5F, -0.5F));
  EXPECT_THAT(program.state<float>("fc.weight"), ElementsAre(1, 2, 3, -1, 0, 1));
  CompileOptions exact;
  exact.dtype = f64;
  Program wide = compile(g, exact);
  initialise(wide);
  EXPECT_THAT(wide.state<double>("fc.weight"), ElementsAre(1, 2, 3, -1, 0, 1));
}

TEST(InProcess, CopiesOfParametersBeginWithTheSameData) {
  TemporaryFolder folder;
  {
    Program writer = compile(lineGraph());
    setWeights(writer);
    writer.save_weights(folder / "w.safetensors");
  }
  Graph g{"line"};
  g.set_devices("cpu,sim:0");
  Tensor x = g.input("x", f32, {Dim{"batch"}, 2});
  Line line{g};
  Tensor copy = get_params({line.fc.bias}, gpu(0))[0];
  line.initialize("*", init::from_file(folder / "w.safetensors"));
  g.output("y", x + copy.to(cpu()));
  Program program = compile(g);
  initialise(program);
  EXPECT_THAT(program.state<float>("fc.bias.gpu0"), ElementsAre(0.5F, -0.5F));
}

TEST(InProcess, LargeDataStaysForAsLongAsTheProgram) {
  constexpr std::int64_t kWidth = 1200; // 5.8 MB
  Graph g{"large"};
  Tensor x = g.input("x", f32, {Dim{"batch"}, kWidth});
  std::vector<float> values(std::size_t(kWidth * kWidth));
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = float(i % 7);
  g.output("y", matmul(x, g.constant(values, {kWidth, kWidth})));
  Program program = compile(g);
  std::vector<float> row(kWidth);
  row[1] = 1;
  program.set_input("x", row);
  initialise(program);
  program.run("predict", 1);
  EXPECT_EQ(program.output<float>("y"), std::vector<float>(values.begin() + kWidth, values.begin() + 2 * kWidth));
}

TEST(InProcess, AConstantHasAsManyElementsAsItsShape) {
  Graph g{"wrong"};
  EXPECT_THAT(messageOf([&] { g.constant(std::vector<float>{1, 2, 3}, {2, 2}); }),
              HasSubstr("constant: [2, 2] has 4 elements, not 3"));
  EXPECT_THAT(messageOf([&] { g.constant(init::zeros()); }),
              HasSubstr("constant: only from_file and from_npy give a shape; use full for one value"));
  EXPECT_THAT(messageOf([&] { g.constant(init::from_npy("/nowhere.npy")); }),
              HasSubstr("constant: /nowhere.npy: cannot open"));
}
