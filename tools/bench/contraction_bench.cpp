// Times generated products and convolutions on one and two threads, and the multiply-add peak of the same
// run. "of shape" is the share of peak x lanes, the lanes being those that the shape can fill.
#include "backends/cpu/compiler/llvm/Codegen.h"
#include "backends/cpu/compiler/machine/VectorAccess.h"
#include "backends/cpu/compiler/product/Contraction.h"
#include "backends/cpu/compiler/product/tile/Tile.h"
#include "backends/cpu/runtime/HostMemory.h"
#include "runtime/help/Arguments.h"
#include "runtime/help/HelpFormatter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/MLIRContext.h"
#include "runtime/files/OutputFile.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

using namespace sluice::cpu;

using StageFn = void (*)(void *const *, int64_t, int64_t, int64_t);
using Emit = std::function<Contraction(mlir::ModuleOp, mlir::Location, mlir::Type)>;

static double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// CPU time of this thread, which excludes the time when other programs use the core.
static double threadTime() {
  timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// A second thread that spins for work, so that a handover costs well under a microsecond.
class Pair {
public:
  Pair() : helper([this] { serve(); }) {}
  ~Pair() {
    job = nullptr;
    epoch.fetch_add(1);
    epoch.notify_one();
    helper.join();
  }
  void run(const std::function<void()> &work) {
    job = &work;
    finished.store(0);
    epoch.fetch_add(1);
    epoch.notify_one();
    work();
    while (!finished.load(std::memory_order_acquire))
      __builtin_ia32_pause();
  }

private:
  void serve() {
    for (int seen = 0;; ++seen) {
      for (int spins = 0; epoch.load(std::memory_order_acquire) == seen && spins < 20000; ++spins)
        __builtin_ia32_pause();
      epoch.wait(seen, std::memory_order_acquire);
      if (!job)
        return;
      (*job)();
      finished.store(1, std::memory_order_release);
    }
  }
  std::atomic<int> epoch{0}, finished{0};
  const std::function<void()> *job = nullptr;
  std::thread helper;
};

struct Options {
  std::string filter;
  double seconds = 0.3;
  std::string assembly, cpu = "native";
  bool fastMath = false;
};

struct Kernel {
  Contraction contraction;
  std::vector<StageFn> functions;
  std::vector<LoadedObject> code;
  double compileMs = 0;
  size_t codeBytes = 0;
};

static Kernel compile(const Emit &emit, const Target &target, const Options &options) {
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  auto loc = mlir::UnknownLoc::get(&context);
  mlir::OwningOpRef<mlir::ModuleOp> module = mlir::ModuleOp::create(loc);
  Kernel kernel;
  double start = now();
  kernel.contraction = emit(*module, loc, mlir::Float32Type::get(&context));
  std::string assembly;
  CodegenOptions codegen;
  codegen.assembly = options.assembly.empty() ? nullptr : &assembly;
  auto object = compileToObject(*module, target, codegen);
  kernel.compileMs = (now() - start) * 1e3;
  if (!object)
    llvm::report_fatal_error(object.takeError());
  kernel.codeBytes = object->size();
  if (!options.assembly.empty())
    if (sluice::files::Failure failure = sluice::files::writeFile(options.assembly, assembly); !failure.empty())
      llvm::report_fatal_error(llvm::Twine(options.assembly) + ": " + failure);
  kernel.code.push_back(llvm::cantFail(loadObject(*object)));
  for (const Stage &stage : kernel.contraction.stages)
    kernel.functions.push_back(reinterpret_cast<StageFn>(llvm::cantFail(kernel.code[0].lookup(stage.function))));
  return kernel;
}

static void runKernel(const Kernel &kernel, void *const *buffers, int64_t rows, Pair *pair) {
  for (size_t i = 0; i < kernel.functions.size(); ++i) {
    const Stage &stage = kernel.contraction.stages[i];
    int64_t tasks =
        stage.rowsPerTask ? stage.tasks * ((rows + stage.rowsPerTask - 1) / stage.rowsPerTask) : stage.tasks;
    if (!pair) {
      kernel.functions[i](buffers, rows, 0, tasks);
      continue;
    }
    std::atomic<int64_t> next{0};
    int64_t grain = std::max<int64_t>(1, tasks / 16);
    pair->run([&] {
      for (int64_t begin; (begin = next.fetch_add(grain)) < tasks;)
        kernel.functions[i](buffers, rows, begin, std::min(tasks, begin + grain));
    });
  }
}

// The shortest of many runs, in seconds of `clock`.
static double shortest(const std::function<void()> &run, double seconds, double (*clock)()) {
  run();
  double best = 1e9;
  for (double start = now(); now() - start < seconds;) {
    double begin = clock();
    run();
    best = std::min(best, clock() - begin);
  }
  return best;
}

// A loop of independent multiply-adds.
static Contraction emitPeak(mlir::ModuleOp module, mlir::Location loc, mlir::Type f32, const Target &target) {
  StageFunction stage = StageFunction::create(module, "peak", loc);
  auto type = mlir::VectorType::get({target.lanes(32)}, f32);
  stage.forEachTask([&](mlir::OpBuilder &b, mlir::Value) {
    mlir::Value factor = loadVector(b, loc, type, stage.buffer(0));
    Sums sums; // different initial values, or LLVM would merge all chains
    for (int64_t i = 0; i < 12; ++i)
      sums.push_back(loadVector(b, loc, type, elementAddress(b, loc, f32, stage.buffer(0), i)));
    sums = accumulateOver(b, loc, 4096, 1, sums, [&](mlir::OpBuilder &body, mlir::Value, int64_t, Sums &carried) {
      for (mlir::Value &sum : carried)
        sum = body.create<mlir::vector::FMAOp>(loc, sum, factor, factor);
    });
    for (auto [i, sum] : llvm::enumerate(sums))
      storeVector(b, loc, sum, elementAddress(b, loc, f32, stage.buffer(1), i * target.lanes(32)));
  });
  Contraction result;
  result.stages.push_back({"peak", 64, 0});
  result.flops = 64 * 4096 * 12 * 2 * target.lanes(32);
  return result;
}

static Emit product(int64_t m, int64_t n, int64_t k, Matmul::Rows rows, Matmul::Layout b, bool transposeA, bool panelC,
                    const Target &target) {
  return [=](mlir::ModuleOp module, mlir::Location loc, mlir::Type f32) {
    Matmul op;
    op.element = f32;
    op.m = m, op.n = n, op.k = k, op.rows = rows;
    op.a.strideI = transposeA ? 1 : k, op.a.strideJ = transposeA ? m : 1;
    op.b.place = {1, 0}, op.b.layout = b, op.b.strideI = n;
    op.b.panel = panelWidth(b == Matmul::Layout::PanelsT ? k : n, 32, target);
    op.c.place = {2, 0}, op.c.strideI = n;
    if (panelC)
      op.c.layout = Matmul::Layout::Panels, op.c.panel = panelWidth(n, 32, target);
    op.workspace = {3, 0};
    return emitMatmul(module, "product", loc, op, target);
  };
}

using ConvolutionPass = Contraction (*)(const StageModule &, llvm::StringRef, mlir::Location, const Convolution &,
                                        const Target &);

static Emit convolution(ConvolutionPass pass, int64_t rows, int64_t c, int64_t o, Convolution::Axis axis,
                        const Target &target) {
  return [=](mlir::ModuleOp module, mlir::Location loc, mlir::Type f32) {
    Convolution op;
    op.element = f32;
    op.rows = rows, op.inputChannels = c, op.outputChannels = o, op.height = op.width = axis;
    op.panel = panelWidth(o, 32, target);
    op.input = {0, 0}, op.weights = {1, 0}, op.output = {2, 0}, op.workspace = {3, 0};
    return pass(module, "convolution", loc, op, target);
  };
}

class Bench {
public:
  Bench(const Options &options, const Target &target) : options(options), target(target) {
    for (void *&address : addresses) {
      address = buffers.emplace_back(bufferElements * sizeof(float)).address();
      if (!address)
        llvm::report_fatal_error("no memory for the operands");
      std::fill_n(static_cast<float *>(address), bufferElements, 0.25f);
    }
    peakKernel.emplace(
        compile([&](auto module, auto loc, auto f32) { return emitPeak(module, loc, f32, target); }, target, {}));
    double peak[2] = {measure(*peakKernel, 0, false, 0.3), measure(*peakKernel, 0, true, 0.3)};
    std::printf("%s, vectors of %ld bits, peak %.0f GFLOP/s on 1 thread, %.0f on 2\n", target.cpu.c_str(),
                target.vectorBits, peak[0], peak[1]);
    std::printf("%-28s %7s %6s %6s | %8s %6s | %8s %6s\n", "", "compile", "code", "lanes", "1 thread", "of",
                "2 threads", "of");
    std::printf("%-28s %7s %6s %6s | %8s %6s | %8s %6s\n", "", "ms", "KB", "", "GFLOP/s", "shape", "GFLOP/s", "shape");
  }

  void run(const char *name, int64_t rows, const Emit &emit) {
    if (!std::strstr(name, options.filter.c_str()))
      return;
    Kernel kernel = compile(emit, target, options);
    const Contraction &c = kernel.contraction;
    if (c.workspaceBytes > static_cast<int64_t>(bufferElements * sizeof(float)))
      llvm::report_fatal_error("workspace too small");
    double rate[2], share[2];
    for (bool two : {false, true}) { // with the peak measured at the same time
      double peak = measure(*peakKernel, 0, two, options.seconds / 4);
      rate[two] = measure(kernel, rows, two, options.seconds);
      peak = std::max(peak, measure(*peakKernel, 0, two, options.seconds / 4));
      share[two] = 100 * rate[two] / peak / c.lanes;
    }
    std::printf("%-28s %7.0f %6.0f %6.2f | %8.1f %5.0f%% | %8.1f %5.0f%%\n", name, kernel.compileMs,
                kernel.codeBytes / 1024.0, c.lanes, rate[0], share[0], rate[1], share[1]);
    std::fflush(stdout);
  }

private:
  // GFLOP/s
  double measure(const Kernel &kernel, int64_t rows, bool two, double seconds) {
    double flops = static_cast<double>(kernel.contraction.flops + kernel.contraction.flopsPerRow * rows);
    return flops / 1e9 /
           shortest([&] { runKernel(kernel, addresses, rows, two ? &pair : nullptr); }, seconds,
                    two ? now : threadTime);
  }

  static constexpr size_t bufferElements = 24 << 20;
  Options options;
  const Target &target;
  Pair pair;
  std::vector<HostMemory> buffers; // on huge pages, as in programs
  void *addresses[4];
  std::optional<Kernel> peakKernel;
};

int main(int argc, char **argv) {
  Options options;
  CLI::App app("Measures generated matrix products and convolutions on one and two threads, and compares them with the "
               "multiply-add peak measured in the same run.",
               "contraction_bench");
  sluice::help::setHelp(app);
  sluice::help::beginGroup(app, "Measurement");
  app.add_option("--filter", options.filter, "Measure only cases whose names contain this text")->type_name("TEXT");
  app.add_option("--seconds", options.seconds, "Minimum measuring time of each case")
      ->type_name("SECONDS")
      ->capture_default_str();
  app.add_option("--assembly", options.assembly, "Write the assembly of the kernels to this file")->type_name("FILE");
  app.add_option("--target-cpu", options.cpu, "CPU to generate code for; this machine must have its instructions")
      ->type_name("CPU")
      ->capture_default_str();
  app.add_flag("--fast", options.fastMath, "Permit Winograd's algorithm, as sluice compile --math fast does");
  if (std::optional<int> code = sluice::help::parse(app, argc, argv))
    return *code;
  llvm::Expected<Target> chosen = Target::of(options.cpu);
  if (!chosen) {
    std::fprintf(stderr, "contraction_bench: --target-cpu: %s\n", llvm::toString(chosen.takeError()).c_str());
    return 2;
  }
  chosen->fastMath = options.fastMath;
  const Target &target = *chosen;
  Bench bench(options, target);
  using Rows = Matmul::Rows;
  using Layout = Matmul::Layout;
  bench.run("matmul 1024 panels", 1024, product(1024, 1024, 1024, Rows::M, Layout::Panels, false, false, target));
  bench.run("matmul 1024 row-major", 0, product(1024, 1024, 1024, Rows::None, Layout::Strided, false, false, target));
  bench.run("matmul 100 row-major", 0, product(100, 100, 100, Rows::None, Layout::Strided, false, false, target));
  bench.run("linear 800-128 forward", 256, product(256, 128, 800, Rows::M, Layout::Panels, false, false, target));
  bench.run("linear 800-128 dX", 256, product(256, 800, 128, Rows::M, Layout::PanelsT, false, false, target));
  bench.run("linear 800-128 dW", 256, product(800, 128, 256, Rows::K, Layout::Strided, true, true, target));
  bench.run("linear 128-10 forward", 256, product(256, 10, 128, Rows::M, Layout::Panels, false, false, target));
  bench.run("linear 128-10 dX", 256, product(256, 128, 10, Rows::M, Layout::PanelsT, false, false, target));
  bench.run("linear 128-10 dW", 256, product(128, 10, 256, Rows::K, Layout::Strided, true, true, target));
  bench.run("linear 768-3072 forward", 128, product(128, 3072, 768, Rows::M, Layout::Panels, false, false, target));
  bench.run("linear 3072-768 forward", 128, product(128, 768, 3072, Rows::M, Layout::Panels, false, false, target));
  bench.run("linear 256-1024 forward", 128, product(128, 1024, 256, Rows::M, Layout::Panels, false, false, target));
  bench.run("linear 256-1024 one row", 1, product(1, 1024, 256, Rows::M, Layout::Panels, false, false, target));
  bench.run("4096 steps 256-1024 dW", 4096, product(256, 1024, 4096, Rows::K, Layout::Strided, true, true, target));
  bench.run("4096 steps 256-4000 dW", 4096, product(256, 4000, 4096, Rows::K, Layout::Strided, true, true, target));

  struct Layer {
    const char *name;
    int64_t rows, c, o;
    Convolution::Axis axis;
  };
  const Layer layers[] = {{"conv1 1-20 3x3 28", 256, 1, 20, {28, 3, 1, 1, 0, 0}},
                          {"conv2 20-50 5x5 13", 256, 20, 50, {13, 5, 1, 1, 0, 0}},
                          {"conv 64-64 3x3 56", 16, 64, 64, {56, 3, 1, 1, 1, 1}},
                          {"conv 512-512 3x3 7", 16, 512, 512, {7, 3, 1, 1, 1, 1}},
                          {"conv 128-128 3x3 28", 16, 128, 128, {28, 3, 1, 1, 1, 1}},
                          {"conv 256-256 3x3 14", 16, 256, 256, {14, 3, 1, 1, 1, 1}},
                          {"conv 16-16 3x3 32", 128, 16, 16, {32, 3, 1, 1, 1, 1}},
                          {"conv 64-64 3x3 8", 128, 64, 64, {8, 3, 1, 1, 1, 1}},
                          {"one 64-64 3x3 56", 1, 64, 64, {56, 3, 1, 1, 1, 1}},
                          {"one 128-128 3x3 28", 1, 128, 128, {28, 3, 1, 1, 1, 1}},
                          {"one 256-256 3x3 14", 1, 256, 256, {14, 3, 1, 1, 1, 1}},
                          {"one 512-512 3x3 7", 1, 512, 512, {7, 3, 1, 1, 1, 1}},
                          {"conv 1024-256 1x1 14", 16, 1024, 256, {14, 1, 1, 1, 0, 0}},
                          {"conv 256-64 1x1 56", 16, 256, 64, {56, 1, 1, 1, 0, 0}},
                          {"conv 64-256 1x1 56", 16, 64, 256, {56, 1, 1, 1, 0, 0}},
                          {"conv 512-2048 1x1 7", 16, 512, 2048, {7, 1, 1, 1, 0, 0}},
                          {"stem 3-64 7x7/2 224", 4, 3, 64, {224, 7, 2, 1, 3, 3}}};
  for (const Layer &layer : layers) {
    auto name = [&](const char *pass) { return std::string(layer.name) + " " + pass; };
    bench.run(name("forward").c_str(), layer.rows,
              convolution(emitConvolution, layer.rows, layer.c, layer.o, layer.axis, target));
    bench.run(name("dX").c_str(), layer.rows,
              convolution(emitConvolutionInputGradient, layer.rows, layer.c, layer.o, layer.axis, target));
    bench.run(name("dW").c_str(), layer.rows,
              convolution(emitConvolutionWeightGradient, layer.rows, layer.c, layer.o, layer.axis, target));
  }
  return 0;
}
