// Inputs and outputs that are on an accelerator: programs pass memory to each other, and nothing is copied.
#include "runtime/base/Status.h"
#include "sluice/runtime/api.h"
#include "tests/cuda_emu/Doubles.h"
#include "tests/e2e/Harness.h"
#include <gtest/gtest.h>
#include <sluice/compile.h>
#include <sluice/sluice.h>

using namespace sluice;
using namespace sluice::test;
using runtime::DevicePool, runtime::Instance, runtime::PairCount;

namespace {

constexpr int64_t kCapacity = 8, kWidth = 6;

/// Where a chain of programs begins or ends.
enum class Place { Host, Accelerator };

/// y = f(x), all of it on gpu(0), or on the host alone.
std::string model(const std::string &devices, Place from, Place to, Tensor (*function)(Graph &, Tensor)) {
  Graph g{"link"};
  g.set_capacity(kCapacity);
  g.set_devices(devices);
  Shape shape{Dim{"batch"}, kWidth};
  Tensor x = from == Place::Host ? g.input("x", f32, shape) : g.input("x", f32, shape, gpu(0));
  Tensor y = function(g, devices == "cpu" ? x : x.to(gpu(0)));
  to == Place::Host ? g.output("y", y) : g.output("y", y, gpu(0));
  return g.str();
}

Tensor twice(Graph &, Tensor x) { return x + x; }
/// Several kernels, so that backends capture and replay them.
Tensor formula(Graph &g, Tensor x) {
  Tensor w = g.full({kWidth, kWidth}, 0.25);
  return exp(matmul(softmax(matmul(x, w), 1), w)) * x;
}

std::vector<double> inputs(int64_t rows, double first) {
  std::vector<double> values;
  for (int64_t i = 0; i < rows * kWidth; ++i)
    values.push_back(first + double(i % 7) / 8);
  return values;
}

/// The copies of a program so far, in both directions.
int64_t copiesOf(Compiled &model) {
  int64_t count = 0;
  for (const PairCount &pair : model.program().copies())
    count += pair.count.copies;
  return count;
}

const runtime::Value &input(Compiled &model) { return model.program().entry("predict").inputs.front(); }
const runtime::Value &output(Compiled &model) { return model.program().entry("predict").outputs.front(); }

/// Three programs in one pool: the first brings x to the accelerator, the second computes there, the third returns the
/// result.
class Chain {
public:
  explicit Chain(const std::string &devices, const std::string &sim = "")
      : run{.sim = sim, .pool = std::make_shared<DevicePool>()},
        first(model(devices, Place::Host, Place::Accelerator, twice), {}, run),
        middle(model(devices, Place::Accelerator, Place::Accelerator, formula), {}, run),
        last(model(devices, Place::Accelerator, Place::Host, twice), {}, run),
        whole(model("cpu", Place::Host, Place::Host,
                    [](Graph &g, Tensor x) { return twice(g, formula(g, twice(g, x))); })) {}

  /// Passes the output of one program to the next, which runs.
  static void pass(Compiled &from, Compiled &to, int64_t rows) {
    std::byte *address = from.program().outputAddress(output(from));
    to.program().bindInput(input(to), address, size_t(output(from).bytes), rows);
    to.program().run(to.program().entry("predict"), rows);
  }

  void expectRuns(int64_t rows, double number) {
    Values x{{"x", inputs(rows, number)}};
    first.submit("predict", x, rows);
    pass(first, middle, rows);
    pass(middle, last, rows);
    EXPECT_LT(relativeError(last.outputs("predict", rows)["y"], whole.run("predict", x, rows)["y"]), 1e-6);
  }

  RunOptions run;
  Compiled first, middle, last, whole;
};

std::string messageOf(const std::function<void()> &body) {
  runtime::Status status = runtime::guarded(body);
  EXPECT_EQ(status.code, runtime::ExitCode::usage);
  return status.message;
}

} // namespace

class Residents : public testing::TestWithParam<const char *> {
protected:
  static void SetUpTestSuite() {
    setenv("CUDA_EMU_EFFORT", "least", /*overwrite=*/1); // each kernel runs once
    useCudaDoubles(/*devices=*/1);
  }
  static std::string devices() { return std::string("cpu,") + GetParam(); }
};

