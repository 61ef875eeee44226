// The kernels of every model in models/, in training and inference, in f32 and bf16, one in f16 too, as CUDA C++: compiled for
// devices, within their budgets of registers. Of those that are of the same ops the longest is, for one target, and each text
// becomes PTX that is not optimized; SLUICE_TEST_FULL=1 takes each, for all targets.
#include "backends/cuda/compiler/emit/Prelude.h"
#include "backends/cuda/compiler/kernels/GridKernel.h"
#include "ir/Module.h"
#include "ir/text/ParseGuard.h"
#include "tests/TemporaryFolder.h"
#include "tests/backends/cuda/Budgets.h"
#include "tests/cuda_emu/PinnedNvrtc.h"
#include "tests/ir/op_instance.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/Parallel.h"
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <gtest/gtest.h>
#include <map>
#include <mutex>
#include <optional>
#include <set>

using namespace mlir;

namespace sluice::cuda {

namespace {

struct Model {
  const char *name, *options, *devices = "cuda:0";
};
constexpr Model kModels[] = {
    {"lenet", "--batch 16"},      {"mlp", "--batch 16"},
    {"fcn_r", "--batch 16"},      {"fcn_s", "--batch 16"},
    {"alexnet_r", "--batch 16"},  {"alexnet_s", "--batch 16"},
    {"resnet56", "--batch 16"},   {"resnet18", "--batch 2"},
    {"resnet50", "--batch 2"},    {"unet", "--batch 2"},
    {"mobilenetv2", "--batch 2"}, {"vit_s", "--batch 2"},
    {"bert_base", "--batch 2"},   {"gpt2", "--batch 2"},
    {"mlp_mixer", "--batch 2"},   {"lstm", "--batch 16"},
    {"lstm_lm", "--batch 20"},    {"lenet_data_parallel", "--batch 16 --devices cuda:0,cuda:1", "cuda:0,cuda:1"}};
constexpr const char *kPrecisions[] = {"f32", "bf16"};

/// The model's kernels as the compiler fuses them for a device, and how many rows there may be.
std::pair<OwningOpRef<ModuleOp>, int64_t> fused(const Model &model, const std::string &precision) {
  sluice::test::TemporaryFolder folder;
  std::string bin = SLUICE_BINARY_DIR "/bin/", graph = folder / "model.mlir", dump = folder / "fused.mlir";
  std::string command = bin + "models/" + model.name + " " + model.options + " -o " + graph + " > /dev/null && " + bin +
                        "sluice compile -q " + graph + " --precision " + precision + " --devices " + model.devices +
                        " --compile-to fused -o " + dump;
  EXPECT_EQ(std::system(command.c_str()), 0) << command;
  auto parsed = ir::parseModuleText(sluice::test::contentOf(dump), dump, sluice::test::getContext());
  EXPECT_TRUE(bool(parsed)) << llvm::toString(parsed.takeError());
  if (!parsed)
    return {};
  auto capacity = int64_t(ir::getModel(**parsed).getCapacity());
  return {std::move(*parsed), capacity};
}

std::string textOf(ir::KernelOp, const GridKernel &written) { return written.text; }

/// The ops, what they are of, and what that means for a multiprocessor.
std::string kindOf(ir::KernelOp kernel, const GridKernel &written) {
  std::string kind;
  llvm::raw_string_ostream stream(kind);
  for (Operation &op : kernel.getBody().front()) {
    stream << op.getName();
    for (Type type : op.getOperandTypes())
      stream << " " << cast<RankedTensorType>(type).getElementType();
    stream << "\n";
  }
  for (const GridFunction &function : written.functions)
    stream << function.threads << " " << function.blocks << " " << function.sharedBytes << "\n";
  return kind;
}

/// Whether kernels are of the same ops, in the same shapes.
bool isSame(ir::KernelOp one, ir::KernelOp other) {
  return OperationEquivalence::isRegionEquivalentTo(&one.getBody(), &other.getBody(),
                                                    OperationEquivalence::IgnoreLocations);
}

/// Calls `body` with the kernels that differ in their ops or shapes.
void forEachKernel(ModuleOp module, int64_t capacity, llvm::function_ref<void(ir::KernelOp, const GridKernel &)> body) {
  llvm::StringMap<SmallVector<ir::KernelOp>> seen; // by how names begin
  module.walk([&](ir::KernelOp kernel) {
    SmallVector<ir::KernelOp> &alike = seen[kernel.getName().rtrim("_0123456789")];
    if (llvm::any_of(alike, [&](ir::KernelOp other) { return isSame(kernel, other); }))
      return;
    alike.push_back(kernel);
    FailureOr<GridKernel> written = writeGridKernel(kernel, "k", capacity);
    ASSERT_TRUE(succeeded(written)) << kernel.getName().str();
    body(kernel, *written);
  });
}

/// Kernels that differ in what `keyOf` says of them, in texts of at most so many. Of those that do not there is the longest,
/// which has the most bounds and tails.
class Texts {
public:
  Texts(std::string (*keyOf)(ir::KernelOp, const GridKernel &), size_t most) : keyOf(keyOf), most(most) {}

