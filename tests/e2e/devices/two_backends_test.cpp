// One program on accelerators of two backends. Either sim, whose kernels are the host's, and scroll
// (tests/backends/scroll), which receives bytecode and loads its kernels as a module. Or sim and emulated CUDA devices,
// whose queues synchronize without the host.
#include "ir/text/ParseGuard.h"
#include "mlir/Parser/Parser.h"
#include "runtime/base/Status.h"
#include "runtime/plugins/BackendLoader.h"
#include "tests/cuda_emu/Doubles.h"
#include "tests/e2e/Harness.h"
#include <cstdlib>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <map>
#include <optional>
#include <random>
#include <sluice/sluice.h>

using namespace sluice;
using namespace sluice::test;
using namespace sluice::runtime;
using testing::HasSubstr;

namespace {

constexpr int64_t kCapacity = 8, kIn = 6, kOut = 5;

/// Set before the first backend search.
const int kSearched = setenv("SLUICE_BACKEND_PATH", SLUICE_BINARY_DIR "/tests/backends/scroll", /*overwrite=*/1);

/// exp(s) - s with s = relu(p z + p), p = x w: s on one accelerator, p and exp on the other, the difference on the
/// host.
std::string model(const std::string &devices) {
  Graph g{"two_backends"};
  g.set_capacity(kCapacity);
  g.set_devices(devices);
  g.set_copies("insert");
  bool isSplit = devices != "cpu";
  auto on = [&](Tensor value, int64_t accelerator) { return isSplit ? pin(value, gpu(accelerator)) : value; };
  Tensor x = g.input("x", f32, {Dim{"batch"}, kIn}), w = g.input("w", f32, {kIn, kOut}),
         z = g.input("z", f32, {Dim{"batch"}, kOut});
  Tensor p = on(matmul(x, w), 0);
  Tensor scaled = on(p * z, 1);
  Tensor s = on(relu(on(scaled + p, 1)), 1);
  Tensor y = on(exp(s), 0);
  g.output("y", y - s);
  return g.str();
}

Values inputs(int64_t rows) {
  std::mt19937_64 random(5);
  Values values;
  for (auto [name, elements] :
       {std::pair<const char *, int64_t>{"x", rows * kIn}, {"w", kIn * kOut}, {"z", rows * kOut}})
    for (int64_t i = 0; i < elements; ++i)
      values[name].push_back(double(float(double(random() >> 40) * 0x1p-23 - 1)));
  return values;
}

/// The bytecode that follows a kernel's text in scroll's module.
std::string bytecodeIn(const std::string &text) {
  size_t size = std::stoul(text.substr(text.find(" bytecode ") + 10));
  return text.substr(text.find("\nend\n") + 5, size);
}

/// A simulator that records the location of host memory in its copies, and the number of the host's waits for its
/// events.
struct WatchedSimulator {
  static inline sluice_backend_run sound;
  static inline std::map<const std::byte *, size_t> given; ///< its allocations, with sizes
  static inline size_t within, elsewhere, waits;           ///< copies, by whether their host memory is one of these
                                                           ///< allocations

  static sluice_backend_run half() {
    sluice_backend_run half = sound = findRunHalf("sim", {SLUICE_BINARY_DIR "/lib/sluice/backends"});
    half.host_allocate = [](sluice_run *run, size_t bytes, void **address) {
      sluice_status status = sound.host_allocate(run, bytes, address);
      given[static_cast<std::byte *>(*address)] = bytes;
      return status;
    };
    half.copy = [](sluice_queue *queue, const sluice_copy *copy) {
      const void *end = copy->from_device == SLUICE_HOST ? copy->from : copy->to;
      (isGiven(static_cast<const std::byte *>(end), copy->bytes) ? within : elsewhere) += 1;
      return sound.copy(queue, copy);
    };
    half.synchronize = [](sluice_event *event) {
      ++waits;
      return sound.synchronize(event);
    };
    return half;
  }