TEST_P(Residents, CrossNothingBetweenPrograms) {
  Chain chain(devices());
  constexpr int kCalls = 8;
  for (int i = 0; i < kCalls; ++i)
    chain.expectRuns(i == 3 ? 5 : kCapacity, i);
  EXPECT_EQ(copiesOf(chain.first), kCalls);
  EXPECT_EQ(copiesOf(chain.middle), 0);
  EXPECT_EQ(copiesOf(chain.last), kCalls);
  EXPECT_GT(chain.middle.program().replayCount().replays, 0);
  EXPECT_EQ(chain.middle.program().deviceOf(input(chain.middle)), GetParam());
}

/// Each call reads the memory that is bound for it. A program changes no memory of others, so two calls read the same.
TEST_P(Residents, AreReadWhereTheyAreBound) {
  Chain chain(devices());
  Compiled other(model(devices(), Place::Host, Place::Accelerator, twice), {}, chain.run);
  Values x{{"x", inputs(kCapacity, 1)}}, z{{"x", inputs(kCapacity, 5)}};
  chain.first.submit("predict", x, kCapacity);
  other.submit("predict", z, kCapacity);
  for (int i : {0, 0, 0, 1, 1, 1, 0, 1, 0, 0}) {
    Chain::pass(i ? chain.first : other, chain.middle, kCapacity);
    Chain::pass(chain.middle, chain.last, kCapacity);
    EXPECT_LT(relativeError(chain.last.outputs("predict", kCapacity)["y"],
                            chain.whole.run("predict", i ? x : z, kCapacity)["y"]),
              1e-6);
  }
}

TEST_P(Residents, AreRefusedWithoutACopy) {
  Chain chain(devices());
  Instance &middle = chain.middle.program(), &last = chain.last.program();
  const runtime::Value &x = input(chain.middle), &y = output(chain.middle);
  std::vector<std::byte> host(size_t(x.bytes));
  std::string place = std::string("gpu(0) (") + GetParam() + ")";
  EXPECT_EQ(messageOf([&] { middle.setInput(x, host, kCapacity); }),
            "input 'x' is on " + place +
                ", and the program has no copy between it and the host: pass an address of the device");
  EXPECT_EQ(messageOf([&] { middle.getOutput(y, host, kCapacity); }),
            "output 'y' is on " + place +
                ", and the program has no copy between it and the host: pass an address of the device");
  EXPECT_EQ(messageOf([&] { last.outputAddress(output(chain.last)); }),
            "output 'y' is on the host, not on an accelerator");
  EXPECT_EQ(messageOf([&] { middle.outputAddress(y); }), "there is no output 'y' of 'predict': nothing has run yet");
  EXPECT_EQ(messageOf([&] { middle.run(middle.entry("predict"), 1); }),
            "'predict' needs the input 'x', which has not been set since the last call: set it before each call");
}

namespace {

/// An instance of the C API.
class CInstance {
public:
  CInstance(const Compiled &model, sluice_pool *pool) {
    sluice_instance_options options{sizeof options, /*threads=*/1, /*backends=*/nullptr, /*devices=*/nullptr, pool};
    EXPECT_EQ(sluice_instance_create(&model.artifact(), &options, &instance), 0) << sluice_last_error();
  }
  CInstance(const CInstance &) = delete;
  ~CInstance() { sluice_instance_destroy(instance); }
  operator sluice_instance *() const { return instance; }

private:
  sluice_instance *instance = nullptr;
};

constexpr uint64_t kBytes = sizeof(float) * kCapacity * kWidth;

void *outputOf(sluice_instance *instance, const char *device) {
  void *address = nullptr;
  EXPECT_EQ(sluice_instance_get_output_address(instance, "predict", "y", device, &address), 0) << sluice_last_error();
  return address;
}

void bindAndRun(sluice_instance *instance, const char *device, void *address) {
  EXPECT_EQ(sluice_instance_bind_input(instance, "predict", "x", device, address, kBytes, kCapacity), 0)
      << sluice_last_error();
  EXPECT_EQ(sluice_instance_run(instance, "predict", kCapacity), 0) << sluice_last_error();
}

} // namespace