  void add(ir::KernelOp kernel, const GridKernel &written, int64_t capacity) {
    size_t number = numbers.try_emplace(keyOf(kernel, written), chosen.size()).first->second;
    if (number == chosen.size())
      chosen.emplace_back();
    Chosen &one = chosen[number];
    if (written.text.size() <= one.length)
      return;
    std::string name = "k" + std::to_string(number) + "_" + kernel.getName().str();
    one = {written.text.size(), *writeGridKernel(kernel, name, capacity)};
  }

  /// All in threads, and what they need. Of PTX nobody knows what it needs before a driver has compiled it.
  void expectBudgets(const Nvrtc &nvrtc, const std::string &target, ArrayRef<const char *> options = {}) const {
    std::mutex one;
    std::vector<Text> texts = this->texts();
    bool isPtx = target.starts_with("compute_");
    auto begin = std::chrono::steady_clock::now();
    size_t functions = 0, bytes = 0;
    int registers = 0;
    llvm::parallelFor(0, texts.size(), [&](size_t number) {
      llvm::Expected<DeviceCode> code = nvrtc.compile(texts[number].kernels, target, options);
      std::lock_guard<std::mutex> lock(one);
      ASSERT_TRUE(bool(code)) << llvm::toString(code.takeError());
      isPtx ? expectEntries(*code, target, texts[number].functions)
            : test::expectBudgets(*code, texts[number].functions);
      functions += code->kernels.size();
      bytes += code->bytes.size();
      for (const KernelResources &kernel : code->kernels)
        registers = std::max(registers, kernel.registers);
    });
    std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
    std::printf("%s: %zu kernels, %zu functions, %zu kB of code, at most %d registers, %.1f s of NVRTC\n",
                target.c_str(), chosen.size(), functions, bytes >> 10, registers, seconds.count());
  }

private:
  struct Chosen {
    size_t length = 0; // of its text by another name
    GridKernel kernel;
  };
  struct Text {
    std::string kernels = kPrelude;
    std::vector<GridFunction> functions;
  };

  /// PTX of these functions and no others, for devices from that of the target on.
  static void expectEntries(const DeviceCode &code, const std::string &target,
                            const std::vector<GridFunction> &functions) {
    llvm::StringRef ptx = code.bytes;
    EXPECT_TRUE(ptx.contains(".target sm_" + target.substr(std::strlen("compute_")) + "\n"))
        << ptx.substr(0, 400).str();
    EXPECT_EQ(ptx.count(".visible .entry "), functions.size());
    for (const GridFunction &function : functions)
      EXPECT_TRUE(ptx.contains(".visible .entry " + function.name + "(")) << function.name;
  }

  std::vector<Text> texts() const {
    std::vector<Text> texts;
    for (auto [number, one] : llvm::enumerate(chosen)) {
      if (number % most == 0)
        texts.emplace_back();
      texts.back().kernels += one.kernel.text;
      llvm::append_range(texts.back().functions, one.kernel.functions);
    }
    return texts;
  }

  std::string (*keyOf)(ir::KernelOp, const GridKernel &);
  size_t most;
  std::map<std::string, size_t> numbers; // in `chosen`, by key
  std::vector<Chosen> chosen;
};

using Parameters = std::tuple<Model, const char *>;

std::string titleOf(const testing::TestParamInfo<Parameters> &info) {
  return std::string(std::get<Model>(info.param).name) + "_" + std::get<const char *>(info.param);
}

/// What a test needs NVRTC for.
class KindsOfKernels : public testing::Test {
protected:
  void SetUp() override {
    llvm::Expected<Nvrtc> found = sluice::test::loadPinnedNvrtc();
    if (!found)
      GTEST_SKIP() << llvm::toString(found.takeError());
    nvrtc = *found;
  }