  static bool isGiven(const std::byte *address, size_t bytes) {
    auto next = given.upper_bound(address);
    return next != given.begin() && std::prev(next)->first + std::prev(next)->second >= address + bytes;
  }
};

/// A run half with a counter of the host's waits.
template <int number> struct CountedWaits {
  static inline sluice_backend_run sound;
  static inline int waits;
  static inline bool forgetsSignals; ///< its queues ignore signals

  static sluice_backend_run half(const char *backend) {
    sluice_backend_run half = sound = findRunHalf(backend, {SLUICE_BINARY_DIR "/lib/sluice/backends"});
    waits = 0;
    forgetsSignals = false;
    half.synchronize = [](sluice_event *event) { return ++waits, sound.synchronize(event); };
    half.synchronize_until = [](sluice_event *event, double seconds) {
      return ++waits, sound.synchronize_until(event, seconds);
    };
    half.synchronize_queue = [](sluice_queue *queue) { return ++waits, sound.synchronize_queue(queue); };
    half.wait_for_signal = [](sluice_queue *queue, const uint64_t *place, uint64_t least) {
      return forgetsSignals ? SLUICE_OK : sound.wait_for_signal(queue, place, least);
    };
    return half;
  }
};

/// The model on a simulator and an emulated CUDA device, both with counters. The simulator reports that it makes
/// progress by itself, like all other devices; the emulated driver waits for no caller.
struct Counted {
  using Sim = CountedWaits<0>;
  using Cuda = CountedWaits<1>;

  Counted() {
    useCudaDoubles(/*devices=*/1);
    sim = Sim::half("sim");
    sim.lazy = 0;
    cuda = Cuda::half("cuda");
    split.emplace(model("cpu,sim:0,cuda:0"));
  }
  void start(uint64_t seed) {
    RunOptions options;
    options.sim = "seed=" + std::to_string(seed);
    options.simulator = &sim;
    options.cuda = &cuda;
    split->restart(options);
    Sim::waits = Cuda::waits = 0;
  }
  static int waits() { return Sim::waits + Cuda::waits; }
  /// Lets the simulator make progress with all ready work.
  void rouseSim() {
    DeviceQueue idle(split->program().executor().devices().context(1), 0, SLUICE_QUEUE_COPY, "idle");
    for (int i = 0; i < 3; ++i) {
      idle.copy({sizeof(sluice_copy), SLUICE_HOST, SLUICE_HOST, nullptr, nullptr, 0, "nothing"});
      idle.synchronize();
    }
  }
  /// Before the emulated driver is destroyed.
  ~Counted() { split.reset(); }

  sluice_backend_run sim, cuda;
  std::optional<Compiled> split;
};

} // namespace

TEST(TwoBackends, WaitForEachOtherWithoutTheHost) {
  Compiled host(model("cpu"));
  Counted counted;
  Values expected = host.run("predict", inputs(kCapacity), kCapacity);
  for (uint64_t seed = 0; seed < 10; ++seed) {
    counted.start(seed);
    counted.split->submit("predict", inputs(kCapacity), kCapacity);
    EXPECT_EQ(Counted::waits(), 0);
    EXPECT_EQ(counted.split->outputs("predict", kCapacity), expected) << "seed " << seed;
    for (int64_t rows : {int64_t(3), kCapacity})
      EXPECT_EQ(counted.split->run("predict", inputs(rows), rows), host.run("predict", inputs(rows), rows));
  }
}

TEST(TwoBackends, AForgottenSignalIsSeen) {
  Compiled host(model("cpu"));
  Counted counted;
  Values expected = host.run("predict", inputs(kCapacity), kCapacity);
  int wrong = 0;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    counted.start(seed);
    Counted::Sim::forgetsSignals = true;
    counted.split->submit("predict", inputs(kCapacity), kCapacity);
    counted.rouseSim();
    wrong += counted.split->outputs("predict", kCapacity) != expected;
  }
  EXPECT_GT(wrong, 0);
}

TEST(TwoBackends, TellWhatFailedInTheOther) {
  Counted counted;
  counted.start(0);
  counted.split->submit("predict", inputs(kCapacity), kCapacity);
  setenv("CUDA_EMU_FAULT", "700", /*overwrite=*/1); // the awaited work failed, and its signal never comes
  Status status = guarded([&] { counted.split->outputs("predict", kCapacity); });
  EXPECT_EQ(status.code, ExitCode::exhausted);
  EXPECT_THAT(status.message, HasSubstr("cuda:0: CUDA_ERROR_ILLEGAL_ADDRESS"));
  counted.split.reset(); // no thread waits forever
  unsetenv("CUDA_EMU_FAULT");
}