TEST_P(Residents, PassThroughTheCApi) {
  const char *device = GetParam();
  Chain chain(devices());
  sluice_pool *pool = nullptr;
  ASSERT_EQ(sluice_pool_create(&pool), 0);
  std::vector<double> numbers = inputs(kCapacity, 2);
  std::vector<float> x(numbers.begin(), numbers.end()), y(x.size());
  {
    CInstance first(chain.first, pool), middle(chain.middle, pool), last(chain.last, pool);
    const char *place = nullptr;
    EXPECT_EQ(sluice_instance_get_device(middle, "predict", "x", &place), 0);
    EXPECT_STREQ(place, device);
    EXPECT_EQ(sluice_instance_get_device(first, "predict", "x", &place), 0);
    EXPECT_STREQ(place, "cpu");
    EXPECT_EQ(sluice_instance_set_input(first, "predict", "x", x.data(), kBytes, kCapacity), 0) << sluice_last_error();
    EXPECT_EQ(sluice_instance_run(first, "predict", kCapacity), 0) << sluice_last_error();
    bindAndRun(middle, device, outputOf(first, device));
    bindAndRun(last, device, outputOf(middle, device));
    EXPECT_EQ(sluice_instance_get_output(last, "predict", "y", y.data(), kBytes, kCapacity), 0) << sluice_last_error();
    EXPECT_LT(relativeError({y.begin(), y.end()}, chain.whole.run("predict", {{"x", numbers}}, kCapacity)["y"]), 1e-6);

    void *address = nullptr;
    EXPECT_EQ(sluice_instance_bind_input(middle, "predict", "x", "cpu", outputOf(first, device), kBytes, kCapacity), 2);
    EXPECT_NE(std::string(sluice_last_error()).find(device), std::string::npos) << sluice_last_error();
    EXPECT_EQ(sluice_instance_bind_input(middle, "predict", "x", device, outputOf(first, device), 8, kCapacity), 3);
    EXPECT_NE(std::string(sluice_last_error()).find("and 8 were given"), std::string::npos) << sluice_last_error();
    EXPECT_EQ(sluice_instance_get_output_address(middle, "predict", "z", device, &address), 2);
    EXPECT_NE(std::string(sluice_last_error()).find("'z'"), std::string::npos) << sluice_last_error();

    sluice_pool_memory memory{};
    memory.struct_size = sizeof memory;
    EXPECT_EQ(sluice_pool_get_memory(pool, device, &memory), 0) << sluice_last_error();
    EXPECT_GT(memory.bytes_in_use, 0);
  }
  sluice_pool_memory memory{};
  memory.struct_size = sizeof memory;
  EXPECT_EQ(sluice_pool_get_memory(pool, device, &memory), 0) << sluice_last_error();
  EXPECT_EQ(memory.bytes_in_use, 0) << "the instances are destroyed";
  EXPECT_GT(memory.bytes_held, 0) << "for later instances";
  EXPECT_EQ(sluice_pool_trim(pool), 0) << sluice_last_error();
  EXPECT_EQ(sluice_pool_get_memory(pool, device, &memory), 0) << sluice_last_error();
  EXPECT_EQ(memory.bytes_held, 0);
  sluice_pool_destroy(pool);
}

INSTANTIATE_TEST_SUITE_P(Devices, Residents, testing::Values("sim:0", "cuda:0"), [](const auto &info) {
  return std::string(info.param).substr(0, std::string(info.param).find(':'));
});

/// Without the ABI's acquire, the simulator would find races between the programs.
TEST(ResidentsOfSim, AreOrderedBetweenPrograms) {
  for (int seed = 0; seed < 4; ++seed) {
    Chain chain("cpu,sim:0", "seed=" + std::to_string(seed));
    for (int i = 0; i < 3; ++i)
      chain.expectRuns(kCapacity, i);
  }
}

TEST(ResidentsOfReplicas, AreAnError) {
  Graph g{"link"};
  g.set_capacity(kCapacity);
  g.set_devices("cpu,sim:0");
  g.output("y", twice(g, g.input("x", f32, {Dim{"batch"}, kWidth}, gpu(0))));
  try {
    compile(g, {.accumulate = 2});
    FAIL() << "it compiles";
  } catch (const sluice::Error &error) {
    EXPECT_NE(std::string(error.what()).find("the input 'x' of 'predict' is on an accelerator, and the model has"),
              std::string::npos)
        << error.what();
  }
}