  std::optional<Nvrtc> nvrtc; // that `sluice` finds, too
};

class ModelKernels : public KindsOfKernels, public testing::WithParamInterface<Parameters> {};
class FusedKernels : public ModelKernels {};

} // namespace

TEST_P(ModelKernels, FitTheirBudgets) {
  if (!std::getenv("SLUICE_TEST_FULL"))
    GTEST_SKIP() << "hundreds of kernels: only with SLUICE_TEST_FULL=1";
  auto [model, precision] = GetParam();
  auto [module, capacity] = fused(model, precision);
  ASSERT_TRUE(bool(module));
  Texts each(textOf, 64);
  forEachKernel(*module, capacity,
                [&](ir::KernelOp kernel, const GridKernel &written) { each.add(kernel, written, capacity); });
  for (const char *target : {"sm_80", "sm_90", "sm_100", "compute_80"})
    each.expectBudgets(*nvrtc, target);
}

// Every text of all models compiles to PTX, of each model in one precision, or with SLUICE_TEST_FULL in both: 3,150 texts.
// sm_90 code takes twice as long for one kernel of each kind, so it is made for the kinds of every third of these models;
// with SLUICE_TEST_FULL for all kinds.
TEST_F(KindsOfKernels, FitTheirBudgets) {
  Texts kinds(kindOf, 16), each(textOf, 64);
  bool isFull = std::getenv("SLUICE_TEST_FULL");
  size_t models = 0, step = isFull ? 1 : 3;
  auto add = [&](const Model &model, const char *precision) {
    auto [module, capacity] = fused(model, precision);
    ASSERT_TRUE(bool(module)) << model.name;
    bool isAssembled = models++ % step == 0;
    forEachKernel(*module, capacity, [&](ir::KernelOp kernel, const GridKernel &written) {
      if (isAssembled)
        kinds.add(kernel, written, capacity);
      each.add(kernel, written, capacity);
    });
  };
  for (auto [number, model] : llvm::enumerate(kModels))
    for (auto [other, precision] : llvm::enumerate(kPrecisions))
      if (isFull || (number + other) % 2 == 0)
        add(model, precision);
  add(kModels[0], "f16");
  kinds.expectBudgets(*nvrtc, "sm_90");
  each.expectBudgets(*nvrtc, "compute_90", {"--Ofast-compile=max"});
}

// Bias, activation, mask and the optimizer's step are in the kernel of the product that they follow, and casts between them; the
// logits, which others widen, are left as halves.
TEST_P(FusedKernels, TakeWhatFollowsAProduct) {
  auto [model, precision] = GetParam();
  OwningOpRef<ModuleOp> module = fused(model, precision).first;
  ASSERT_TRUE(bool(module));
  std::multiset<std::string> products;
  module->walk([&](ir::KernelOp kernel) {
    bool isOfStep = kernel->getParentOfType<ir::EntryOp>().getName() == "train_step";
    if (!isOfStep || kernel.getBody().front().getOps<ir::ContractionOp>().empty())
      return;
    std::string ops;
    for (Operation &op : kernel.getBody().front().without_terminator())
      if (isa<ir::ContractionOp, ir::ElementwiseOp>(op))
        ops += (ops.empty() ? "" : " ") + op.getName().stripDialect().str();
    products.insert(ops);
  });
  std::string cast = std::string(precision) == "f32" ? "" : " cast";
  EXPECT_EQ(products, (std::multiset<std::string>{
                          "conv2d add relu compare", "conv2d add relu compare", "einsum add relu compare", "einsum add",
                          "einsum where", "einsum", "conv2d_input_grad", "einsum" + cast + " mul sub",
                          "einsum" + cast + " mul sub", "conv2d_weight_grad" + cast + " mul sub",
                          "conv2d_weight_grad" + cast + " mul sub"}));
}

INSTANTIATE_TEST_SUITE_P(Models, ModelKernels,
                         testing::Combine(testing::ValuesIn(kModels), testing::ValuesIn(kPrecisions)), titleOf);
INSTANTIATE_TEST_SUITE_P(Scaled, ModelKernels, testing::Combine(testing::Values(kModels[0]), testing::Values("f16")),
                         titleOf);
INSTANTIATE_TEST_SUITE_P(Models, FusedKernels,
                         testing::Combine(testing::Values(kModels[0]), testing::ValuesIn(kPrecisions)), titleOf);

} // namespace sluice::cuda