TEST(TwoBackends, CopyThroughMemoryThatOneOfThemGives) {
  using Watched = WatchedSimulator;
  static sluice_backend_run watched = Watched::half();
  Compiled host(model("cpu")), split(model("cpu,sim:0,scroll:0"));
  RunOptions options;
  options.simulator = &watched;
  split.restart(options);
  Watched::within = Watched::elsewhere = Watched::waits = 0;
  std::vector<int64_t> calls = {kCapacity, 3, kCapacity};
  split.submit("predict", inputs(calls[0]), calls[0]);
  EXPECT_EQ(Watched::waits, 3u) << "behind p, before the other backend's kernel, and before s is brought";
  for (int64_t rows : calls)
    EXPECT_EQ(host.run("predict", inputs(rows), rows), split.run("predict", inputs(rows), rows)) << rows << " rows";
  EXPECT_GT(Watched::within, 0u);
  EXPECT_EQ(Watched::elsewhere, 0u);
}

TEST(TwoBackends, GiveTheBitsOfTheHost) {
  Compiled host(model("cpu")), split(model("cpu,sim:0,scroll:0"));
  for (int64_t rows : {kCapacity, int64_t(3), int64_t(1)})
    EXPECT_EQ(host.run("predict", inputs(rows), rows), split.run("predict", inputs(rows), rows)) << rows << " rows";
}

TEST(TwoBackends, CountTheirCopiesAsForecast) {
  Compiled model(::model("cpu,sim:0,scroll:0"));
  for (int64_t rows : {kCapacity, int64_t(3)})
    model.run("predict", inputs(rows), rows);
  Executor &executor = model.program().executor();
  EXPECT_EQ(executor.executedCopies(), executor.forecast().counts());
  EXPECT_EQ(byPair(executor.engineCopies()), byPair(executor.executedCopies()));
  int64_t rows = kCapacity + 3, activation = kOut * 4;
  std::map<std::pair<size_t, size_t>, CopyCount> counts = byPair(executor.executedCopies());
  EXPECT_EQ((counts[{1, 0}].bytes), rows * activation * 2) << "p to the other accelerator, and y";
  EXPECT_EQ((counts[{2, 0}].bytes), rows * activation * 2) << "s to the other accelerator, and to the host";
}

TEST(TwoBackends, DeviceCodeIsAModuleOfTheArtifact) {
  Compiled model(::model("cpu,sim:0,scroll:0"));
  ASSERT_EQ(model.plan().modules.size(), 1u);
  EXPECT_EQ(model.plan().modules[0], (runtime::Module{"scroll", 0}));
  ASSERT_EQ(model.code().size(), 1u);
  EXPECT_THAT(model.code()[0], HasSubstr("scroll\nkernel acc1_mul_add_relu 2 elements 0 5 results 4"));
}

TEST(TwoBackends, BytecodeIsTheKernel) {
  Compiled compiled(model("cpu,sim:0,scroll:0"));
  mlir::MLIRContext context;
  context.loadDialect<ir::SluiceDialect>();
  std::string bytecode = bytecodeIn(compiled.code().at(0));
  auto module = mlir::parseSourceString<mlir::ModuleOp>(bytecode, &context);
  ASSERT_TRUE(module);
  auto entry = module->lookupSymbol<ir::EntryOp>("acc1_mul_add_relu");
  ASSERT_TRUE(entry);
  auto kernel = *entry.getBody().front().getOps<ir::KernelOp>().begin();
  std::vector<std::string> ops;
  for (mlir::Operation &op : kernel.getBody().front().without_terminator())
    ops.push_back(op.getName().getStringRef().str());
  EXPECT_EQ(ops, (std::vector<std::string>{"sluice.mul", "sluice.add", "sluice.relu"}));
}

TEST(TwoBackends, AModuleThatIsNoneIsRefused) {
  Compiled compiled(model("cpu,sim:0,scroll:0"));
  std::string code = compiled.code().at(0);
  code.replace(0, 6, "crolls");
  EXPECT_THAT([&] { compiled.restart({.code = code}); },
              testing::Throws<std::exception>(
                  testing::Property(&std::exception::what, HasSubstr("scroll should load is no scroll"))));
}
